"""Targets that are no UTF-8 are refused on every route, instead of being taken for other text."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tercet.service.edge.paths import problem_of_target


@pytest.mark.parametrize(
    "text", [b"/a", b"/%ED%95%9C", b"/%F0%9F%90%BB", b"/%EF%BF%BD", b"/%", b"/%zz", b"/%00"]
)
def test_utf8_is_no_problem(text: bytes) -> None:
    assert problem_of_target({"raw_path": text, "query_string": text}) is None


@pytest.mark.parametrize("text", [b"%FF", b"%ED%A0%80", b"%C3", b"%C0%AF", b"\xff"])
def test_other_bytes_are(text: bytes) -> None:
    path = problem_of_target({"raw_path": b"/" + text, "query_string": b""})
    assert path is not None
    assert path.startswith("the path '/")
    query = problem_of_target({"raw_path": b"/", "query_string": b"after=" + text})
    assert query is not None
    assert query.startswith("the query 'after=")


@pytest.mark.slow
async def test_no_route_takes_other_bytes_for_text(client: httpx.AsyncClient) -> None:
    """A document whose id is the replacement character stays."""
    documents = "/collections/demo/documents"
    body = {"documents": [{"id": "\ufffd", "text": "tea"}]}
    assert (await client.put(documents, json=body)).status_code == 200
    description: Any = (await client.get("/openapi.json")).json()
    tried = 0
    for path, operations in description["paths"].items():
        for method in operations:
            targets = [f"{path}?after=%FF", f"{path}?filter=%FF&x=1"]
            if "{" in path:
                targets.append(re.sub(r"{\w+}", "%FF", path))
            for target in targets:
                response = await client.request(method, re.sub(r"{\w+}", "demo", target))
                known = 422 if path.startswith("/tei") else 400  # as clients of that service expect
                assert response.status_code == known, (method, target, response.text)
                assert "no UTF-8" in response.text
                tried += 1
    assert tried > 100
    response = await client.delete(f"{documents}/%FF")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "not_utf8")
    assert (await client.get(f"{documents}/%EF%BF%BD")).json()["id"] == "\ufffd"


def test_a_real_server_says_so_too(server: str) -> None:
    with httpx.Client() as client:
        response = client.delete(f"{server}/collections/demo/documents/%FF")
        assert (response.status_code, response.json()["error"]["code"]) == (400, "not_utf8")
