"""Queries made of stored documents: Rocchio by hand, and what of them is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.errors import DocumentNotFoundError, InvalidQueryError
from tercet.index.reading import examples
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Representations


def sides(query: Representations) -> tuple[Any, dict[int, float], list[list[float]]]:
    """The dense vector, the lexical weights and the token vectors of a query."""
    assert query.dense is not None
    assert query.sparse is not None
    token_ids, weights = query.sparse.row(0)
    tokens = [] if query.colbert is None else query.colbert.vectors.tolist()
    return query.dense[0], dict(zip(token_ids.tolist(), weights.tolist(), strict=True)), tokens


def test_by_hand(build: Any, three: Any) -> None:
    snapshot = build(three, token_codec="float16").snapshot()
    dense, terms, tokens = sides(snapshot.examples_query(["a", "b"]).representations)
    assert dense.tolist() == pytest.approx([0.5**0.5, 0.5**0.5])
    assert terms == pytest.approx({1: 0.25, 4: 0.5, 5: 1.5})
    assert tokens == [[1, 0], [0, 1], [0, 0.5]]
    made = snapshot.examples_query(["a"], ["b", "c"])
    dense, terms, tokens = sides(made.representations)
    half = 0.5**0.5
    minus = np.array([1, 0]) - 0.5 * (np.array([0, 1]) + np.array([half, half])) / 2
    assert dense.tolist() == pytest.approx((minus / np.linalg.norm(minus)).tolist(), abs=1e-6)
    assert terms == pytest.approx({1: 0.5 - 0.5 * 1.0 / 2, 4: 1.0})  # those of 2 and 5 are below 0
    assert tokens == [[1, 0]]
    assert made.text == "Fruit\napple"
    assert snapshot.examples_query(["b", "a", "b"]).text == "boat\nFruit\napple"


@pytest.fixture(params=[500, 30])
def snapshot(request: pytest.FixtureRequest, build: Any, random_corpus: Any) -> Snapshot:
    opened: Snapshot = build(random_corpus(100, 4), segment=request.param, lexical="idf").snapshot()
    return opened


def test_examples_are_no_hits_and_take_no_place(snapshot: Snapshot) -> None:
    like, unlike = ["d0003", "d0050", "d0077"], ["d0010", "d0099"]
    query = snapshot.examples_query(like, unlike).representations
    ids, _ = snapshot.score(query, snapshot.retrieve(query, candidates=CandidateLimits(20, 0)))
    assert {*like} <= {*ids}
    best = snapshot.search(query, top_k=100, candidates=CandidateLimits(20, 0), without=[*like, *unlike])
    found = {hit.document.id for hit in best.hits}
    assert not found & {*like, *unlike}
    assert found >= {*ids} - {*like, *unlike}
    assert len(found) >= 20
    for weights in (Weights(), Weights(1, 0, 0), Weights(0, 1, 0), Weights(0, 0, 1)):
        every = snapshot.search(query, top_k=200, weights=weights).hits
        left = snapshot.search(query, top_k=3, weights=weights, without=[*like, *unlike, "gone"]).hits
        assert left == [hit for hit in every if hit.document.id not in {*like, *unlike}][:3]


def test_hits_move_towards_the_wanted_and_away_from_the_unwanted(snapshot: Snapshot) -> None:
    """`s_dense` with the unwanted is less than without saying so."""
    for like, unlike in (("d0001", "d0002"), ("d0005", "d0040")):
        with_both, alone = (
            sides(snapshot.examples_query([like], away).representations)[0] for away in ([unlike], [])
        )
        stored = snapshot.stored(unlike)[1]
        assert stored is not None
        assert with_both @ stored.dense[0] < alone @ stored.dense[0]


def test_the_query_does_not_depend_on_segments(build: Any, random_corpus: Any) -> None:
    corpus = random_corpus(60, 4)
    one, many = (
        build(corpus, name, segment=size, token_codec="float16").snapshot()
        for name, size in (("one", 500), ("many", 13))
    )
    asked = ["d0001", "d0030", "d0059"], ["d0002", "d0044"]
    first, second = (sides(each.examples_query(*asked).representations) for each in (one, many))
    assert np.array_equal(first[0], second[0])
    assert first[1:] == second[1:]


def test_token_vectors_and_terms_are_bounded(
    build: Any, random_corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, encoded = random_corpus(30, 4)
    snapshot = build((documents, encoded), token_codec="float16").snapshot()
    monkeypatch.setattr(examples, "MOST_TOKENS", 12)
    monkeypatch.setattr(examples, "MOST_TERMS", 5)
    like = [document.id for document in documents[:3]]
    _, terms, tokens = sides(snapshot.examples_query(like).representations)
    monkeypatch.undo()
    _, every, _ = sides(snapshot.examples_query(like).representations)
    assert len(terms) == min(5, len(every))
    assert sorted(terms.values()) == sorted(every.values())[-5:]
    expected = []
    for place in range(3):
        text = encoded.colbert.row(place).astype(np.float16).tolist()
        count = min(4, len(text))
        expected += [text[each * (len(text) - 1) // max(1, count - 1)] for each in range(count)]
    assert tokens == expected


def test_windows_count_together(build_windowed: Any, windowed_corpus: Any) -> None:
    documents, encoded, windows = windowed_corpus(20, 3)
    snapshot = build_windowed((documents, encoded, windows)).snapshot()
    place = int(np.argmax(np.diff(windows.offsets)))
    rows = np.arange(windows.offsets[place], windows.offsets[place + 1])
    assert len(rows) > 1
    dense, terms, tokens = sides(snapshot.examples_query([documents[place].id]).representations)
    mean = encoded.dense[rows].astype(np.float64).mean(axis=0)
    assert dense.tolist() == pytest.approx((mean / np.linalg.norm(mean)).tolist(), abs=1e-3)
    largest: dict[int, float] = {}
    for row in rows:
        for id, weight in zip(*map(np.ndarray.tolist, encoded.sparse.row(row)), strict=True):
            largest[id] = max(weight, largest.get(id, 0))
    assert terms == pytest.approx(largest, rel=1e-3)
    assert len(tokens) == sum(len(encoded.colbert.row(row)) for row in rows)


def test_without_token_vectors_there_are_none(build: Any, three: Any) -> None:
    snapshot = build(three, token_codec="none").snapshot()
    query = snapshot.examples_query(["a"], ["b"]).representations
    assert query.colbert is None
    assert [hit.document.id for hit in snapshot.search(query, without=["a", "b"]).hits] == ["c"]


def test_a_blank_document_is_an_example_of_nothing(build: Any, plain_representations: Any) -> None:
    corpus = (
        [Document("a", ""), Document("b", "x")],
        plain_representations([[0, 0], [1, 0]], [{}, {}], [[], []]),
    )
    snapshot = build(corpus).snapshot()
    query = snapshot.examples_query(["a"]).representations
    assert sides(query)[0].tolist() == [0, 0]
    assert snapshot.search(query, without=["a"]).hits == []


def test_bad_examples_are_named(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidQueryError, match="give the id of one at least"):
        snapshot.examples_query([], ["d0001"])
    with pytest.raises(InvalidQueryError, match="like has 101 ids; the limit is 100"):
        snapshot.examples_query(["d0001"] * 101)
    with pytest.raises(InvalidQueryError, match="document 'd0001' is in like and in unlike"):
        snapshot.examples_query(["d0001"], ["d0001"])
    with pytest.raises(DocumentNotFoundError, match=r"collection 'demo' has no document 'x', 'y'$"):
        snapshot.examples_query(["x", "d0001"], ["y"])
