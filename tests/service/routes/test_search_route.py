"""`POST /search` and `POST /rerank` to the letter of their contract."""

import base64
import dataclasses
from pathlib import Path
from typing import Any, get_args

import httpx
import numpy as np
import pytest

from tercet.index.candidates import Document, Weights
from tercet.index.collection import Collection
from tercet.index.fusion import WEIGHT_PRESETS
from tercet.models.encoder import encode
from tercet.service.answers import pieces
from tercet.service.exceptions import InvalidRequestError
from tercet.service.schemas.search import PresetName
from tercet.service.search import explanations

QUERY = {"collection": "demo", "query": "hot tea"}


async def search(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/search", json={**QUERY, **body})


async def hits_of(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    response = await search(client, **body)
    assert response.status_code == 200, response.text
    hits: list[dict[str, Any]] = response.json()["hits"]
    return hits


async def test_a_look_by_an_address_gives_what_the_body_does(client: httpx.AsyncClient) -> None:
    by_body = (
        await client.post("/search", json={"collection": "demo", "query": "hot tea", "top_k": 2})
    ).json()
    by_address = await client.get("/search", params={"collection": "demo", "q": "hot tea", "top_k": 2})
    assert by_address.status_code == 200
    assert by_address.json()["hits"] == by_body["hits"]
    for wrong, param in (
        ({"q": "tea"}, "collection"),
        ({"collection": "demo"}, "q"),
        ({"collection": "demo", "q": " "}, "q"),
        ({"collection": "demo", "q": "tea", "top_k": 0}, "top_k"),
    ):
        refused = await client.get("/search", params=wrong)
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, param)
        assert refused.json()["error"]["message"].startswith(f"{param} ")
    absent = await client.get("/search", params={"collection": "none", "q": "tea"})
    assert absent.json()["error"]["code"] == "collection_not_found"


async def test_hits_carry_their_scores_text_and_metadata(
    client: httpx.AsyncClient, data: Any, tiny: Any
) -> None:
    answer = (await search(client)).json()
    snapshot = Collection.open(data / "collections", "demo").snapshot()
    expected = snapshot.search(encode(tiny, ["hot tea"], "query"))
    assert answer["collection"] == "demo"
    assert answer["snapshot"] == snapshot.name
    assert answer["query"] == {"tokens": 4, "truncated": False}
    assert set(answer["took_ms"]) == {"encode", "retrieve", "score", "total"}
    assert [hit["id"] for hit in answer["hits"]] == [hit.document.id for hit in expected.hits]
    for hit in answer["hits"]:
        assert set(hit) == {"id", "score", "scores", "title", "text", "metadata"}
        assert hit["score"] == pytest.approx(sum(hit["scores"].values()), abs=2e-6)
    black = next(hit for hit in answer["hits"] if hit["id"] == "black")
    assert black["title"] == "블랙 티 🍵"
    assert black["metadata"] == {}
    assert next(h for h in answer["hits"] if h["id"] == "leaf")["metadata"]["note"] == {"nested": [1, None]}


async def test_null_options_mean_the_defaults(client: httpx.AsyncClient) -> None:
    options = ["top_k", "weights", "candidates", "filter", "explain", "search_options"]
    assert await hits_of(client) == await hits_of(client, **dict.fromkeys(options))
    inner = await hits_of(client, weights={"dense": None}, candidates={"sparse": None})
    assert inner == await hits_of(client)


async def test_weights_and_presets_make_the_sum(client: httpx.AsyncClient) -> None:
    for weights, (dense, sparse, colbert) in [
        ({"dense": 1, "sparse": 0.5, "colbert": 0}, (1, 0.5, 0)),
        ({"sparse": 0}, (1, 0, 1)),
        ("mldr", (0.15, 0.5, 0.35)),
        ("sum", (1, 1, 1)),
    ]:
        hits = await hits_of(client, weights=weights)
        for hit in hits:
            scores = hit["scores"]
            expected = dense * scores["dense"] + sparse * scores["sparse"] + colbert * scores["colbert"]
            assert hit["score"] == pytest.approx(expected, abs=1e-6)
        assert hits == sorted(hits, key=lambda hit: (-hit["score"], hit["id"]))


async def test_defaults_keep_to_the_limits_of_the_server(make_client: Any) -> None:
    async with make_client(max_top_k=2, max_candidates=2) as client:
        assert len(await hits_of(client)) == 2
        response = await search(client, top_k=3)
        assert (response.status_code, response.json()["error"]["param"]) == (422, "top_k")


async def test_weights_that_leave_nothing_to_score_are_422(
    client: httpx.AsyncClient, data: Path, tiny: Any
) -> None:
    settings = Collection.open(data / "collections", "demo").settings
    settings = dataclasses.replace(settings, name="flat", token_codec="none")
    with Collection.create(data / "collections", "flat", settings).writer() as writer:
        writer.add([Document("a", "tea")], encode(tiny, ["tea"]))
        writer.publish()
    response = await search(client, collection="flat", weights={"dense": 0, "sparse": 0})
    assert response.status_code == 422
    assert "dense and sparse, all that collection 'flat' scores, are 0" in response.json()["error"]["message"]


async def test_filters_choose_documents(client: httpx.AsyncClient) -> None:
    assert [hit["id"] for hit in await hits_of(client, filter={"eq": {"kind": "travel"}})] == ["rail"]
    assert {hit["id"] for hit in await hits_of(client, filter={"lt": {"year": 1900}})} == {
        "rail",
        "steam/engine",
    }
    assert await hits_of(client, filter={"in": {"kind": []}}) == []


async def test_ready_representations_search_like_their_text(client: httpx.AsyncClient) -> None:
    embedded = await client.post("/embed", json={"inputs": "hot tea", "input_type": "query"})
    ready = embedded.json()["embeddings"][0]
    response = await search(client, query=ready)
    assert response.json()["hits"] == await hits_of(client)
    assert response.json()["query"] == {"tokens": 0, "truncated": False}


async def test_a_side_may_be_missing_where_it_has_no_part(client: httpx.AsyncClient) -> None:
    embedded = await client.post("/embed", json={"inputs": "hot tea", "outputs": ["sparse"]})
    ready = {"sparse": embedded.json()["embeddings"][0]["sparse"]}
    hits = await hits_of(
        client, query=ready, weights={"dense": 0, "colbert": 0}, candidates={"dense": 0, "sparse": 10}
    )
    assert [hit["id"] for hit in hits][:1] == ["tea"]
    assert hits[0]["scores"]["dense"] is None
    assert hits[0]["scores"]["colbert"] is None
    refused = await search(client, query=ready, weights={"dense": 0, "colbert": 0})
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "query.dense"
    assert "candidates.dense to 0" in refused.json()["error"]["message"]


async def test_packed_vectors_search_like_lists(client: httpx.AsyncClient) -> None:
    asked = {"inputs": "hot tea", "input_type": "query"}
    found = [
        [(hit["id"], hit["score"]) for hit in await hits_of(client, query=embedding)]
        for encoding in ("float", "base64")
        for embedding in (await client.post("/embed", json={**asked, "encoding": encoding})).json()[
            "embeddings"
        ]
    ]
    assert found[0] == found[1]
    assert found[0]


def packed(array: Any, **changes: Any) -> dict[str, Any]:
    values = np.array(array, "<f4")
    whole = {"data": base64.b64encode(values.tobytes()).decode(), "shape": list(values.shape)}
    return {**whole, **changes}


@pytest.mark.parametrize(
    ("side", "value", "param"),
    [
        ("dense", packed([0.1] * 7), "query.dense"),
        ("dense", packed([0.1] * 8, shape=[4]), "query.dense"),
        ("dense", packed([[0.1] * 2] * 8), "query.dense.shape"),
        ("dense", packed([0.1] * 8, data="AAA"), "query.dense"),
        ("dense", packed([0.1] * 8, data="AAAA"), "query.dense"),
        ("dense", packed([0.1] * 8, data="é"), "query.dense"),
        ("dense", packed([float("nan")] * 8), "query.dense"),
        ("dense", packed([2e4] * 8), "query.dense"),
        ("dense", packed([0.1] * 8, dtype="float16"), "query.dense.dtype"),
        ("dense", packed([0.1] * 8, shape=[]), "query.dense.shape"),
        ("dense", packed([0.1] * 8, shape=[-8]), "query.dense.shape.0"),
        ("colbert", packed([[0.1] * 3]), "query.colbert.0"),
        ("colbert", packed([[0.1] * 4] * 33), "query.colbert"),
        ("colbert", packed([0.1] * 4), "query.colbert.shape"),
    ],
)
async def test_packed_vectors_must_fit_the_encoder(
    client: httpx.AsyncClient, side: str, value: Any, param: str
) -> None:
    ready = {
        "dense": packed([0.1] * 8),
        "sparse": {"token_ids": [5], "weights": [0.5]},
        "colbert": packed([[0.1] * 4]),
        side: value,
    }
    response = await search(client, query=ready)
    assert response.status_code == 422, response.text
    assert response.json()["error"]["param"] == param


async def test_an_answer_with_much_text_is_sent_in_chunks(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await search(client, explain=True)
    monkeypatch.setattr(pieces, "CHUNK_BYTES", 100)
    parts = await search(client, explain=True)
    assert "content-length" in whole.headers
    assert "content-length" not in parts.headers
    assert parts.json()["hits"] == whole.json()["hits"]


async def test_too_much_to_explain_is_422(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "MAX_ALIGNED", 7)
    refused = await search(client, explain=True, top_k=3)  # times 3 token vectors
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "explain"
    assert "at most 2" in refused.json()["error"]["message"]
    assert (await search(client, explain=True, top_k=2)).status_code == 200
    assert (await search(client, top_k=3)).status_code == 200


def test_words_for_bm25_count_as_work(monkeypatch: pytest.MonkeyPatch, tiny: Any) -> None:
    """Three token vectors and 640 characters: 13 pairs for each hit, or 3 in a collection without BM25."""
    monkeypatch.setattr(explanations, "MAX_ALIGNED", 30)
    query, text = encode(tiny, ["hot tea"], "query"), "x" * 640
    assert query.colbert is not None
    assert len(query.colbert.vectors) == 3
    explanations.require_explainable(query, text, 10, bm25=False)
    explanations.require_explainable(query, text, 2, bm25=True)
    explanations.require_explainable(query, None, 10, bm25=True)
    with pytest.raises(InvalidRequestError, match=r"the words of its 640 characters; .* top_k to at most 2"):
        explanations.require_explainable(query, text, 3, bm25=True)


async def test_explanations_add_up_to_the_scores(client: httpx.AsyncClient) -> None:
    for hit in await hits_of(client, explain=True):
        explanation = hit["explanation"]
        assert sum(term["product"] for term in explanation["terms"]) == pytest.approx(
            hit["scores"]["sparse"], abs=1e-5
        )
        similarities = [pair["similarity"] for pair in explanation["alignment"]]
        assert np.mean(similarities) == pytest.approx(hit["scores"]["colbert"], abs=1e-5)
        assert [pair["query_token"] for pair in explanation["alignment"]] == ["hot", "tea", "[SEP]"]
        words = f"{hit['title'] or ''} {hit['text']}".split()
        for term in explanation["terms"]:
            assert term["token"] in {"hot", "tea"} & set(words)
        for pair in explanation["alignment"]:
            assert pair["document_token"] in [*words, "[SEP]", "[UNK]"]
            if pair["query_token"] in words:
                assert pair["document_token"] == pair["query_token"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"top_k": 0}, "top_k"),
        ({"top_k": 1001}, "top_k"),
        ({"weights": {"dense": -1}}, "weights.dense"),
        ({"weights": {"dense": 0, "sparse": 0, "colbert": 0}}, "weights"),
        ({"weights": {"lexical": 1}}, "weights.lexical"),
        ({"weights": "best"}, "weights"),
        ({"weights": {"dense": "1"}}, "weights.dense"),
        ({"candidates": {"dense": -1}}, "candidates.dense"),
        ({"candidates": {"dense": 10_001}}, "candidates.dense"),
        ({"candidates": {"dense": 0, "sparse": 0}}, "candidates"),
        ({"filter": {"near": {"year": 1}}}, "filter"),
        ({"filter": {"eq": {"year": "old"}}}, "filter"),
        ({"filter": {"eq": {"colour": "red"}}}, "filter"),
        ({"filter": []}, "filter"),
        ({"query": {}}, "query.dense"),
        (
            {
                "query": {"dense": [1.0] * 7},
                "weights": {"sparse": 0, "colbert": 0},
                "candidates": {"sparse": 0},
            },
            "query.dense",
        ),
        ({"query": {"dense": [1e39] * 8}}, "query.dense.0"),
        ({"query": {"dense": ["a"] * 8}}, "query.dense.0"),
        ({"query": 5}, "query"),
        ({"collection": "../etc"}, "collection"),
        ({"collection": "Demo"}, "collection"),
        ({"explain": 1}, "explain"),
        ({"search_options": {"ef_search": 0}}, "search_options.ef_search"),
        ({"search_options": {"efSearch": 10}}, "search_options.efSearch"),
        ({"topk": 5}, "topk"),
    ],
)
async def test_a_wrong_value_is_422_and_names_its_field(
    client: httpx.AsyncClient, body: dict[str, Any], param: str
) -> None:
    response = await search(client, **body)
    assert response.status_code == 422, response.text
    assert response.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("side", "value", "param"),
    [
        ("sparse", {"token_ids": [5, 5], "weights": [1.0, 1.0]}, "query.sparse.token_ids"),
        ("sparse", {"token_ids": [5], "weights": []}, "query.sparse"),
        ("sparse", {"token_ids": [5000], "weights": [1.0]}, "query.sparse.token_ids"),
        ("sparse", {"token_ids": [-1], "weights": [1.0]}, "query.sparse.token_ids.0"),
        ("sparse", {"token_ids": [5], "weights": [-1.0]}, "query.sparse.weights.0"),
        ("colbert", [[0.1] * 3], "query.colbert.0"),
        ("colbert", [[0.1] * 4, []], "query.colbert.1"),
        ("colbert", [[0.1] * 4] * 33, "query.colbert"),
        ("colbert", [[0.1]] * 65_537, "query.colbert"),
        ("sparse", {"token_ids": [1] * 65_537, "weights": []}, "query.sparse.token_ids"),
        ("colbert", [], "query.colbert"),
    ],
)
async def test_ready_representations_must_fit_the_encoder(
    client: httpx.AsyncClient, side: str, value: Any, param: str
) -> None:
    ready = {
        "dense": [0.1] * 8,
        "sparse": {"token_ids": [5], "weights": [0.5]},
        "colbert": [[0.1] * 4],
        side: value,
    }
    response = await search(client, query=ready)
    assert response.status_code == 422, response.text
    assert response.json()["error"]["param"] == param


