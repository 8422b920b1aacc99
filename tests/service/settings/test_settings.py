"""Settings: where they come from, what they refuse, what they hide, and that the page lists them all."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from tercet.service.exceptions import SettingsError
from tercet.service.settings.reading import load_settings
from tercet.service.settings.roles import Role, Server
from tercet.service.settings.settings import PREFIX, ROLES, Settings


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_flags_come_before_variables_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tercet.toml").write_text('port = 1\nmax_texts = 2\nhost = "::1"\nread_keys = ["a", "b"]\n')
    monkeypatch.setenv("TERCET_PORT", "3")
    monkeypatch.setenv("TERCET_MAX_TEXTS", "4")
    monkeypatch.setenv("TERCET_QUEUE_TOKENS", "")
    settings = load_settings({"port": 5, "engine": None})
    assert (settings.port, settings.max_texts, settings.host) == (5, 4, "::1")
    assert settings.engine == "onnx"
    assert settings.queue_tokens == Settings.model_fields["queue_tokens"].default
    assert [key.get_secret_value() for key in settings.read_keys] == ["a", "b"]


def test_blanks_around_a_value_are_not_meant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one\n")
    for name, value in {"DATA": " d", "PORT": " 81 ", "HOST": "::1\n", "API_KEYS_FILE": " keys "}.items():
        monkeypatch.setenv(f"TERCET_{name}", value)
    settings = load_settings()
    assert (settings.data, settings.port, settings.host) == (Path("d"), 81, "::1")
    assert [key.get_secret_value() for key in settings.api_keys] == ["one"]


def test_the_address_of_a_service_is_no_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kubernetes sets this variable where a Service is called tercet."""
    monkeypatch.setenv("TERCET_PORT", "tcp://10.96.12.3:8080")
    assert load_settings().port == Settings.model_fields["port"].default
    assert "tcp://10.96.12.3:8080" in caplog.text
    monkeypatch.setenv("TERCET_PORT", "udp")
    with pytest.raises(SettingsError, match="setting port"):
        load_settings()


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_API_KEYS", " one, two ,,")
    monkeypatch.setenv("TERCET_ENCODER_URLS", "http://a:1/,http://b:2")
    settings = load_settings()
    assert [key.get_secret_value() for key in settings.api_keys] == ["one", "two"]
    assert settings.encoder_urls == ("http://a:1", "http://b:2")
    assert settings.needs_key
    assert not load_settings({"api_keys": ""}).needs_key


