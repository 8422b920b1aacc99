"""A wrong value of a body is told by its name, with what to use instead."""

from typing import Any

import httpx
import pytest

from tests.service.error_shape import error_of


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/search", {"top_k": 0}, "top_k is 0; use at least 1"),
        ("/search", {"top_k": 1.5}, "top_k is 1.5; use an integer"),
        ("/search", {"top_k": "many " * 30}, f'top_k is "{"many " * 8}…"; use an integer'),
        ("/search", {"explain": "yes"}, 'explain is "yes"; use true or false'),
        ("/search", {"query": 5}, "query is 5; use a string or an object"),
        (
            "/search",
            {"collection": "No Name"},
            'collection is "No Name"; use 1 to 64 of a to z, 0 to 9, - and _, a letter or digit first',
        ),
        ("/search", {"weights": {"dense": -1}}, "weights.dense is -1; use at least 0"),
        ("/search", {"weights": {"dense": 10**7}}, "weights.dense is 10000000; use at most 1000000"),
        (
            "/search",
            {"weights": "heavy"},
            'weights is "heavy"; use an object such as '
            """{"dense": 1, "sparse": 0.3, "colbert": 1} or "sum", "miracl", "mldr" or "flag\"""",
        ),
        (
            "/search",
            {"weights": [1, 1, 1]},
            "weights is a list of 3; use an object such as "
            """{"dense": 1, "sparse": 0.3, "colbert": 1} or "sum", "miracl", "mldr" or "flag\"""",
        ),
        ("/search", {"wieghts": 1}, "wieghts: no such field; did you mean weights?"),
        ("/search", {"topK": 3}, "topK: no such field; did you mean top_k?"),
        ("/search", {"zzz": 1}, "zzz: no such field; leave it out"),
        ("/search", {"limit": 3}, "limit: no such field; did you mean top_k?"),
        ("/search", {"weights": {"lexical": 1}}, "weights.lexical: no such field; did you mean sparse?"),
        (
            "/search",
            {"facets": "kind"},
            'facets is "kind"; use an object such as {"lang": 10}, or a list of fields',
        ),
        ("/embed", {"input": "a"}, "input: no such field; did you mean inputs?"),
        ("/search", {"weights": {"dens": 1}}, "weights.dens: no such field; did you mean dense?"),
        ("/rerank", {"top_m": 1}, "top_m: no such field; did you mean top_k?"),
        ("/rerank", {"inputs": []}, "inputs is []; use at least 1 item"),
        ("/rerank", {"inputs": "tea"}, 'inputs is "tea"; use a list'),
        ("/rerank", {"inputs": ["tea", None]}, "inputs.1 is null; use a string"),
        (
            "/rerank",
            {"weights": {"bm25": 1}},
            "weights.bm25: it is for /search; /rerank has dense, sparse and colbert: leave it out",
        ),
        ("/embed", {}, "inputs is missing; give it"),
        ("/embed", {"id": "tea"}, 'id: no such field; send {"inputs": […]}'),
        ("/embed", {"inputs": "tea", "id": "tea"}, "id: no such field; leave it out"),
        ("/embed", {"inputs": []}, "inputs is []; use at least 1 item"),
        ("/embed", {"inputs": "x", "model": ""}, 'model is ""; use at least 1 character'),
        ("/embed", {"inputs": "tea", "outputs": ["dens"]}, 'outputs.0 is "dens"; use "dense", "sparse" or'),
    ],
)
async def test_a_wrong_value_is_told_with_its_remedy(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], message: str
) -> None:
    whole = {"/search": {"collection": "demo", "query": "q"}, "/rerank": {"query": "q", "inputs": ["d"]}}
    response = await client.post(path, json={**whole.get(path, {}), **body})
    assert response.status_code == 422
    assert error_of(response)["message"].startswith(message)


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("POST", "/embed", ["tea"], 'the body: a list; send {"inputs": […]}'),
        ("PUT", "/collections/demo/documents", [{"id": "a"}], 'the body: a list; send {"documents": […]}'),
        (
            "PUT",
            "/collections/demo/documents",
            {"documents": [{"id": "a", "text": "b", "author": "Kim"}]},
            "documents.0.author: no such field; put it into metadata",
        ),
    ],
)
async def test_another_shape_of_body_gets_the_right_one(
    client: httpx.AsyncClient, method: str, path: str, body: Any, message: str
) -> None:
    response = await client.request(method, path, json=body)
    assert response.status_code == 422
    assert error_of(response)["message"] == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"lexical": "foo"}, 'lexical is "foo"; use "plain" or "idf"'),
        ({"window": 256}, 'window is 256; use an object such as {"tokens": 256} or false'),
        ({"window": {"tokens": 2}}, "window.tokens is 2; use at least 8"),
        ({"window": {}}, "window.tokens is missing; give it"),
        (
            {"fields": {"year": "date"}},
            'fields.year is "date"; use "keyword", "integer", "number", "boolean" or "datetime"',
        ),
        ({"bm25_language": "klingon"}, 'bm25_language is "klingon"; use "none", "arabic", '),
    ],
)
async def test_a_wrong_setting_of_a_collection_is_told_with_its_remedy(
    client: httpx.AsyncClient, body: dict[str, Any], message: str
) -> None:
    response = await client.put("/collections/new", json=body)
    assert response.status_code == 422
    assert error_of(response)["message"].startswith(message)