async def test_an_unknown_collection_is_404(client: httpx.AsyncClient) -> None:
    response = await search(client, collection="none")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "collection_not_found"


async def test_another_encoder_is_409_with_both_fingerprints(make_client: Any, tiny: Any) -> None:
    other = type(tiny)(seed=1)
    async with make_client(encoder=other) as client:
        response = await search(client)
    assert response.status_code == 409
    error = response.json()["error"]
    assert error["code"] == "fingerprint_mismatch"
    assert tiny.info.fingerprint in error["message"]
    assert other.info.fingerprint in error["message"]


def test_the_presets_of_the_schema_are_those_of_the_index() -> None:
    assert set(get_args(PresetName)) == set(WEIGHT_PRESETS)
    assert WEIGHT_PRESETS["sum"] == Weights(1, 1, 1)


@pytest.mark.parametrize("query", ["", "  ", "\t\n"])
async def test_a_blank_query_is_refused(client: httpx.AsyncClient, query: str) -> None:
    for route, body, param in (
        ("/search", {"collection": "demo", "query": query}, "query"),
        ("/search", {"collection": "demo", "queries": ["tea", query]}, "queries.1"),
        ("/rerank", {"query": query, "inputs": ["tea"]}, "query"),
    ):
        response = await client.post(route, json=body)
        assert response.status_code == 422, response.text
        error = response.json()["error"]
        assert error["param"] == param
        assert "no token for the encoder to read" in error["message"]