def test_secrets_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_API_KEYS", "s3cret")
    monkeypatch.setenv("TERCET_ENCODER_KEY", "s3cret")
    settings = load_settings()
    assert "s3cret" not in repr(settings) + str(settings) + settings.model_dump_json()
    assert settings.encoder_environment["TERCET_ENCODER_KEY"] == "s3cret"
    for name in ("API_KEYS", "API_KEYS_FILE", "READ_KEYS", "READ_KEYS_FILE"):
        assert settings.encoder_environment[f"TERCET_{name}"] == "", "a build answers no requests"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"port": "eighty"}, 'setting port (TERCET_PORT) is "eighty"; use an integer'),
        ({"port": 70000}, "setting port (TERCET_PORT) is 70000; use at most 65535"),
        ({"engine": "tensorflow"}, 'is "tensorflow"; use "onnx", "native", "onnxruntime" or "torch"'),
        ({"prot": 1}, "unknown setting 'prot'; did you mean 'port'?"),
        ({"encoder_urls": "gpu-a:8080"}, "'gpu-a:8080' is not a URL"),
        ({"encoder_urls": "http://me:sec ret@gpu-a"}, "the URL of gpu-a has a user or a password in it"),
        ({"api_keys": "sec ret"}, "printable ASCII"),
        ({"encoder_key": "schlüssel"}, "printable ASCII"),
        ({"batch_tokens": 0}, "is 0; use at least 1"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_the_setting(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_settings(overrides)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "sec ret" not in str(error.value)
    assert "schlüssel" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hots = 1", "tercet.toml: unknown setting 'hots'; did you mean 'host'?"),
        ("port = ", "tercet.toml"),
        ("api_keys = [5]", "setting api_keys (TERCET_API_KEYS) is no text; write keys as strings"),
        ('port = "x"', 'tercet.toml: setting port (TERCET_PORT) is "x"; use an integer'),
    ],
)
def test_a_wrong_file_is_one_line(content: str, message: str) -> None:
    Path("tercet.toml").write_text(content)
    with pytest.raises(SettingsError) as error:
        load_settings()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_page_lists_every_setting_with_its_default(repository: Path) -> None:
    page = (repository / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `TERCET_(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", page, re.M)
    assert [name for name, *_ in rows] == list(Settings.model_fields)
    for name, variable, default, servers, meaning in rows:
        field = Settings.model_fields[name]
        assert variable == name.upper()
        assert default == ("" if field.default in (None, ()) else f"`{field.default}`")
        assert servers == _shown(ROLES[name].servers)
        assert meaning == field.description


def _shown(servers: frozenset[Server]) -> str:
    kinds: tuple[Server, ...] = get_args(Server)
    if not servers:
        return "commands"
    return "all" if servers == set(kinds) else ", ".join(kind for kind in kinds if kind in servers)


def test_a_server_that_stands_by_follows_the_url_of_the_ledger() -> None:
    url, other = "s3://bucket/search", "s3://bucket/other"
    with pytest.raises(SettingsError, match="ledger_url publishes a server's own collections"):
        Settings(follow=url, ledger_url=url)
    with pytest.raises(SettingsError, match=f"follow is {other}, and ledger_url is {url}: .* one URL"):
        Settings(follow=other, ledger_url=url, lease_seconds=30)
    given = Settings(follow=url, ledger_url=url, lease_seconds=30)
    assert given.stands_by
    assert (given.as_follower.follow, given.as_follower.ledger_url) == (url, None)
    assert (given.as_follower.publish_url, given.as_writer.publish_url) == (None, url)
    assert (given.as_writer.follow, given.as_writer.ledger_url) == (None, url)


def test_every_setting_has_one_role() -> None:
    for name, field in Settings.model_fields.items():
        assert [note for note in field.metadata if isinstance(note, Role)] == [ROLES[name]]
        assert ROLES[name].servers or name.startswith("client_key"), name


def test_a_worker_ignores_what_concerns_other_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERCET_ENCODER_URLS", "http://localhost:8081")
    monkeypatch.setenv("TERCET_SHARDS_KEY_FILE", "none")
    monkeypatch.setenv("TERCET_MAX_TEXTS", "7")
    (tmp_path / "tercet.toml").write_text("flush_documents = 3\nthreads = 2\n", encoding="utf-8")
    settings = load_settings({"port": 1}, frozenset({"worker"}))
    assert (settings.encoder_urls, settings.shards_key, settings.flush_documents) == ((), None, 16_384)
    assert (settings.max_texts, settings.threads, settings.port) == (7, 2, 1)
    assert settings.flags == {"port"}


def test_a_variable_that_is_nearly_a_setting_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_GPU_BATCH_TOKENS", "16384")  # a variable of the compose file
    load_settings()
    monkeypatch.setenv("TERCET_PROT", "80")
    with pytest.raises(SettingsError, match="TERCET_PROT is no setting; did you mean TERCET_PORT"):
        load_settings()
    monkeypatch.delenv("TERCET_PROT")
    monkeypatch.setenv("TERCET_API_KEY", "secret")
    with pytest.raises(
        SettingsError, match="TERCET_API_KEY is no setting; did you mean TERCET_API_KEYS"
    ) as error:
        load_settings()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("alone", "message"),
    [
        ({"publish_keep": 3}, r"setting publish_keep (TERCET_PUBLISH_KEEP) is 3, and does nothing without "),
        ({"publish_seconds": 10}, "without publish_url: give that too, or unset it"),
        ({"audit_file": "audit.jsonl"}, "without audit: give"),
        ({"audit": "all", "audit_required": True}, "is true, and does nothing without audit_file: give"),
    ],
)
def test_a_server_refuses_what_does_nothing_alone(alone: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_settings(alone).require_needed()


def test_what_another_setting_needs_is_a_setting() -> None:
    assert {role.needs for role in ROLES.values()} - {None} <= Settings.model_fields.keys()
    load_settings(
        {"publish_url": "file:///s", "publish_keep": 3, "audit": "all", "audit_file": "a"}
    ).require_needed()
    load_settings({"trace_sampling": 0.1, "shards_timeout_seconds": 5}).require_needed()
