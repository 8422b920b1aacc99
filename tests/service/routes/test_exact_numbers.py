"""Numbers over HTTP: every way in keeps them exactly, or refuses them and says what the limit is."""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import save

MOMENT = 1715938200123456789  # float64 holds 1715938200123456768
FIELDS = {"at": "integer", "size": "number", "name": "keyword"}
DOCUMENTS = "/collections/n/documents"


@pytest.fixture
async def numbers(client: httpx.AsyncClient) -> httpx.AsyncClient:
    response = await client.put("/collections/n", json={"fields": FIELDS})
    assert response.status_code == 201, response.text
    return client


async def put(client: httpx.AsyncClient, metadata: str, key: str | None = None) -> httpx.Response:
    """Metadata as JSON text, since Python's writer has one form of each number."""
    keyed = "" if key is None else f', "idempotency_key": "{key}"'
    return await sent(
        client,
        "PUT",
        DOCUMENTS,
        f'{{"documents": [{{"id": "a", "text": "x", "metadata": {metadata}}}]{keyed}}}',
    )


async def sent(client: httpx.AsyncClient, method: str, path: str, body: str) -> httpx.Response:
    return await client.request(
        method, path, content=body.encode(), headers={"Content-Type": "application/json"}
    )


def refusal(response: httpx.Response) -> str:
    assert response.status_code == 422, response.text
    message: str = response.json()["error"]["message"]
    return message


async def listed(client: httpx.AsyncClient, filter: str) -> list[str]:
    response = await client.get(DOCUMENTS, params={"filter": filter})
    assert response.status_code == 200, response.text
    return [each["id"] for each in response.json()["documents"]]


async def test_an_integer_is_found_and_deleted_by_its_very_value(numbers: httpx.AsyncClient) -> None:
    assert (await put(numbers, f'{{"at": {MOMENT}}}')).status_code == 200
    for operation in ("eq", "gte", "lte"):
        assert await listed(numbers, f'{{"{operation}": {{"at": {MOMENT}}}}}') == ["a"]
        assert await listed(numbers, f'{{"in": {{"at": [{MOMENT}]}}}}') == ["a"]
    assert await listed(numbers, f'{{"eq": {{"at": {MOMENT + 1}}}}}') == []
    stored = (await numbers.get(f"{DOCUMENTS}/a")).json()
    assert stored["metadata"] == {"at": MOMENT}
    deleted = await sent(
        numbers, "POST", f"{DOCUMENTS}/delete", f'{{"filter": {{"eq": {{"at": {MOMENT}}}}}}}'
    )
    assert deleted.json()["deleted"] == 1


async def test_a_number_that_float64_does_not_hold_is_refused_everywhere(numbers: httpx.AsyncClient) -> None:
    wanted = f"{MOMENT} is beyond ±9007199254740992"
    assert wanted in refusal(await put(numbers, f'{{"size": {MOMENT}}}'))
    assert (await put(numbers, '{"size": 9007199254740992}')).status_code == 200
    patch = await sent(numbers, "PATCH", f"{DOCUMENTS}/a", f'{{"metadata": {{"size": {MOMENT}}}}}')
    assert wanted in refusal(patch)
    tree = f'{{"gte": {{"size": {MOMENT}}}}}'
    assert wanted in refusal(await numbers.get(DOCUMENTS, params={"filter": tree}))
    assert wanted in refusal(await sent(numbers, "POST", f"{DOCUMENTS}/delete", f'{{"filter": {tree}}}'))
    search = f'{{"collection": "n", "query": "x", "filter": {tree}}}'
    assert wanted in refusal(await sent(numbers, "POST", "/search", search))
    assert await listed(numbers, '{"eq": {"size": 9007199254740992}}') == ["a"]


async def test_whole_floats_are_integers_wherever_they_are_exact(numbers: httpx.AsyncClient) -> None:
    assert (await put(numbers, '{"at": 2020.0}')).status_code == 200
    assert (
        await listed(numbers, '{"eq": {"at": 2020}}')
        == await listed(numbers, '{"eq": {"at": 2020.0}}')
        == ["a"]
    )
    rounded = "9007199254740994.0 is a float beyond ±9007199254740992"
    assert rounded in refusal(await put(numbers, '{"at": 9007199254740994.0}'))
    tree = '{"lt": {"at": 9007199254740994.0}}'
    assert rounded in refusal(await numbers.get(DOCUMENTS, params={"filter": tree}))


async def test_whole_floats_of_other_fields_are_integers_as_far(numbers: httpx.AsyncClient) -> None:
    for top_k, status in (("3.0", 200), ("3.5", 422), ("9007199254740994.0", 422), (LONG, 422)):
        body = f'{{"collection": "n", "query": "x", "top_k": {top_k}}}'
        assert (await put(numbers, "{}")).status_code == 200
        response = await sent(numbers, "POST", "/search", body)
        assert response.status_code == status, response.text
    for position, status in (("9007199254740992.0", 409), ("9007199254740994.0", 422)):
        body = f'{{"documents": [{{"id": "a", "text": "x"}}], "if_position": {position}}}'
        response = await sent(numbers, "PUT", DOCUMENTS, body)
        assert response.status_code == status, response.text


