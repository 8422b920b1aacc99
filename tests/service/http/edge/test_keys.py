"""Keys: nobody, readers, writers."""

from typing import Any

import pytest

from service.exceptions import UnauthenticatedError
from service.http.edge.keys import KeyRing

WRITER = {"Authorization": "Bearer write-key"}
READER = {"Authorization": "bearer read-key"}
KEYS = {"api_keys": "write-key, second-key", "read_keys": "read-key"}


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic write-key", "write-key", "Bearer write-ke\xff"],
)
async def test_without_a_known_key_only_health_and_ready_answer(make_client: Any, header: str | None) -> None:
    headers = None if header is None else {b"Authorization": header.encode("latin-1")}
    async with make_client(**KEYS) as client:
        assert (await client.get("/health", headers=headers)).status_code == 200
        assert (await client.get("/ready", headers=headers)).status_code == 200
        assert (await client.get("/docs", headers=headers)).status_code == 200
        for method, path in [
            ("POST", "/search"),
            ("GET", "/collections"),
            ("GET", "/metrics"),
            ("GET", "/info"),
            ("GET", "/openapi.json"),
            ("GET", "/nowhere"),
        ]:
            response = await client.request(method, path, headers=headers)
            assert response.status_code == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert response.json()["error"]["type"] == "unauthenticated"


async def test_a_read_key_searches_but_changes_nothing(make_client: Any) -> None:
    async with make_client(READER, **KEYS) as client:
        assert (await client.post("/search", json={"collection": "demo", "query": "tea"})).status_code == 200
        assert (await client.post("/embed", json={"inputs": "tea"})).status_code == 200
        assert (await client.get("/metrics")).status_code == 200
        for method, path in [
            ("PUT", "/collections/other"),
            ("DELETE", "/collections/demo"),
            ("POST", "/collections/demo/jobs"),
            ("DELETE", "/jobs/any"),
        ]:
            response = await client.request(method, path, json={"source": "x"} if method == "POST" else None)
            assert response.status_code == 403
            assert response.json()["error"]["code"] == "read_only_key"
        assert (await client.get("/collections/demo")).status_code == 200


@pytest.mark.parametrize("key", ["write-key", "second-key"])
async def test_a_write_key_may_do_everything(make_client: Any, key: str) -> None:
    async with make_client({"Authorization": f"Bearer {key}"}, **KEYS) as client:
        assert (await client.put("/collections/other")).status_code == 201
        assert (await client.delete("/collections/demo")).status_code == 204


async def test_read_keys_alone_leave_nobody_who_may_change(make_client: Any) -> None:
    async with make_client(READER, read_keys="read-key") as client:
        assert (await client.put("/collections/other")).status_code == 403


def test_a_key_in_both_lists_may_write() -> None:
    ring = KeyRing(["both"], ["both"])
    assert ring.access("Bearer both")[0] == "write"
    with pytest.raises(UnauthenticatedError):
        ring.access("Bearer bot")
    assert KeyRing([], []).access(None) == ("write", None)
