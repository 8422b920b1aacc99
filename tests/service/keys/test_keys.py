"""Files of keys: what they add to the settings, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.service.exceptions import SettingsError
from tercet.service.keys.keys import KEY_SETTINGS, read_keys
from tercet.service.settings.reading import load_settings
from tercet.service.settings.settings import PREFIX, Settings


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def key_file(text: str) -> str:
    Path("keys").write_text(text)
    return "keys"


def test_every_key_setting_is_a_secret_and_has_a_file_beside_it() -> None:
    secret = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert secret == set(KEY_SETTINGS)
    assert {f"{name}_file" for name in KEY_SETTINGS} <= set(Settings.model_fields)


@pytest.mark.parametrize("name", ["api_keys", "read_keys"])
def test_keys_of_a_file_join_those_of_the_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}{name.upper()}", "one, two")
    monkeypatch.setenv(f"{PREFIX}{name.upper()}_FILE", key_file("\n three\t\r\n\nfo,ur\n"))
    settings = load_settings()
    assert [key.get_secret_value() for key in getattr(settings, name)] == ["one", "two", "three", "fo,ur"]
    assert "three" not in repr(settings)


def test_a_file_alone_closes_the_server_and_may_be_named_in_tercet_toml() -> None:
    key_file("only\n")
    Path("tercet.toml").write_text('api_keys_file = "keys"')
    settings = load_settings()
    assert settings.needs_key
    assert [key.get_secret_value() for key in settings.api_keys] == ["only"]


def test_the_workers_key_comes_from_a_file_and_goes_to_builds_as_one() -> None:
    settings = load_settings({"encoder_key_file": key_file("between-us\n")})
    assert settings.encoder_key is not None
    assert settings.encoder_key.get_secret_value() == "between-us"
    assert settings.encoder_environment["TERCET_ENCODER_KEY_FILE"] == "keys"
    assert "TERCET_ENCODER_KEY" not in settings.encoder_environment


def test_workers_are_sent_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="key file keys holds 2 keys; workers are sent one"):
        load_settings({"encoder_key_file": key_file("a\nb\n")})
    monkeypatch.setenv("TERCET_ENCODER_KEY", "c")
    with pytest.raises(SettingsError, match="encoder_key or encoder_key_file, not both"):
        load_settings({"encoder_key_file": key_file("a")})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "keys holds no key"),
        (" \n\r\n", "keys holds no key"),
        ("good\n\nsec ret\n", "keys, line 3: a key must be printable ASCII"),
        ("schlüssel-sec ret", "keys, line 1: a key must be printable ASCII"),
    ],
)
def test_a_wrong_file_is_named_and_no_key_is_told(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as error:
        read_keys(Path(key_file(text)))
    assert "sec ret" not in str(error.value)
    assert "good" not in str(error.value)


@pytest.mark.parametrize("name", KEY_SETTINGS)
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(SettingsError, match=f"key file {path}: {why}"):
            load_settings({f"{name}_file": str(path)})
