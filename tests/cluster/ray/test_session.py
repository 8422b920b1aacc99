"""What Ray is told before it is imported, and what is said where it is missing."""

import os
from pathlib import Path

import pytest

from tercet.cluster.ray import session
from tercet.cluster.ray.errors import RayFailedError, RayMissingError
from tercet.cluster.ray.session import prepare, require_ray


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(session, "TOKEN_FILE", tmp_path / "auth_token")


def test_a_session_of_this_machine_has_a_token_of_its_own() -> None:
    prepare(None)
    token = os.environ["RAY_AUTH_TOKEN"]
    assert len(token) == 64
    assert (os.environ["RAY_AUTH_MODE"], os.environ["RAY_USAGE_STATS_ENABLED"]) == ("token", "0")
    prepare(None)
    assert os.environ["RAY_AUTH_TOKEN"] == token  # which Ray has read by now


def test_a_cluster_is_asked_with_the_token_that_there_is(tmp_path: Path) -> None:
    prepare("head:6379")
    assert "RAY_AUTH_MODE" not in os.environ
    (tmp_path / "auth_token").write_text("secret")
    prepare("head:6379")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(RayMissingError, match=r"pip install 'tercet\[ray\]'"):
        require_ray()


def test_an_empty_address_starts_nothing() -> None:
    pytest.importorskip("ray", reason="install tercet[ray]")
    with (
        pytest.raises(RayFailedError, match="the address of Ray is empty: give HOST:PORT"),
        session.session(""),
    ):
        pass


def test_a_node_that_does_not_start_is_one_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="install tercet[ray]")

    def late(*_: object, **_given: object) -> None:
        raise Exception("The current node timed out during startup.\nIts logs say more.")

    monkeypatch.setattr(ray, "init", late)
    failed = pytest.raises(RayFailedError, match=r"this machine cannot be used \(The current .* startup\.\)")
    with failed, session.session(None):
        pass
