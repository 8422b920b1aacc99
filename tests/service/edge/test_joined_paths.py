"""Base addresses with a slash at the end, as Open WebUI joins them: the path has two."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tercet.service.edge.joined_paths import joined

BODY = {"input": "tea", "inputs": "tea", "query": "tea", "documents": ["tea"], "knowledge_id": "demo"}


@pytest.mark.parametrize(
    "path",
    [
        "/v1//embeddings",
        "/v1//rerank",
        "/v2//rerank",
        "/tei//embed",
        "/tei//v1/embeddings",
        "/jina/v1//rerank",
        "/api//embed",
        "/dify//retrieval",
    ],
)
async def test_two_slashes_are_one(client: httpx.AsyncClient, path: str) -> None:
    answers = [await client.post(each, json=BODY) for each in (path, path.replace("//", "/"))]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert httpx.URL("http://tercet" + path).path == path, "the client would have joined them itself"


async def test_keys_are_asked_for_all_the_same(make_client: Any) -> None:
    async with make_client(api_keys="key") as client:
        assert (await client.post("/v1//embeddings", json=BODY)).status_code == 401


async def test_ids_of_documents_keep_their_slashes(client: httpx.AsyncClient) -> None:
    assert joined("/collections/demo/documents/v1//a") == "/collections/demo/documents/v1//a"
    documents = [{"id": "a//b", "text": "tea"}]
    await client.put("/collections/demo/documents", json={"documents": documents})
    found = await client.get(f"/collections/demo/documents/{quote('a//b', safe='')}")
    assert found.json()["id"] == "a//b"
