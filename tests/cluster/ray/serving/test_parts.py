"""What a deployment starts with: the token's file, ports and variables, and how many encoders there are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster.ray.errors import TokenFileError
from cluster.ray.serving.autoscaling import QUEUED_TOKENS, ByQueuedTokens
from cluster.ray.serving.environment import serve_environment, start_flags
from cluster.ray.serving.ports import CALLS, ports_of
from cluster.ray.serving.token_file import hold_token


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # so that what is set is unset in the end


def test_a_new_token_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "ray" / "token"
    hold_token(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    token = file.read_text()
    assert len(token) == 64
    hold_token(file)
    assert file.read_text() == token


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("known")
    file.chmod(0o644)
    with pytest.raises(TokenFileError, match="mode 0644, so that others may read it"):
        hold_token(file)


def test_an_empty_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    with pytest.raises(TokenFileError, match="is empty"):
        hold_token(file)


def test_no_port_is_named_twice_but_those_that_the_system_gives() -> None:
    ports = [port for port in ports_of(8000) if port is not CALLS]
    numbers = [number for port in ports for number in port.numbers]
    assert len(numbers) == len(set(numbers))


def test_each_port_is_set_by_a_flag_or_a_variable() -> None:
    flags = {flag.partition("=")[0] for flag in start_flags(head=True)}
    named = {port.flag for port in ports_of(8000)} - {"port", ""}
    assert named <= flags | set(serve_environment())
    assert "--port" not in " ".join(start_flags(head=False))


def test_sockets_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    paths = [value for value in serve_environment(tmp_path).values() if value.startswith("/")]
    assert len(paths) == 5
    assert all(Path(path).is_relative_to(tmp_path) for path in paths)


@pytest.mark.parametrize(
    ("told", "replicas"),
    [({}, 2), ({"a": 0.0, "b": 0.0}, 1), ({"a": 900.0, "b": 100.0}, 1), ({"a": 900.0, "b": 101.0}, 2)],
)
def test_encoders_are_as_many_as_waiting_tokens_ask_for(told: dict[str, float], replicas: int) -> None:
    context = SimpleNamespace(aggregated_metrics={QUEUED_TOKENS: told} if told else {}, target_num_replicas=2)
    assert ByQueuedTokens(replica_tokens=1000)(context) == (replicas, {})
