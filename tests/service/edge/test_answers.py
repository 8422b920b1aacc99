"""Answers compressed as clients ask."""

import gzip
from typing import Any

import httpx
import pytest

from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.http.codings import zstd

TEXTS = ["hot water", "the green tea leaf"] * 200
DECODE = {"gzip": gzip.decompress, "zstd": zstd.decompress, None: lambda content: content}


async def embed(client: httpx.AsyncClient, accepted: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """The answer with its body as it was sent."""
    request = client.build_request(
        "POST", "/embed", json={"inputs": TEXTS}, headers={"Accept-Encoding": accepted, **headers}
    )
    response = await client.send(request, stream=True)
    body = b"".join([part async for part in response.aiter_raw()])
    return response, body


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate", "gzip"),
        ("gzip, zstd", "zstd"),
        ("gzip;q=1, zstd;q=0.5", "gzip"),
        ("*", "zstd"),
        ("", None),
        ("br", None),
        ("identity", None),
        ("gzip;q=0", None),
    ],
)
async def test_streams_are_encoded_as_the_client_prefers(
    client: httpx.AsyncClient, accepted: str, coding: str | None
) -> None:
    _, plain = await embed(client, "identity")
    response, body = await embed(client, accepted)
    assert response.headers.get("content-encoding") == coding
    assert DECODE[coding](body) == plain
    assert {"Accept", "Accept-Encoding"} <= set(response.headers["vary"].split(", "))
    if coding is not None:
        assert len(body) < 0.7 * len(plain)


@pytest.mark.slow
async def test_whole_answers_have_their_length(client: httpx.AsyncClient) -> None:
    plain = await client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    small = await client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < len(plain.content) / 4
    assert small.json() == plain.json()
    head = await client.head("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert head.headers["content-length"] == small.headers["content-length"]


async def test_small_answers_are_encoded_only_where_nothing_else_is_taken(client: httpx.AsyncClient) -> None:
    assert "content-encoding" not in (await client.get("/health")).headers
    strict = {"Accept-Encoding": "gzip, identity;q=0"}
    answer = await client.get("/health", headers=strict)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json() == {"status": "ok"}
    gone = await client.delete("/collections/demo", headers=strict)
    assert (gone.status_code, gone.content) == (204, b"")
    assert "content-encoding" not in gone.headers


async def test_binary_answers_are_not_worth_it(client: httpx.AsyncClient) -> None:
    response, body = await embed(client, "gzip, zstd", Accept=MEDIA_TYPE)
    assert "content-encoding" not in response.headers
    assert len(body) > 1024


async def test_compression_can_be_turned_off(make_client: Any) -> None:
    async with make_client(compression=False) as client:
        response, _ = await embed(client, "gzip, zstd")
        assert "content-encoding" not in response.headers
        compressed = gzip.compress(b'{"inputs": "tea"}')
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        assert (await client.post("/embed", content=compressed, headers=headers)).status_code == 200


async def test_vectors_of_the_compatible_route_are_sent_as_they_are(client: httpx.AsyncClient) -> None:
    """They say that they are not to be transformed, unless the client takes them encoded alone."""
    body = {"input": ["hot water"] * 64, "encoding_format": "base64"}
    answer = await client.post("/v1/embeddings", json=body, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["cache-control"] == "no-transform"
    assert "content-encoding" not in answer.headers
    assert len(answer.content) > 1024
    only = await client.post("/v1/embeddings", json=body, headers={"Accept-Encoding": "gzip, identity;q=0"})
    assert only.headers["content-encoding"] == "gzip"
    assert only.json() == answer.json()
