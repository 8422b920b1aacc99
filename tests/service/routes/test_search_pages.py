"""Pages, batches and parts of `POST /search`, and what may not go together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.models.encoder import encode

TEXTS = ["hot tea", "a train", "steam", "tea"]
WORDS = ["tea", "train", "steam", "leaf", "rail", "honey", "water", "pot"]


@pytest.fixture
def many(data: Path, tiny: Any) -> str:
    """A collection of sixty short texts in two segments, with BM25 and fields; its name."""
    random = np.random.default_rng(3)
    found = Collection.open(data / "collections", "demo").settings
    settings = replace(found, name="many", bm25=True, fields={"kind": "keyword", "hot": "boolean"})
    collection = Collection.create(data / "collections", "many", settings)
    texts = [" ".join(random.choice(WORDS, 5)) for _ in range(60)]
    documents = [
        Document(
            f"d{place:02}",
            text,
            f"Title {place}",
            {
                "kind": [WORDS[word] for word in range(place % 3)],
                **({"hot": place % 2 == 0} if place % 5 else {}),
            },
        )
        for place, text in enumerate(texts)
    ]
    with collection.writer() as writer:
        writer.add(documents, encode(tiny, [each.encoded_text for each in documents]))
        writer.publish()
    return "many"


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={"collection": "many", **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def refusal(client: httpx.AsyncClient, **body: Any) -> tuple[int, str, str | None, str]:
    response = await client.post("/search", json={"collection": "many", **body})
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"], error["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": {"bm25": 1}, "explain": True},
        {"group_by": "kind", "filter": {"exists": "hot"}},
        {"min_score": 1.0, "weights": {"dense": 0, "sparse": 1, "colbert": 0}},
        {"include": ["scores"], "facets": {"kind": 2}},
    ],
)
async def test_queries_are_answered_as_each_alone(
    client: httpx.AsyncClient, many: str, options: dict[str, Any]
) -> None:
    embedded = await client.post("/embed", json={"inputs": "a pot of tea", "input_type": "query"})
    ready = {**embedded.json()["embeddings"][0], "text": "a pot of tea"}
    queries: list[Any] = [*TEXTS, ready, {"id": "d07"}]
    together = await ask(client, queries=queries, top_k=7, **options)
    assert set(together) - {"facets"} == {
        "collection",
        "snapshot",
        "weights",
        "candidates",
        "took_ms",
        "results",
    }
    assert set(together["took_ms"]) == {"encode", "retrieve", "score", "total"}
    for query, result in zip(queries, together["results"], strict=True):
        alone = await ask(client, query=query, top_k=7, **options)
        assert result["hits"] == alone["hits"]
        assert result["query"] == alone["query"]
        assert set(result["took_ms"]) == set(alone["took_ms"])
        assert alone["hits"] or "min_score" in options
        for name in ("weights", "candidates", "snapshot"):
            assert together[name] == alone[name]
        assert together.get("facets") == alone.get("facets")


@pytest.mark.parametrize("options", [{}, {"group_by": "kind"}, {"weights": {"dense": 1e-7, "colbert": 0}}])
async def test_pages_are_the_one_long_list(
    client: httpx.AsyncClient, many: str, options: dict[str, Any]
) -> None:
    asked = {"query": "hot tea", "candidates": {"dense": 30, "sparse": 20}, **options}
    whole = await ask(client, top_k=100, **asked)
    pages, behind, after = [], [], None
    for offset in range(0, len(whole["hits"]) + 8, 8):
        page = await ask(client, top_k=8, offset=offset, snapshot=whole["snapshot"], **asked)
        pages += page["hits"]
        page = await ask(client, top_k=8, search_after=after, snapshot=whole["snapshot"], **asked)
        behind += page["hits"]
        after = {"score": behind[-1]["score"], "id": behind[-1]["id"]}
    assert pages == behind == whole["hits"]
    assert len(whole["hits"]) > 8


async def test_a_snapshot_that_is_gone_is_a_conflict(client: httpx.AsyncClient, many: str) -> None:
    first = await ask(client, query="tea", top_k=3)
    put = {"documents": [{"id": "new", "text": "tea and more tea"}]}
    assert (await client.put("/collections/many/documents", json=put)).status_code == 200
    status, code, _, message = await refusal(client, query="tea", offset=3, snapshot=first["snapshot"])
    assert (status, code) == (409, "snapshot_gone")
    now = await ask(client, query="tea", top_k=3)
    assert now["snapshot"] != first["snapshot"]
    assert f"is gone, it is {now['snapshot']!r} now" in message
    await ask(client, query="tea", offset=3, snapshot=now["snapshot"])
    assert (await client.put("/collections/many/documents", json=put)).status_code == 200
    assert (await refusal(client, query="tea", snapshot=now["snapshot"]))[:2] == (409, "snapshot_gone")


@pytest.mark.parametrize("weights", [None, {"bm25": 1}, {"dense": 0, "colbert": 0}])
async def test_a_stored_document_searches_like_its_representations(
    client: httpx.AsyncClient, many: str, weights: Any
) -> None:
    stored = (await client.get("/collections/many/documents/d05?representations=true")).json()
    ready = {side: stored["representations"][side] for side in ("dense", "sparse", "colbert")}
    ready["text"] = f"{stored['title']}\n{stored['text']}"
    asked = {"weights": weights, "explain": True}
    like = await ask(client, query={"id": "d05"}, top_k=20, **asked)
    hits = (await ask(client, query=ready, top_k=21, **asked))["hits"]
    assert like["hits"] == [hit for hit in hits if hit["id"] != "d05"][:20]
    assert like["query"] == {"tokens": 0, "truncated": False}


async def test_documents_are_examples_of_what_is_wanted_and_what_is_not(
    client: httpx.AsyncClient, many: str
) -> None:
    like, unlike = ["d01", "d07", "d30"], ["d02"]
    options: dict[str, Any] = {"top_k": 60, "weights": {"bm25": 1}}
    answer = await ask(client, query={"like": like, "unlike": unlike}, **options)
    assert not {*like, *unlike} & {hit["id"] for hit in answer["hits"]}
    assert len(answer["hits"]) == 56
    texts = []
    for id in like:
        document = (await client.get(f"/collections/many/documents/{id}")).json()
        texts.append(f"{document['title']}\n{document['text']}")
    words = await ask(client, query="\n".join(texts), **options)
    bm25 = {hit["id"]: hit["scores"]["bm25"] for hit in words["hits"]}
    assert all(hit["scores"]["bm25"] == bm25[hit["id"]] for hit in answer["hits"])
    without = await ask(client, query={"like": like}, **options)
    assert len(without["hits"]) == 57
    scores = {hit["id"]: hit["scores"] for hit in without["hits"]}
    assert any(hit["scores"]["dense"] != scores[hit["id"]]["dense"] for hit in answer["hits"])
    assert all(hit["scores"]["colbert"] == scores[hit["id"]]["colbert"] for hit in answer["hits"])
    several = await ask(client, queries=["tea", {"like": like, "unlike": unlike}], **options)
    assert several["results"][1]["hits"] == answer["hits"]


async def test_texts_of_examples_are_limited_as_other_texts(make_client: Any, many: str) -> None:
    query = {"like": ["d01", "d02", "d03"]}
    async with make_client(max_characters=100) as client:
        assert len((await ask(client, query=query, top_k=60))["hits"]) == 57  # BM25 has no weight
        status, code, param, message = await refusal(client, query=query, weights={"bm25": 1})
        assert (status, code, param) == (422, "invalid_value", "query.like")
        assert "the limit is 100 (setting max_characters)" in message


async def test_parts_change_nothing_but_the_fields(client: httpx.AsyncClient, many: str) -> None:
    whole = (await ask(client, query="hot tea"))["hits"]
    for include in (
        [],
        ["text"],
        ["text", "text"],
        ["scores", "title"],
        ["metadata", "scores", "window", "title", "text"],
    ):
        kept = {"id", "score", *include} - {"window"}
        expected = [{name: hit[name] for name in hit if name in kept} for hit in whole]
        assert (await ask(client, query="hot tea", include=include))["hits"] == expected
    explained = await ask(client, query="hot tea", include=[], explain=True)
    assert all(set(hit) == {"id", "score", "explanation"} for hit in explained["hits"])
    assert (await ask(client, query="hot tea", include=None))["hits"] == whole


async def test_facets_count_what_the_filter_allows(client: httpx.AsyncClient, many: str) -> None:
    answer = await ask(client, query="tea", top_k=1, facets={"kind": 1, "hot": 5})
    assert answer["facets"] == {
        "kind": {"values": [{"value": "tea", "count": 40}], "distinct": 2, "missing": 20},
        "hot": {
            "values": [{"value": False, "count": 24}, {"value": True, "count": 24}],
            "distinct": 2,
            "missing": 12,
        },
    }
    listed, counted = ["kind", "hot"], {"kind": 10, "hot": 10}
    both = [await ask(client, query="tea", top_k=1, facets=facets) for facets in (listed, counted)]
    assert both[0]["facets"] == both[1]["facets"]
    some = await ask(client, query="tea", top_k=1, facets={"kind": 9}, filter={"eq": {"kind": "train"}})
    assert [each["count"] for each in some["facets"]["kind"]["values"]] == [20, 20]


async def test_what_makes_no_sense_is_refused_by_name(client: httpx.AsyncClient, many: str) -> None:
    after = {"score": 1, "id": "d01"}
    for body, expected in [
        ({}, (422, "missing_field", "query", "query is missing; give it, or queries")),
        ({"query": "a", "queries": ["b"]}, (422, "invalid_value", "queries", "both given; leave one out")),
        ({"queries": []}, (422, "invalid_value", "queries", "use at least 1 item")),
        (
            {"queries": ["a"], "search_after": after},
            (422, "invalid_value", "search_after", "goes with one query"),
        ),
        (
            {"query": "a", "search_after": after, "offset": 1},
            (422, "invalid_value", "offset", "leave one out"),
        ),
        ({"query": "a", "offset": -1}, (422, "invalid_value", "offset", "at least 0")),
        ({"query": "a", "offset": 10**30}, (422, "invalid_value", "offset", "at most 1000000")),
        ({"query": "a", "search_after": {"score": 1}}, (422, "missing_field", "search_after.id", "give it")),
        (
            {"query": "a", "group_by": "hot"},
            (422, "invalid_value", "group_by", "'hot' is boolean; such fields: kind"),
        ),
        ({"query": "a", "facets": {"year": 3}}, (422, "invalid_value", "facets", "'year' is not declared")),
        ({"query": "a", "facets": {"kind": 0}}, (422, "invalid_value", "facets.kind", "at least 1")),
        (
            {"query": "a", "facets": {str(place): "x" for place in range(8_000)}},
            (422, "invalid_value", "facets", "8000 facets are asked for; the limit is 32"),
        ),
        ({"query": "a", "include": ["score"]}, (422, "invalid_value", "include.0", '"scores"')),
        ({"query": {"id": "nobody"}}, (404, "document_not_found", None, "has no document 'nobody'")),
        (
            {"query": {"id": "d01", "window": 1}},
            (422, "invalid_value", "query.window", "it has 1, from 0 on"),
        ),
        ({"query": {"id": "d01", "dense": [1]}}, (422, "unknown_field", "query.dense", "no such field")),
        (
            {"query": {"like": ["d01", "x", "y"], "unlike": ["z"]}},
            (404, "document_not_found", None, "collection 'many' has no document 'x', 'y', 'z'"),
        ),
        (
            {"query": {"like": [f"x{place}" for place in range(12)]}},
            (404, "document_not_found", None, "'x9' and 2 others"),
        ),
        ({"query": {"unlike": ["d01"]}}, (422, "missing_field", "query.like", "query.like is missing")),
        ({"query": {"like": []}}, (422, "invalid_value", "query.like", "use at least 1 item")),
        ({"query": {"like": ["d01"] * 101}}, (422, "invalid_value", "query.like", "use at most 100 items")),
        ({"query": {"like": [1]}}, (422, "invalid_value", "query.like.0", "use a string")),
        (
            {"query": {"like": ["d01"], "unlike": ["d02", "d01"]}},
            (422, "invalid_value", "query.unlike", "'d01' is in like and in unlike"),
        ),
        ({"query": {"like": ["d01"], "text": "a"}}, (422, "unknown_field", "query.text", "no such field")),
        ({"queries": ["a", {"dense": [1.0]}]}, (422, "invalid_value", "queries.1.dense", "")),
        ({"queries": ["a", 3]}, (422, "invalid_value", "queries.1", "is 3; use a string or an object")),
        (
            {"queries": ["a", {"text": "b"}]},
            (422, "invalid_value", "queries.1.dense", "queries.1.dense is missing"),
        ),
        ({"queries": [{"id": "d01", "window": 9}]}, (422, "invalid_value", "queries.0.window", "it has 1")),
    ]:
        status, code, param, message = await refusal(client, **body)
        assert (status, code, param) == expected[:3], (body, message)
        assert expected[3] in message


async def test_ranks_are_fused_where_asked(client: httpx.AsyncClient, many: str) -> None:
    options: dict[str, Any] = {"query": "hot tea", "top_k": 60, "weights": {"sparse": 0.5, "bm25": 2}}
    sums = (await ask(client, **options))["hits"]
    ranks = (await ask(client, **options, fusion="rrf"))["hits"]
    assert {hit["id"]: hit["scores"] for hit in ranks} == {hit["id"]: hit["scores"] for hit in sums}
    weights = {"dense": 1, "sparse": 0.5, "colbert": 1, "bm25": 2}
    for hit in ranks:
        parts = [
            weight
            / (
                60.5
                + sum(other["scores"][side] > hit["scores"][side] for other in sums)
                + sum(other["scores"][side] == hit["scores"][side] for other in sums) / 2
            )
            for side, weight in weights.items()
            if hit["scores"][side]
        ]
        assert hit["score"] == pytest.approx(sum(parts), abs=1e-11)
    assert [hit["id"] for hit in ranks] == sorted(
        (hit["id"] for hit in ranks), key={hit["id"]: (-hit["score"], hit["id"]) for hit in ranks}.__getitem__
    )
    assert (await ask(client, **options, fusion=None))["hits"] == sums
    assert (await refusal(client, query="tea", fusion="max"))[:3] == (422, "invalid_value", "fusion")


async def test_queries_and_their_hits_are_limited(make_client: Any, many: str) -> None:
    async with make_client() as client:
        long = {"documents": [{"id": "long", "text": "tea " * 40}]}
        assert (await client.put("/collections/many/documents", json=long)).status_code == 200
    async with make_client(max_queries=3, max_query_hits=12, max_characters=100) as client:
        await ask(client, queries=["a"] * 3, top_k=4)
        status, _, param, message = await refusal(client, queries=["a"] * 4)
        assert (status, param) == (413, "queries")
        assert "queries has 4 queries; the limit is 3 (setting max_queries)" in message
        assert (await refusal(client, queries=["a"] * 3, top_k=5))[2] == "top_k"
        assert (await refusal(client, queries=["a", "b" * 101], top_k=1))[2] == "queries.1"
        await ask(client, query={"id": "long"})
        status, _, param, message = await refusal(client, query={"id": "long"}, weights={"bm25": 1})
        assert (status, param) == (422, "query.id")
        assert "160 characters for BM25 to read; the limit is 100" in message


async def test_pages_go_through_all_documents_until_they_are_exhausted(
    make_client: Any, data: Path, tiny: Any
) -> None:
    found = Collection.open(data / "collections", "demo").settings
    settings = replace(found, name="long")
    collection = Collection.create(data / "collections", "long", settings)
    texts = [f"{' '.join(WORDS[: place % 8])} tea number {place}" for place in range(700)]
    with collection.writer() as writer:
        writer.add([Document(f"d{place:03}", text) for place, text in enumerate(texts)], encode(tiny, texts))
        writer.publish()
    body: dict[str, Any] = {"collection": "long", "query": "tea", "top_k": 100}
    async with make_client() as client:
        seen, answers = set[str](), []
        for offset in range(0, 2000, 100):
            answers.append(await ask(client, **body, offset=offset))
            seen |= {hit["id"] for hit in answers[-1]["hits"]}
            if answers[-1]["exhausted"]:
                break
        assert [answer["candidates"]["dense"] for answer in answers] == [
            200,
            200,
            400,
            400,
            800,
            800,
            800,
            800,
        ]
        assert len(seen) == 700
        few = {**body, "candidates": {"dense": 30, "sparse": 0}}
        last = await ask(client, **few, offset=20)
        assert (len(last["hits"]), last["exhausted"]) == (10, True)
        full = await ask(client, **{**few, "top_k": 20})
        assert (len(full["hits"]), full["exhausted"]) == (20, False)
    async with make_client(max_candidates=250, max_top_k=250) as client:
        last = await ask(client, **body, offset=690)
        assert (last["candidates"]["dense"], last["exhausted"]) == (250, True)


async def test_a_deep_page_is_empty(client: httpx.AsyncClient, many: str) -> None:
    assert (await ask(client, query="tea", offset=1_000_000))["hits"] == []
    assert (await ask(client, query="tea", search_after={"score": -1e9, "id": ""}))["hits"] == []
    assert (await ask(client, query="tea", min_score=1e9))["hits"] == []
