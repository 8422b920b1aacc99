"""What a deployment consists of: the token's file, an encoder, and how many of these there are."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tercet.cluster.ray.errors import TokenFileError
from tercet.cluster.ray.serving import replicas
from tercet.cluster.ray.serving.token_file import hold_token
from tercet.models.encoder import Encoder
from tercet.service.app import create_worker_app
from tercet.service.settings.settings import Settings


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


@pytest.mark.parametrize(
    ("queued", "wanted"),
    [({}, 2), ({"a": 0.0, "b": 0.0}, 1), ({"a": 900.0, "b": 100.0}, 1), ({"a": 900.0, "b": 101.0}, 2)],
)
def test_encoders_are_as_many_as_waiting_tokens_ask_for(queued: dict[str, float], wanted: int) -> None:
    context = SimpleNamespace(
        aggregated_metrics={replicas.QUEUED_TOKENS: queued} if queued else {}, target_num_replicas=2
    )
    assert replicas.ByQueuedTokens(replica_tokens=1000)(context) == (wanted, {})


async def test_an_encoder_answers_without_http(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_worker_app(Settings(checkpoint="minilm-m3"), tiny)
    monkeypatch.setattr(replicas, "_prepared", lambda _: None)
    monkeypatch.setattr(replicas, "create_worker_app", lambda _: app)
    finish = replicas.Encoders.__del__
    monkeypatch.delattr(replicas.Encoders, "__del__")  # which Ray Serve awaits, and Python does not
    encoders = replicas.Encoders({})
    await encoders.check_health()
    await encoders.check_health()
    sent = {"Content-Type": "application/json"}
    status, headers, body = await encoders.answer("POST", "/embed", sent, b'{"inputs": ["hot tea", "a"]}')
    assert (status, headers["content-type"]) == (200, "application/json")
    assert len(json.loads(body)["embeddings"]) == 2
    status, _, body = await encoders.answer("POST", "/embed?a%20b=1", sent, b'{"inputs": "tea"}')
    assert (status, "a b" in json.loads(body)["error"]["message"]) == (422, True)
    assert encoders.record_autoscaling_stats() == {replicas.QUEUED_TOKENS: 0}
    await finish(encoders)
