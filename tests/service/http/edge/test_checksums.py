"""Requests and answers whose checksum tells that they were damaged on their way."""

import httpx
import pytest

from service.http.checksums import CHECKED_BYTES, HEADER, checksum_of, request_checksums

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


async def test_a_stream_is_held_until_its_checksum_is_known(client: httpx.AsyncClient) -> None:
    body = b'{"inputs":[' + b",".join([b'"tea"'] * 1000) + b"]}"
    answer = await client.post("/embed", content=body, headers=given("POST", "/embed", body))
    assert 2**16 < len(answer.content) < CHECKED_BYTES
    assert answer.headers[HEADER] == checksum_of(answer.content)
