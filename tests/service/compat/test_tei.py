"""The routes of Text Embeddings Inference."""

from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.service.compat.relevance import relevance

TEXTS = ["hot water", "the green tea leaf"]


async def test_the_three_representations(client: httpx.AsyncClient, tiny: Any) -> None:
    expected = encode(tiny, TEXTS)
    dense = (await client.post("/tei/embed", json={"inputs": TEXTS})).json()
    assert np.array_equal(np.array(dense, np.float32), expected.dense)
    sparse = (await client.post("/tei/embed_sparse", json={"inputs": TEXTS})).json()
    tokens = (await client.post("/tei/embed_all", json={"inputs": TEXTS})).json()
    for row in range(2):
        ids, weights = expected.sparse.row(row)
        assert [one["index"] for one in sparse[row]] == ids.tolist()
        assert np.allclose([one["value"] for one in sparse[row]], weights, atol=1e-6)
        assert np.array_equal(np.array(tokens[row], np.float32), expected.colbert.row(row))


@pytest.mark.parametrize("path", ["/tei", "/tei/"])
async def test_the_base_address_gives_dense_vectors(client: httpx.AsyncClient, path: str) -> None:
    body = {"inputs": TEXTS}
    assert (await client.post(path, json=body)).json() == (await client.post("/tei/embed", json=body)).json()


async def test_one_text_gives_a_list_of_one_and_none_an_empty_one(client: httpx.AsyncClient) -> None:
    assert len((await client.post("/tei/embed", json={"inputs": "tea"})).json()) == 1
    assert (await client.post("/tei/embed", json={"inputs": []})).json() == []
    assert (await client.post("/tei/rerank", json={"query": "tea", "texts": []})).json() == []


async def test_a_prompt_name_chooses_the_kind_of_text(client: httpx.AsyncClient, tiny: Any) -> None:
    body = {"inputs": "tea", "prompt_name": "query"}
    found = (await client.post("/tei/embed", json=body)).json()
    assert np.array_equal(np.array(found, np.float32), encode(tiny, ["tea"], "query").dense)


@pytest.mark.parametrize("path", ["embed", "embed_sparse"])
async def test_token_ids_are_read_back_as_text(client: httpx.AsyncClient, tiny: Any, path: str) -> None:
    ids = [tiny.tokenizer.tokenize([text]).token_ids.tolist() for text in TEXTS]
    plain = (await client.post(f"/tei/{path}", json={"inputs": TEXTS})).json()
    assert (await client.post(f"/tei/{path}", json={"inputs": ids})).json() == plain
    assert (await client.post(f"/tei/{path}", json={"inputs": ids[0]})).json() == plain[:1]
    foreign = [[*ids[0], 10**9], TEXTS[1]]
    assert (await client.post(f"/tei/{path}", json={"inputs": foreign})).json() == plain


async def test_similarities_are_the_cosines_with_the_first(client: httpx.AsyncClient, tiny: Any) -> None:
    asked = {"source_sentence": "green tea", "sentences": [*TEXTS, "green tea"]}
    found = (await client.post("/tei/similarity", json={"inputs": asked})).json()
    dense = encode(tiny, ["green tea", *TEXTS]).dense
    assert found == pytest.approx([*(dense[1:] @ dense[0]).tolist(), 1.0], abs=1e-6)
    body = {"inputs": asked, "parameters": {"prompt_name": "query"}}
    queries = encode(tiny, ["green tea", *TEXTS], "query").dense
    found = (await client.post("/tei/similarity", json=body)).json()
    assert found[:2] == pytest.approx((queries[1:] @ queries[0]).tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"inputs": {"source_sentence": "tea", "sentences": []}}, 422, "inputs.sentences"),
        ({"inputs": {"source_sentence": "tea"}}, 422, "inputs.sentences is missing"),
        ({"inputs": "tea"}, 422, "inputs"),
        ({"inputs": {"source_sentence": "tea", "sentences": ["tea"] * 1025}}, 413, "max_texts"),
        (
            {
                "inputs": {"source_sentence": "tea", "sentences": ["tea " * 100]},
                "parameters": {"truncate": False},
            },
            413,
            "text 0 has more than 32 tokens",
        ),
    ],
)
async def test_what_cannot_be_compared_is_refused(
    client: httpx.AsyncClient, body: Any, status: int, word: str
) -> None:
    answer = await client.post("/tei/similarity", json=body)
    assert answer.status_code == status
    assert word in answer.json()["error"]


async def test_ids_are_decoded_with_and_without_special_tokens(client: httpx.AsyncClient, tiny: Any) -> None:
    ids = [tiny.tokenizer.tokenize([text]).token_ids.tolist() for text in TEXTS]
    assert (await client.post("/tei/decode", json={"ids": ids})).json() == TEXTS
    assert (await client.post("/tei/decode", json={"ids": ids[0]})).json() == TEXTS[:1]
    assert (await client.post("/tei/decode", json={"ids": []})).json() == [""]
    body = {"ids": [*ids[0], 10**9], "skip_special_tokens": False}
    assert (await client.post("/tei/decode", json=body)).json() == [f"[CLS] {TEXTS[0]} [SEP]"]
    refused = await client.post("/tei/decode", json={"ids": ["tea"]})
    assert (refused.status_code, refused.json()["error_type"]) == (422, "Validation")