LONG = "18446744073709551616"  # 2**64, which orjson makes 1.8446744073709552e19


@pytest.mark.parametrize("key", [None, "k"])
async def test_integers_beyond_64_bits_are_refused_by_name(
    numbers: httpx.AsyncClient, key: str | None
) -> None:
    where = f"document 'a': metadata.deep.1 is wrong: the integer {LONG} does not fit in 64 bits"
    assert where in refusal(await put(numbers, f'{{"deep": [0, {LONG}]}}', key))
    assert (await put(numbers, '{"deep": [0, 18446744073709551615]}', key)).status_code == 200
    keyed = "" if key is None else ', "idempotency_key": "p"'
    body = f'{{"metadata": {{"deep": [0, {LONG}]}}{keyed}}}'
    assert where in refusal(await sent(numbers, "PATCH", f"{DOCUMENTS}/a", body))
    for tree in (f'{{"eq": {{"at": {LONG}}}}}', f'{{"in": {{"size": [1, -{LONG}]}}}}'):
        limit = f"{LONG} does not fit in 64 bits"
        assert limit in refusal(await numbers.get(DOCUMENTS, params={"filter": tree}))
        body = f'{{"filter": {tree}{keyed}}}'
        assert limit in refusal(await sent(numbers, "POST", f"{DOCUMENTS}/delete", body))
        body = f'{{"collection": "n", "query": "x", "filter": {tree}}}'
        assert limit in refusal(await sent(numbers, "POST", "/search", body))
    assert (await numbers.get(f"{DOCUMENTS}/a")).json()["metadata"] == {"deep": [0, 2**64 - 1]}


async def test_large_bodies_are_read_alike(numbers: httpx.AsyncClient) -> None:
    """Over 64 KiB a body is parsed in pieces."""
    documents = [{"id": f"{row}", "text": "x " * 200, "metadata": {"n": row}} for row in range(500)]
    documents[321]["metadata"] = {"n": 2**64}
    response = await sent(numbers, "PUT", DOCUMENTS, json.dumps({"documents": documents}))
    assert f"document '321': metadata.n is wrong: the integer {LONG}" in refusal(response)


async def test_lines_of_a_binary_body_are_read_alike(numbers: httpx.AsyncClient) -> None:
    encoded = await numbers.post(
        "/embed", json={"inputs": ["x"]}, headers={"Accept": "application/x-safetensors"}
    )
    from safetensors.numpy import load

    size = int.from_bytes(encoded.content[:8], "little")
    fingerprint = json.loads(encoded.content[8 : 8 + size])["__metadata__"]["fingerprint"]
    for metadata, problem in (
        ({"n": [2**64]}, f"metadata.n.0 is wrong: the integer {LONG} does not fit"),
        ({"size": MOMENT}, f"{MOMENT} is beyond"),
    ):
        line = json.dumps({"id": "a", "text": "x", "metadata": metadata}).encode()
        arrays = {**load(encoded.content), "documents": np.frombuffer(line, np.uint8)}
        response = await numbers.put(
            DOCUMENTS,
            content=save(arrays, {"fingerprint": fingerprint, "idempotency_key": "b"}),
            headers={"Content-Type": "application/x-safetensors"},
        )
        assert problem in refusal(response)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"x": value}
    return value


@pytest.mark.parametrize("keyed", [{}, {"idempotency_key": "k"}])
async def test_deep_metadata_are_refused_whatever_else_a_request_has(
    numbers: httpx.AsyncClient, keyed: dict[str, str]
) -> None:
    assert (await put(numbers, "{}")).status_code == 200
    for levels in (65, 300, 900):
        body = {"documents": [{"id": "a", "text": "x", "metadata": nested(levels)}], **keyed}
        assert "deeper than 64 levels" in refusal(await numbers.put(DOCUMENTS, json=body))
        body = {"metadata": nested(levels), **keyed}
        assert "deeper than 64 levels" in refusal(await numbers.patch(f"{DOCUMENTS}/a", json=body))
        tree: Any = {"exists": "at"}
        for _ in range(levels):
            tree = {"not": tree}
        response = await numbers.post(f"{DOCUMENTS}/delete", json={"filter": tree, **keyed})
        assert "deeper than 16" in refusal(response)
    body = {"documents": [{"id": "a", "text": "x", "metadata": nested(64)}], **keyed}
    assert (await numbers.put(DOCUMENTS, json=body)).status_code == 200


async def test_a_key_tells_other_integers_apart(numbers: httpx.AsyncClient) -> None:
    """Both are 9007199254740992 as floats."""
    assert (await put(numbers, '{"n": 9007199254740993}', "k")).status_code == 200
    assert (await put(numbers, '{"n": 9007199254740992}', "k")).status_code == 409
    assert (await put(numbers, '{"n": 9007199254740993}', "k")).status_code == 200
