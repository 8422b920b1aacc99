"""Several collections searched as one answer as one of all their documents does, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Cursor, Document, Hit, Page, Weights
from tercet.index.collection import Collection
from tercet.index.documents.boosts import parse_boost
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import AmbiguousDocumentError, InvalidQueryError, UnlikeCollectionsError
from tercet.index.live.collection import LiveCollection
from tercet.index.reading.ordered import Order
from tercet.index.snapshot import Snapshot

FIELDS = {"year": "integer", "tags": "keyword"}
ALIKE = {"lexical": "idf", "bm25": True, "fields": FIELDS}
TEXT = "text 17 or 29"
DIVISIONS = [[0, 0, 1], [0, 1, 2]]
SEARCHES: list[dict[str, Any]] = [
    {},
    {"top_k": 200},
    {"weights": Weights(1, 0, 0), "top_k": 7},
    {"weights": Weights(0.4, 0.3, 0, 1.0)},
    {"weights": Weights(0, 1, 0), "candidates": CandidateLimits(0, 5, 0)},
    {"candidates": CandidateLimits(3, 4, 5), "weights": Weights(1, 1, 1, 1)},
    {"fusion": "rrf", "weights": Weights(1, 1, 1, 1)},
    {"filter": parse_filter({"gte": {"year": 2003}}), "group_by": "tags"},
    {"page": Page(offset=5, min_score=0.2)},
    {
        "boosts": [
            parse_boost({"filter": {"eq": {"tags": "two"}}, "add": 0.25}),
            parse_boost({"field": "year", "decay": "exp", "origin": 2004, "scale": 2, "add": 0.5}),
        ],
    },
    {"without": ["d0003", "d0017"]},
]


def described(hits: Sequence[Hit]) -> list[Any]:
    return [(hit.document.id, hit.score, hit.scores, hit.document.text, hit.window) for hit in hits]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Of what is open."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture(params=DIVISIONS, ids=["two", "three"])
def pair(
    request: pytest.FixtureRequest,
    build: Any,
    root: Path,
    random_corpus: Any,
    make_settings: Any,
    stack: ExitStack,
) -> tuple[Snapshot, Snapshot]:
    """One collection of all documents, nine of which are alike, and the same documents over several: built,
    built in several segments, and live with writes that no segment has and a document that was deleted.
    """
    documents, encoded = random_corpus(120, 3, repeat=9)
    part = np.array([request.param[number % 3] for number in range(120)])
    gone = documents[5].id
    parts = []
    for number in range(max(request.param) + 1):
        rows = np.flatnonzero(part == number)
        corpus = [documents[row] for row in rows.tolist()], encoded.take(rows)
        name = ("zebra", "apple", "mango")[number]
        if number != 1:
            collection = build(corpus, name=name, segment=(500, 11)[number // 2], **ALIKE)
            opened = stack.enter_context(LiveCollection(collection)) if number == 2 else None
            if opened is not None:
                opened.delete([gone])
            parts.append(collection.snapshot() if opened is None else opened.snapshot())
            continue
        live = stack.enter_context(
            LiveCollection(Collection.create(root, name, make_settings(encoded, name, **ALIKE)))
        )
        live.put(corpus[0][:20], corpus[1].take(np.arange(20)))
        live.put(corpus[0][20:], corpus[1].take(np.arange(20, len(rows))))
        live.delete([gone])
        parts.append(live.snapshot())
    kept = np.array([row for row in range(120) if row != 5])
    one = build(([documents[row] for row in kept.tolist()], encoded.take(kept)), name="one", **ALIKE)
    return one.snapshot(), Snapshot.united("all", parts)


@pytest.mark.slow
@pytest.mark.parametrize("asked", SEARCHES, ids=lambda asked: "-".join(asked) or "plain")
def test_a_search_of_several_is_that_of_one(
    pair: tuple[Snapshot, Snapshot], random_texts: Any, asked: dict[str, Any]
) -> None:
    one, several = pair
    assert (one.documents, several.settings.name) == (several.documents, "all")
    found = 0
    for seed in range(4):
        query = random_texts(1, seed)
        left, right = (snapshot.search(query, text=TEXT, **{"top_k": 20, **asked}).hits for snapshot in pair)
        found += len(left)
        assert described(left) == described(right)
        assert {hit.document.collection for hit in left} <= {None}
        assert {hit.document.collection for hit in right} <= {"zebra", "apple", "mango"}
    assert found


def test_pages_behind_a_cursor_are_those_of_one(pair: tuple[Snapshot, Snapshot], random_texts: Any) -> None:
    query = random_texts(1, 30)
    whole = pair[0].search(query, top_k=200).hits
    found: list[Hit] = []
    while True:
        after = None
        if found:
            last = found[-1]
            after = Cursor(last.score, last.document.id, last.document.collection)
        page = pair[1].search(query, top_k=7, page=Page(after=after)).hits
        if not page:
            break
        found += page
    assert described(found) == described(whole)


def test_all_else_that_is_read_is_that_of_one(pair: tuple[Snapshot, Snapshot], random_texts: Any) -> None:
    one, several = pair
    query, condition = random_texts(1, 31), parse_filter({"in": {"tags": ["two", "five"]}})
    wanted = {"tags": 2}
    assert one.facets(wanted) == several.facets(wanted)
    assert one.facets(wanted, condition) == several.facets(wanted, condition)
    assert one.count() == several.count() == 119
    assert one.count(condition) == several.count(condition)
    hits = several.search(query, text=TEXT, weights=Weights(1, 1, 1, 1)).hits
    ids, collections = [hit.document.id for hit in hits], [hit.document.collection for hit in hits]
    for left, right in zip(
        one.explanations(query, ids, TEXT), several.explanations(query, ids, TEXT, collections), strict=True
    ):
        assert left.terms.products.tolist() == right.terms.products.tolist()
        assert left.alignment.similarities.tolist() == right.alignment.similarities.tolist()
        assert left.bm25 is not None
        assert right.bm25 is not None
        assert left.bm25.products.tolist() == right.bm25.products.tolist()
    boosts = SEARCHES[-2]["boosts"]
    assert (one.boosts_of(ids, boosts) == several.boosts_of(ids, boosts, collections)).all()
    assert one.encodings_of(ids) == several.encodings_of(ids, collections) == len(ids)
    examples = [snapshot.examples_query(ids[:3], ids[3:5]) for snapshot in pair]
    left, right = (
        snapshot.search(example.representations, without=ids[:5]).hits
        for snapshot, example in zip(pair, examples, strict=True)
    )
    assert described(left) == described(right)
    stored = several.stored_query(ids[0])
    assert stored.text == one.stored_query(ids[0]).text
    document = several.get(ids[0])
    assert document is not None
    assert replace(document, collection=None) == one.get(ids[0])
    assert several.get("none") is None


@pytest.mark.parametrize("order", [None, Order("year"), Order("tags", descending=True)])
def test_lists_are_those_of_one(pair: tuple[Snapshot, Snapshot], order: Order | None) -> None:
    listed = []
    for snapshot in pair:
        found: list[str] = []
        after: Any = None
        while True:
            if order is None:
                collection = None if after is None else after.collection
                page = snapshot.page(None if after is None else after.id, 9, None, collection)
            else:
                placed = snapshot.ordered_page(order, after, 9)
                page = [snapshot.read(each) for each in placed]
            if not page:
                break
            found += [document.id for document in page]
            after = page[-1] if order is None else placed[-1].at
        listed.append(found)
    assert len(listed[0]) == 119
    assert listed[0] == listed[1]


@pytest.fixture
def copies(build: Any, three: Any) -> Snapshot:
    """Documents a, b and c, alike in three collections."""
    names = ("second", "third", "first")
    return Snapshot.united("all", [build(three, name=name, **ALIKE).snapshot() for name in names])


def test_an_id_in_several_is_a_hit_of_each_in_order_of_collection(copies: Snapshot, three_query: Any) -> None:
    order = [(id, name) for id in "cab" for name in ("first", "second", "third")]

    def found(**options: Any) -> list[tuple[str, str | None]]:
        hits = copies.search(three_query, **options).hits
        return [(hit.document.id, hit.document.collection) for hit in hits]

    assert found() == order
    for top_k in range(1, 9):
        assert found(top_k=top_k) == order[:top_k]
        assert found(top_k=top_k, weights=Weights(1, 0, 0))[:3] == order[3:6][:top_k]
    for limit in range(1, 4):
        alone = found(candidates=CandidateLimits(limit, 0), weights=Weights(1, 0, 0))
        assert alone == order[3 : 3 + limit]
    hits = copies.search(three_query).hits
    for place, hit in enumerate(hits):
        cursor = Cursor(hit.score, hit.document.id, hit.document.collection)
        assert found(page=Page(after=cursor)) == order[place + 1 :]
        without = Cursor(hit.score, hit.document.id)
        assert found(page=Page(after=without)) == order[3 * (place // 3) + 3 :]
    assert found(page=Page(after=Cursor(hits[0].score, "c", "g"))) == order[1:]
    assert found(without=["a"]) == order[:3] + order[6:]


def test_an_id_in_several_is_listed_for_each_page_by_page(copies: Snapshot) -> None:
    whole = [(id, name) for id in "abc" for name in ("first", "second", "third")]
    for limit in range(1, 5):
        found: list[Document] = []
        while page := copies.page(
            found[-1].id if found else None, limit, None, found[-1].collection if found else None
        ):
            found += page
        assert [(each.id, each.collection) for each in found] == whole
        placed: list[Any] = []
        while some := copies.ordered_page(Order("year"), placed[-1].at if placed else None, limit):
            placed += some
        assert [(each.at.id.decode(), each.at.collection) for each in placed] == whole
    assert [each.id for each in copies.page("a", 3)] == ["b", "b", "b"]


def test_an_id_in_several_is_meant_by_its_collection_alone(copies: Snapshot, three_query: Any) -> None:
    message = "'a' is in collections 'first', 'second' and 'third', all of which 'all' means: say which"
    for act in (
        lambda: copies.get("a"),
        lambda: copies.stored_query("a"),
        lambda: copies.examples_query(["a"]),
        lambda: copies.stored("a")[1],
        lambda: copies.explanations(three_query, ["a"])[0],
    ):
        with pytest.raises(AmbiguousDocumentError, match=message):
            act()
    assert [each.collection for each in copies.get_all(["a"])[0]] == ["first", "second", "third"]
    assert copies.stored_query("a", collection="second").text == "Fruit\napple"
    assert copies.explanations(three_query, ["a"], None, ["third"])
    with pytest.raises(InvalidQueryError, match="'a' is not in snapshot first:000001,"):
        copies.explanations(three_query, ["a"], None, ["fourth"])


def test_versions_tell_of_each_collection(copies: Snapshot) -> None:
    assert copies.version == "first:000001,second:000001,third:000001"


def test_unlike_collections_and_fields_that_not_all_declare_are_refused(
    build: Any, three: Any, three_query: Any
) -> None:
    one = build(three, name="one", fields={"year": "integer", "tags": "keyword"}).snapshot()
    two = build(three, name="two", fields={"year": "integer"}).snapshot()
    both = Snapshot.united("both", [one, two])
    assert both.count(parse_filter({"eq": {"year": 2020}})) == 2
    with pytest.raises(InvalidQueryError, match=r"'tags' is not declared in collection 'two' of.*fields two"):
        both.count(parse_filter({"eq": {"tags": "red"}}))
    with pytest.raises(
        InvalidQueryError, match=r"'x' is not declared in the.*this alias; all.*declare: year"
    ):
        both.count(parse_filter({"eq": {"x": "red"}}))
    other = build(three, name="other", token_codec="float16").snapshot()
    with pytest.raises(
        UnlikeCollectionsError, match=r"token_codec is int8 in the one and float16.*--token-codec int8"
    ):
        Snapshot.united("all", [one, other])


def test_windows_of_several_are_scored_as_those_of_one(
    build_windowed: Any, windowed_corpus: Any, windows_between: Any, random_texts: Any
) -> None:
    corpus = windowed_corpus(60, 5)
    middle = int(corpus[2].offsets[25])
    one = build_windowed(corpus, name="one").snapshot()
    parts = [
        build_windowed(windows_between(corpus, *ends), name=name).snapshot()
        for name, ends in (("b", (0, middle)), ("a", (middle, len(corpus[1]))))
    ]
    several = Snapshot.united("all", parts)
    for seed in range(3):
        query = random_texts(1, seed)
        assert described(one.search(query, top_k=30).hits) == described(several.search(query, top_k=30).hits)