async def test_the_last_words_may_be_kept(client: httpx.AsyncClient, tiny: Any) -> None:
    room = tiny.info.max_length - 2
    long = "hot " * room + "green tea"
    kept = " ".join(["hot"] * (room - 2) + ["green", "tea"])
    body = {"inputs": long, "truncation_direction": "Left"}
    left = (await client.post("/tei/embed", json=body)).json()
    assert left == (await client.post("/tei/embed", json={"inputs": kept})).json()
    assert left != (await client.post("/tei/embed", json={"inputs": long})).json()
    ranks = {"query": "tea", "texts": [long], "raw_scores": True, "truncation_direction": "left"}
    same = {"query": "tea", "texts": [kept], "raw_scores": True}
    assert (await client.post("/tei/rerank", json=ranks)).json() == (
        await client.post("/tei/rerank", json=same)
    ).json()


async def test_reranking(client: httpx.AsyncClient) -> None:
    texts = ["black coffee", "green tea", "hot water for tea"]
    own = (await client.post("/rerank", json={"query": "tea", "inputs": texts})).json()["results"]
    body = {"query": "tea", "texts": texts}
    ranks = (await client.post("/tei/rerank", json=body)).json()
    assert ranks == [{"index": one["index"], "score": relevance(one["score"])} for one in own]
    raw = (await client.post("/tei/rerank", json={**body, "raw_scores": True, "return_text": True})).json()
    assert raw == [{"index": one["index"], "score": one["score"], "text": texts[one["index"]]} for one in own]


async def test_tokens_lie_where_they_say(client: httpx.AsyncClient, tiny: Any) -> None:
    (tokens,) = (await client.post("/tei/tokenize", json={"inputs": "hot water"})).json()
    assert [token["text"] for token in tokens] == ["[CLS]", "hot", "water", "[SEP]"]
    assert [token["special"] for token in tokens] == [True, False, False, True]
    assert [(token["start"], token["stop"]) for token in tokens[1:3]] == [(0, 3), (4, 9)]
    assert [token["id"] for token in tokens] == tiny.tokenizer.tokenize(["hot water"]).token_ids.tolist()
    body = {"inputs": ["hot water"], "add_special_tokens": False}
    assert (await client.post("/tei/tokenize", json=body)).json() == [tokens[1:3]]


async def test_info_and_health(client: httpx.AsyncClient, tiny: Any) -> None:
    info = (await client.get("/tei/info")).json()
    assert info["model_id"] == "tiny"
    assert info["model_sha"] == tiny.info.fingerprint
    assert info["max_input_length"] == tiny.info.max_length
    assert (await client.get("/tei/health")).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("embed", {"inputs": "tea", "truncation_direction": "Up"}, 422, "truncation_direction"),
        ("embed", {"inputs": "tea " * 1000, "truncate": False}, 413, "tokens"),
        ("rerank", {"query": "tea", "texts": ["tea " * 1000], "truncate": False}, 413, "texts.0"),
        ("embed", {"inputs": ["tea"] * 10_000}, 413, "max_texts"),
        ("embed", [], 422, "JSON object"),
        ("tokenize", {}, 422, "inputs"),
    ],
)
async def test_errors_have_their_shape(
    client: httpx.AsyncClient, path: str, body: Any, status: int, word: str
) -> None:
    response = await client.post(f"/tei/{path}", json=body)
    assert response.status_code == status
    assert set(response.json()) == {"error", "error_type"}
    assert response.json()["error_type"] == "Validation"
    assert word in response.json()["error"]


async def test_errors_before_the_route_have_it_too(make_client: Any) -> None:
    async with make_client(api_keys=["secret"], headers={"Authorization": "Bearer secret"}) as client:
        refused = await client.post("/tei/embed", json={"inputs": "tea"}, headers={"Authorization": ""})
        assert refused.status_code == 401
        assert set(refused.json()) == {"error", "error_type"}
        unread = await client.post("/tei/embed", content=b"{", headers={"Content-Type": "application/json"})
        assert unread.status_code == 422
        assert set(unread.json()) == {"error", "error_type"}
        assert (await client.get("/tei/health", headers={"Authorization": ""})).status_code == 200


async def test_more_dimensions_than_there_are_keep_all(client: httpx.AsyncClient) -> None:
    whole, cut, more = [
        (await client.post("/tei/embed", json={"inputs": "hot tea", "dimensions": wanted})).json()
        for wanted in (0, 4, 10_000)
    ]
    assert (len(whole[0]), len(cut[0])) == (8, 4)
    assert more == whole


async def test_openais_route_lies_below_it_too(client: httpx.AsyncClient) -> None:
    """Dify's plugin for Text Embeddings Inference asks it for vectors."""
    body = {"input": ["hot water", "tea"], "model": "tiny"}
    below, own = [await client.post(f"{base}/v1/embeddings", json=body) for base in ("/tei", "")]
    assert (below.status_code, below.json()) == (200, own.json())
    refused = await client.post("/tei/v1/embeddings", json={"input": []})
    assert (refused.status_code, set(refused.json())) == (422, {"error", "error_type"})
