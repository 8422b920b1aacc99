"""Bodies over the limit."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

JSON = {"Content-Type": "application/json"}


async def stream(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@pytest.mark.parametrize("key", [None, "key"])
async def test_declared_and_streamed_bodies_over_the_limit_are_413(make_client: Any, key: str | None) -> None:
    headers = JSON if key is None else {**JSON, "Authorization": f"Bearer {key}"}
    async with make_client(headers, max_body_bytes=1000, api_keys=key or ()) as client:
        for content in (b"x" * 1001, stream(b"x" * 600, b"x" * 600)):
            response = await client.post("/embed", content=content)
            assert response.status_code == 413
            assert response.headers["Content-Type"] == "application/json"
            assert response.json()["error"]["code"] == "request_too_large"
            assert "1000 bytes (setting max_body_bytes)" in response.json()["error"]["message"]
        padded = json.dumps({"inputs": "tea"}).encode().ljust(1000)
        assert (await client.post("/embed", content=padded)).status_code == 200
        assert (await client.post("/embed", content=stream(padded[:500], padded[500:]))).status_code == 200


@pytest.mark.parametrize("path", ["/embed", "/collections/demo"])
async def test_without_a_key_even_a_large_body_is_401(make_client: Any, path: str) -> None:
    async with make_client(max_body_bytes=1000, api_keys="key") as client:
        response = await client.put(path, content=b"x" * 1001, headers=JSON)
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "key_required"