@pytest.mark.parametrize("collection", ["demo", "int8"])
async def test_blank_documents_are_no_hits(client: httpx.AsyncClient, tiny: Any, collection: str) -> None:
    if collection != "demo":
        settings = {"token_codec": "int8", "lexical": "idf"}
        assert (await client.put(f"/collections/{collection}", json=settings)).status_code == 201
    documents = [
        {"id": "blank", "text": " "},
        {"id": "empty", "text": ""},
        {"id": "cold", "text": "cold tea"},
    ]
    written = await client.put(f"/collections/{collection}/documents", json={"documents": documents})
    assert written.status_code == 200, written.text
    for query in ("the", "?", "tea"):
        hits = await hits_of(client, collection=collection, query=query, top_k=100)
        assert "cold" in {hit["id"] for hit in hits}
        assert not {"blank", "empty"} & {hit["id"] for hit in hits}
    assert (await client.get(f"/collections/{collection}/documents/blank")).json()["text"] == " "
    like = await client.post("/search", json={"collection": collection, "query": {"id": "blank"}})
    assert like.json()["hits"] == []


async def test_blank_texts_have_scores_of_0(client: httpx.AsyncClient) -> None:
    for query in ("the", "?", "tea"):
        body = {"query": query, "inputs": ["", "hot tea", " "]}
        results = (await client.post("/rerank", json=body)).json()["results"]
        scores = {result["index"]: result for result in results}
        for index in (0, 2):
            assert scores[index]["score"] == 0
            assert set(scores[index]["scores"].values()) == {0}
        assert scores[1]["score"] != 0
