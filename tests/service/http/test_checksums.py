"""Requests and answers whose checksum tells that they were damaged on their way."""

import json

import httpx
import pytest

from tercet.service.http.checksums import AT_END, HEADER, checksum_of, request_checksums, sound_answer

SEARCH = b'{"collection":"demo","query":"tea"}'


def given(method: str, target: str, body: bytes) -> dict[str, str]:
    return {
        HEADER: request_checksums(method, target, body),
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }


async def test_an_answer_has_a_checksum_where_the_request_has(client: httpx.AsyncClient) -> None:
    target = "/collections/demo/documents?limit=2"
    for method, path, body in (("GET", target, b""), ("POST", "/search", SEARCH), ("GET", "/none", b"")):
        answer = await client.request(method, path, content=body or None, headers=given(method, path, body))
        assert answer.status_code == (404 if path == "/none" else 200)
        assert answer.headers[HEADER] == checksum_of(answer.content)
    assert HEADER not in (await client.get("/collections/demo")).headers


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/search", SEARCH.replace(b"tea", b"sea")),
        ("POST", "/search?x=1", SEARCH),
        ("PUT", "/search", SEARCH),
        ("DELETE", "/collections/demo", b""),
    ],
)
async def test_a_request_of_another_checksum_is_refused(
    client: httpx.AsyncClient, method: str, path: str, body: bytes
) -> None:
    headers = given("POST", "/search", SEARCH)
    answer = await client.request(method, path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed")
    assert answer.headers[HEADER] == checksum_of(answer.content)
    assert (await client.get("/collections/demo")).status_code == 200


async def test_a_stream_has_its_checksum_at_its_end(client: httpx.AsyncClient) -> None:
    body = b'{"inputs":[' + b",".join([b'"tea"'] * 1000) + b"]}"
    answer = await client.post("/embed", content=body, headers=given("POST", "/embed", body))
    assert answer.headers[HEADER] == AT_END
    assert "Content-Length" not in answer.headers
    sound = sound_answer(answer.content, AT_END)
    assert sound is not None
    assert len(json.loads(sound)["embeddings"]) == 1000
    for place in (0, len(sound) // 2, len(answer.content) - 1):
        damaged = bytearray(answer.content)
        damaged[place] ^= 1
        assert sound_answer(bytes(damaged), AT_END) is None
    assert sound_answer(answer.content[:-1], AT_END) is None


def test_a_short_answer_at_whose_end_a_checksum_is_missing_is_not_sound() -> None:
    assert sound_answer(b"", AT_END) is None
    assert sound_answer(b"00000000", AT_END) == b""  # the CRC-32 of nothing
