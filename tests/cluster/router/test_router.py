"""The router over HTTP answers as one server that has all documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from tercet.cluster.router.app import create_router_app
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.router.conftest import refusal_of
from tests.cluster.router.corpora import uneven_corpus
from tests.service.conftest import real_server
from tests.tiny.cross_encoders import write_reranker

COLLECTION = {
    "fields": {"year": "integer", "tags": "keyword", "kind": "keyword", "new": "boolean"},
    "bm25": True,
    "lexical": "idf",
    "dense_kind": "flat",
}
QUERIES: list[dict[str, Any]] = [
    {"query": "green tea"},
    {"query": "train station", "explain": True, "top_k": 3},
    {
        "query": "hot water",
        "weights": {"bm25": 1},
        "explain": True,
        "boosts": [{"filter": {"eq": {"new": True}}, "add": 0.2}],
    },
    {"query": "black tea", "highlight": True, "group_by": "kind"},
    {"query": "tea", "facets": {"tags": 2, "kind": 9, "new": 2}, "filter": {"gte": {"year": 2003}}},
    {"query": {"id": "d3.0"}, "top_k": 5},
    {"query": {"like": ["d3.0", "d5.0"], "unlike": ["d8.0"]}, "weights": {"bm25": 0.5}},
    {"queries": ["tea", "the rail", {"id": "d3.0"}], "fusion": "rrf", "top_k": 4},
    {"query": "leaf", "offset": 3, "top_k": 4, "min_score": 0.1, "include": ["scores"]},
    {"query": "leaf", "search_after": {"score": 1.0, "id": "d5"}},
    {"query": "steam", "candidates": {"dense": 5, "sparse": 3}},
]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[list[str]]:
    """The addresses of two servers without collections."""
    root = tmp_path_factory.mktemp("shards")
    with ExitStack() as stack:
        yield [
            stack.enter_context(real_server(create_app(Settings(data=root / name), tiny)))
            for name in ("first", "second")
        ]


@pytest.fixture(scope="module")
def urls(
    tmp_path_factory: pytest.TempPathFactory, tiny: Encoder, shards: list[str]
) -> Iterator[tuple[str, str]]:
    """The addresses of a router over the shards, and of a server with the same documents, written live."""
    root = tmp_path_factory.mktemp("servers")
    documents, _ = uneven_corpus(60, 3, 1)
    written = [
        {"id": each.id, "text": each.text, "title": each.title, "metadata": each.metadata}
        for each in documents
    ]
    with suppress(ImportError):  # where there is no torch
        write_reranker(root / "rerankers" / "judge")
    before = Settings(data=root / "router", shards=tuple(shards), rerankers=root / "rerankers")
    alone = Settings(data=root / "one", rerankers=root / "rerankers")
    with (
        real_server(create_router_app(before, tiny)) as router,
        real_server(create_app(alone, tiny)) as one,
    ):
        for url in (one, router):
            assert httpx.put(f"{url}/collections/demo", json=COLLECTION, timeout=60).status_code == 201
            for start in range(0, len(written), 25):
                body = {"documents": written[start : start + 25]}
                answer = httpx.put(f"{url}/collections/demo/documents", json=body, timeout=60)
                assert answer.status_code == 200, answer.text
        yield router, one


def declare(servers: Sequence[str], fields: dict[str, str]) -> None:
    """Declares fields in servers, one after the other."""
    for server in servers:
        declared = httpx.post(f"{server}/collections/demo/fields", json={"fields": fields}, timeout=60)
        assert declared.is_success, declared.text


def compare(urls: tuple[str, str], body: dict[str, Any], positions: Sequence[Any] = ()) -> dict[str, Any]:
    """What both answer, which has to be the same. positions: that they are to have reached."""
    bodies = [{**body, "min_position": position} for position in positions] or [body, body]
    found, expected = (
        httpx.post(f"{url}/search", json=own, timeout=60) for url, own in zip(urls, bodies, strict=True)
    )
    assert expected.status_code == 200, expected.text
    assert found.status_code == 200, (body, found.text)
    assert _told(found.json()) == _told(expected.json()), body
    answer: dict[str, Any] = found.json()
    return answer


@pytest.mark.slow
def test_answers_are_those_of_one_server(urls: tuple[str, str]) -> None:
    for query in QUERIES:
        compare(urls, {"collection": "demo", **query})


def test_a_re_ranker_reads_the_hits_of_all_shards(urls: tuple[str, str]) -> None:
    pytest.importorskip("transformers", reason="re-rankers run in torch: install tercet[torch]")
    hits = compare(urls, {"collection": "demo", "query": "green tea", "reranker": "judge"})["hits"]
    logits = [hit["scores"]["reranker"] for hit in hits]
    assert logits == sorted(logits, reverse=True)
    assert len(set(logits)) > 5


def test_searches_see_each_write(urls: tuple[str, str]) -> None:
    """Also by their idf, which is that of all documents of then."""
    search = {"collection": "demo", "query": "black steam kettle", "weights": {"bm25": 1}, "top_k": 30}
    positions: list[Any] = []
    for number in range(8):
        for url in urls:
            documents = [{"id": f"new{number}", "text": "kettle steam " * (1 + number % 3)}]
            answer = httpx.put(f"{url}/collections/demo/documents", json={"documents": documents}, timeout=60)
            assert answer.is_success, answer.text
            if number % 3 == 2:
                answer = httpx.delete(f"{url}/collections/demo/documents/new{number - 1}", timeout=60)
                assert answer.is_success, answer.text
            positions.append(answer.json()["position"])
        found = {hit["id"] for hit in compare(urls, search, positions[-2:])["hits"]}
        assert f"new{number}" in found
        assert (f"new{number - 1}" in found) == (number % 3 != 2 and number > 0)


def test_defaults_are_stored_in_all_shards(urls: tuple[str, str], shards: list[str]) -> None:
    body = {"weights": {"dense": 1, "sparse": 0.5, "colbert": 1, "bm25": 0.25}, "candidates": {"dense": 17}}
    for url in urls:
        assert httpx.put(f"{url}/collections/demo/defaults", json=body, timeout=60).is_success
    answer = compare(urls, {"collection": "demo", "query": "tea"})
    assert (answer["weights"]["bm25"], answer["candidates"]["dense"]) == (0.25, 17)
    for shard in shards:
        stored = httpx.get(f"{shard}/collections/demo", timeout=60).json()["defaults"]
        assert stored["weights"] == body["weights"]
    for url in urls:
        used = httpx.get(f"{url}/collections/demo/defaults", timeout=60).json()
        assert (used["weights"], used["candidates"]["dense"], used["stored"]) == (body["weights"], 17, True)
        assert httpx.delete(f"{url}/collections/demo/defaults", timeout=60).json()["defaults"] is None


def test_pages_keep_to_their_snapshot(urls: tuple[str, str]) -> None:
    router, _ = urls
    search = {"collection": "demo", "query": "tea", "top_k": 4}
    first = httpx.post(f"{router}/search", json=search, timeout=60).json()
    later = {**search, "offset": 4, "snapshot": first["snapshot"]}
    assert httpx.post(f"{router}/search", json=later, timeout=60).status_code == 200
    for url in urls:
        body = {"documents": [{"id": "d0.0", "text": "tea"}]}
        assert httpx.put(f"{url}/collections/demo/documents", json=body, timeout=60).is_success
    gone = httpx.post(f"{router}/search", json=later, timeout=60)
    assert (gone.status_code, gone.json()["error"]["code"]) == (409, "snapshot_gone")


@pytest.mark.slow
def test_several_collections_are_searched_as_one(urls: tuple[str, str]) -> None:
    for url in urls:
        assert httpx.put(f"{url}/collections/more", json=COLLECTION).status_code == 201
        documents = [
            {"id": f"d{row}.0", "text": f"green tea {row}", "metadata": {"kind": "odd"}} for row in range(9)
        ]
        put = httpx.put(f"{url}/collections/more/documents", json={"documents": documents}, timeout=60)
        assert put.is_success, put.text
        assert httpx.put(f"{url}/aliases/both", json={"collections": ["demo", "more"]}).is_success
    seen = set[str]()
    cursor = {"score": 1.0, "id": "d5.0", "collection": "demo"}
    further: list[dict[str, Any]] = [
        {"query": "leaf", "search_after": cursor},
        {"query": "tea", "search_after": cursor, "weights": {"bm25": 0.5}, "top_k": 7},
        {"queries": ["green tea", "the rail"], "fusion": "rrf"},
        {"query": "green tea", "fusion": "rrf", "group_by": "kind", "offset": 1},
        {"query": "green tea", "boosts": [{"filter": {"exists": "kind"}, "add": 0.4}], "offset": 2},
    ]
    for query in (*QUERIES[:5], *QUERIES[8:], *further):
        answer = compare(urls, {"top_k": 40, **query, "collection": "both"})
        seen |= {hit["collection"] for hit in answer.get("hits", ())}  # several queries have results
    assert seen == {"demo", "more"}


def test_what_shards_are_told_directly_is_seen(urls: tuple[str, str], shards: list[str]) -> None:
    router, one = urls
    search = {"collection": "demo", "query": "tea"}
    assert httpx.post(f"{router}/search", json=search, timeout=60).is_success
    declare((*shards, one), {"size": "integer"})
    assert httpx.post(f"{router}/search", json=search, timeout=60).is_success  # begun again
    by_size = {**search, "filter": {"exists": "size"}}
    assert httpx.post(f"{router}/search", json=by_size, timeout=60).json()["hits"] == []


@pytest.mark.slow
def test_fields_are_known_soon_without_a_search(urls: tuple[str, str], shards: list[str]) -> None:
    router, one = urls
    declare((*shards, one), {"color": "keyword"})
    by_color = {"collection": "demo", "query": "tea", "filter": {"exists": "color"}}
    while httpx.post(f"{router}/search", json=by_color, timeout=60).status_code == 422:
        time.sleep(0.05)
    assert httpx.post(f"{router}/search", json=by_color, timeout=60).json()["hits"] == []


def test_fields_that_not_all_shards_have_yet_are_not_there(urls: tuple[str, str], shards: list[str]) -> None:
    """As while they are declared: searches go on."""
    router, one = urls
    by_shape = {"collection": "demo", "query": "tea", "filter": {"exists": "shape"}}
    for some in (shards[1:], (shards[0], one)):
        assert httpx.post(f"{router}/search", json=by_shape, timeout=60).status_code == 422
        declare(some, {"shape": "keyword"})
        compare(urls, {"collection": "demo", "query": "tea", "facets": {"kind": 2}})
    while httpx.post(f"{router}/search", json=by_shape, timeout=60).status_code == 422:
        time.sleep(0.05)


def test_texts_are_ranked_by_the_idf_of_all_shards(urls: tuple[str, str]) -> None:
    body = {"query": "black tea", "inputs": ["tea", "the black leaf", "train"], "collection": "demo"}
    found, expected = (httpx.post(f"{url}/rerank", json=body, timeout=60).json() for url in urls)
    found["took_ms"] = expected["took_ms"] = None
    assert found == expected


@pytest.mark.slow
def test_wrong_queries_are_refused_alike(urls: tuple[str, str]) -> None:
    for wrong in (
        {"collection": "none", "query": "tea"},
        {"collection": "demo", "query": "tea", "filter": {"eq": {"unknown": 1}}},
        {"collection": "demo", "query": {"id": "none"}},
        {"collection": "demo", "query": {"id": "d3.0", "window": 4}},
        {"collection": "demo", "query": "tea", "group_by": "year"},
        {"collection": "demo", "query": "tea", "facets": {"year": 3}},
        {"collection": "demo", "query": {"dense": [1.0]}},
        {
            "collection": "demo",
            "query": {"sparse": {"token_ids": [10**6], "weights": [1]}},
            "weights": {"dense": 0, "colbert": 0},
        },
    ):
        found, expected = (httpx.post(f"{url}/search", json=wrong, timeout=60) for url in urls)
        assert found.status_code == expected.status_code < 500
        assert found.json() == refusal_of(expected)


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """All that does not tell of time or version."""
    left_out = ("took_ms", "snapshot")
    told = {name: value for name, value in answer.items() if name not in left_out}
    if "results" in told:
        told["results"] = [_told(each) for each in told["results"]]
    return told
