"""Compressed bodies of requests, and bombs among them."""

import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tercet.service.http.codings import CODINGS, Decoder, encoder_of

BODY = json.dumps({"inputs": ["hot water", "tea"], "outputs": ["dense"]}).encode()
LIMIT = 2 << 20


def compressed(coding: str, data: bytes) -> bytes:
    encoder = encoder_of(coding)
    return encoder.compress(data) + encoder.flush()


async def post(client: httpx.AsyncClient, content: Any, coding: str) -> httpx.Response:
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    return await client.post("/embed", content=content, headers=headers)


async def packets(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("coding", [*CODINGS, "x-gzip", "identity", "GZIP", ", gzip ,identity"])
async def test_a_compressed_body_is_answered_as_a_plain_one(client: httpx.AsyncClient, coding: str) -> None:
    plain = await client.post("/embed", content=BODY, headers={"Content-Type": "application/json"})
    name = coding.lower().strip(", ").removeprefix("x-").removesuffix(",identity").strip()
    content = BODY if name == "identity" else compressed(name, BODY)
    for body in (content, packets(content, 7)):
        answer = await post(client, body, coding)
        assert answer.status_code == 200, answer.text
        assert answer.json() == plain.json()


async def test_an_empty_body_needs_no_stream(client: httpx.AsyncClient) -> None:
    answer = await client.put("/collections/new", headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 201
    assert (await client.get("/collections/new", headers={"Content-Encoding": "br"})).status_code == 200


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip", "gzip, zstd", "\xff", "aws-chunked"])
async def test_another_coding_is_400_and_says_which_are_known(client: httpx.AsyncClient, coding: str) -> None:
    answer = await client.post(
        "/embed",
        content=gzip.compress(BODY),
        headers={b"Content-Type": b"application/json", b"Content-Encoding": coding.encode("latin-1")},
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("malformed_request", "unsupported_content_encoding")
    assert "zstd, gzip" in error["message"]


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_damaged_stream_is_400(client: httpx.AsyncClient, coding: str) -> None:
    whole = compressed(coding, BODY)
    for content in (whole[:-3], whole[:5], whole + b"{}", BODY, whole[1:]):
        answer = await post(client, content, coding)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["code"] == "invalid_content_encoding"


@pytest.mark.slow
@pytest.mark.parametrize("coding", CODINGS)
async def test_a_bomb_is_413_after_bounded_work_and_memory(
    make_client: Any, coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = compressed(coding, bytes(300 << 20))
    assert len(bomb) < LIMIT
    decoded = 0
    decode = Decoder.decode

    def counted(decoder: Decoder, data: bytes, limit_bytes: int) -> bytes:
        nonlocal decoded
        piece = decode(decoder, data, limit_bytes)
        decoded += len(piece)
        return piece

    monkeypatch.setattr(Decoder, "decode", counted)
    async with make_client(max_body_bytes=LIMIT) as client:
        tracemalloc.start()
        answer = await post(client, bomb, coding)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "request_too_large"
        assert LIMIT < decoded <= 2 * LIMIT
        assert peak < 10 * LIMIT
        assert (await post(client, compressed(coding, BODY), coding)).status_code == 200


async def test_the_limit_counts_decoded_bytes(make_client: Any) -> None:
    async with make_client(max_body_bytes=1000) as client:
        assert (await post(client, gzip.compress(BODY.ljust(1000)), "gzip")).status_code == 200
        assert (await post(client, gzip.compress(BODY.ljust(1001)), "gzip")).status_code == 413


async def test_bytes_that_decode_to_nothing_count_too(make_client: Any) -> None:
    nothing = b"\0\0\0\xff\xff" * 1000  # empty blocks
    async with make_client(max_body_bytes=1000) as client:
        answer = await post(client, packets(gzip.compress(b"")[:10] + nothing, 100), "gzip")
        assert answer.status_code == 413


def test_bodies_share_a_budget_of_bytes(make_server: Any, connect: Any) -> None:
    """Two that drip have taken most of it; a third is refused, and taken when they have gone."""
    head = ("POST /embed HTTP/1.1", "Content-Type: application/json")
    with make_server(max_bodies_bytes=1000) as url:
        dripped = [connect(url) for _ in range(2)]
        for client in dripped:
            client.send(*head, "Content-Length: 900", body=b" " * 450)
        with httpx.Client(base_url=url) as other:
            while "tercet_bodies_bytes 900.0" not in other.get("/metrics").text:
                pass
            refused = other.post(
                "/embed", content=BODY.ljust(200), headers={"Content-Type": "application/json"}
            )
            assert refused.status_code == 429
            assert "would exceed 1000 (setting max_bodies_bytes)" in refused.json()["error"]["message"]
            assert 'tercet_refused_total{reason="bodies"} 1.0' in other.get("/metrics").text
            for client in dripped:
                client.socket.close()
            while "tercet_bodies_bytes 0.0" not in other.get("/metrics").text:
                pass
            assert other.post("/embed", json=json.loads(BODY)).status_code == 200


async def test_decoded_bytes_count_in_the_budget_and_one_body_always_fits(make_client: Any) -> None:
    async with make_client(max_bodies_bytes=100) as client:
        assert (await post(client, gzip.compress(BODY.ljust(50_000)), "gzip")).status_code == 200
