"""What error answers of shards mean to whoever asked the router."""

from __future__ import annotations

import orjson
import pytest

from tercet.cluster.shards.refusals import refusal_of
from tercet.service.exceptions import RelayedError, ShardUnavailableError
from tercet.service.remote.transport import RemoteAnswer


def refused(status: int, code: str) -> Exception:
    error = {"message": "the reason", "code": code, "param": None}
    return refusal_of("http://a:8080", RemoteAnswer(status, {}, orjson.dumps({"error": error})))


@pytest.mark.parametrize(("status", "code"), [(401, "key_required"), (403, "write_refused")])
def test_a_refused_key_is_that_of_the_router(status: int, code: str) -> None:
    refusal = refused(status, code)
    assert isinstance(refusal, ShardUnavailableError)
    assert "shards_key" in str(refusal)


def test_a_shard_that_follows_snapshots_refuses_the_write_and_not_the_key() -> None:
    refusal = refused(403, "read_only_server")
    assert isinstance(refusal, RelayedError)
    assert (refusal.status, refusal.code, str(refusal)) == (403, "read_only_server", "the reason")


def test_a_request_that_did_not_arrive_as_it_was_sent_is_no_fault_of_the_client() -> None:
    refusal = refused(400, "invalid_safetensors")
    assert isinstance(refusal, RelayedError)
    assert (refusal.status, refusal.code, refusal.shard) == (503, "shard_failed", "http://a:8080")
    assert str(refusal) == "shard http://a:8080: the reason"
