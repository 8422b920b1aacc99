"""Pages of hits: put together they are the one long list, whichever way they are asked for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.candidates import CandidateLimits, Cursor, Hit, Page, Weights
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import DocumentNotFoundError, InvalidQueryError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.search.choice import Choice
from tercet.index.snapshot import Snapshot

LIMITS = CandidateLimits(30, 25)
FIELDS = {"year": "integer", "tags": "keyword"}
EVERY_YEAR_BUT = parse_filter({"not": {"eq": {"year": 2003}}})

asked = {
    "weights": st.sampled_from(
        [Weights(), Weights(1, 0, 0), Weights(0, 0, 1), Weights(0.15, 0.5, 0.35), Weights(1e-6, 0, 1e-7)]
    ),
    "filter": st.sampled_from([None, EVERY_YEAR_BUT]),
    "group_by": st.sampled_from([None, "tags"]),
}
few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def snapshot(build: Any, random_corpus: Any) -> Snapshot:
    """Seventy documents in three segments, of which twelve are alike; some have no tag, some have several."""
    opened: Snapshot = build(random_corpus(70, 8, repeat=12), segment=30, fields=FIELDS).snapshot()
    return opened


def hits_of(snapshot: Snapshot, query: Any, top_k: int = 200, **wanted: Any) -> list[Hit]:
    return snapshot.search(query, top_k=top_k, candidates=LIMITS, **wanted).hits


@pytest.mark.slow
@few
@given(seed=st.integers(0, 20), size=st.integers(1, 12), wanted=st.fixed_dictionaries(asked))
def test_pages_are_the_one_long_list(
    snapshot: Snapshot, random_texts: Any, seed: int, size: int, wanted: dict[str, Any]
) -> None:
    query = random_texts(1, seed)
    whole = hits_of(snapshot, query, **wanted)
    assert len(whole) < 70
    by_offset, behind = list[Hit](), list[Hit]()
    while len(by_offset) % size == 0 and len(by_offset) <= len(whole):
        page = hits_of(snapshot, query, size, page=Page(offset=len(by_offset)), **wanted)
        by_offset += page
        after = Cursor(behind[-1].score, behind[-1].document.id) if behind else None
        behind += hits_of(snapshot, query, size, page=Page(after=after), **wanted)
        if not page:
            break
    assert by_offset == whole
    assert behind == whole


@few
@given(seed=st.integers(0, 20), top_k=st.integers(1, 60), wanted=st.fixed_dictionaries(asked))
def test_groups_are_those_of_the_full_list(
    snapshot: Snapshot, random_texts: Any, seed: int, top_k: int, wanted: dict[str, Any]
) -> None:
    query = random_texts(1, seed)
    seen, expected = set[str](), list[Hit]()
    for hit in hits_of(snapshot, query, **{**wanted, "group_by": None}):
        tags = set(hit.document.metadata["tags"])
        if not tags or tags - seen:
            expected.append(hit)
        seen |= tags
    assert hits_of(snapshot, query, top_k, **{**wanted, "group_by": "tags"}) == expected[:top_k]


@few
@given(seed=st.integers(0, 20), place=st.integers(0, 25), wanted=st.fixed_dictionaries(asked))
def test_no_hit_is_below_the_least_score(
    snapshot: Snapshot, random_texts: Any, seed: int, place: int, wanted: dict[str, Any]
) -> None:
    query = random_texts(1, seed)
    whole = hits_of(snapshot, query, **wanted)
    least = whole[min(place, len(whole) - 1)].score
    expected = [hit for hit in whole if hit.score >= least]
    for top_k in (3, 200):
        found = hits_of(snapshot, query, top_k, page=Page(min_score=least), **wanted)
        assert found == expected[:top_k]
    assert hits_of(snapshot, query, page=Page(min_score=whole[0].score + 1e-6), **wanted) == []


def test_a_cursor_need_not_be_a_hit(snapshot: Snapshot, random_texts: Any) -> None:
    query = random_texts(1, 3)
    whole = hits_of(snapshot, query)
    for one, other in pairwise(whole):
        between = (one.score + other.score) / 2
        expected = whole[whole.index(other) :]
        if one.score > other.score:
            assert hits_of(snapshot, query, page=Page(after=Cursor(between, "x"))) == expected
        else:  # of the same score those whose ids follow
            gone = Cursor(one.score, one.document.id + "\0")
            assert hits_of(snapshot, query, page=Page(after=gone)) == expected
    assert hits_of(snapshot, query, page=Page(after=Cursor(-9, ""))) == []
    assert hits_of(snapshot, query, page=Page(offset=1_000_000)) == []


def test_a_page_of_equal_sums_begins_behind_its_cursor() -> None:
    choice = Choice(4, PackedBytes.of([b"a", b"b", b"c", b"d"]).gather, 2, Page(after=Cursor(0.5, "b")))
    assert choice.of(np.arange(4), np.array([0.7, 0.5, 0.5, 0.5])).tolist() == [2, 3]


def test_pages_that_cannot_be_are_refused(snapshot: Snapshot, random_texts: Any) -> None:
    for page, message in (
        (Page(offset=-1), "offset is -1; use at least 0"),
        (Page(offset=1, after=Cursor(1, "a")), "not both; leave one out"),
        (Page(after=Cursor(float("nan"), "a")), "the score of search_after is nan; use a finite number"),
        (Page(min_score=float("inf")), "min_score is inf; use a finite number"),
    ):
        with pytest.raises(InvalidQueryError, match=message):
            hits_of(snapshot, random_texts(1, 1), page=page)
    for field, reason in (
        ("year", "is integer; such fields: tags"),
        ("color", "is not declared in this collection; declared fields: tags, year"),
    ):
        with pytest.raises(InvalidQueryError, match=f"type keyword, but '{field}' {reason}"):
            hits_of(snapshot, random_texts(1, 1), group_by=field)


@pytest.mark.parametrize("group_by", [None, "tags"])
def test_hits_without_contents_are_the_same_but_for_them(
    snapshot: Snapshot, random_texts: Any, monkeypatch: pytest.MonkeyPatch, group_by: str | None
) -> None:
    query = random_texts(1, 3)
    whole = hits_of(snapshot, query, group_by=group_by)
    monkeypatch.setattr("tercet.index.documents.store.decode_document", None)  # no stored content is read
    bare = hits_of(snapshot, query, group_by=group_by, contents=False)
    assert [(hit.document.id, hit.score, hit.scores) for hit in bare] == [
        (hit.document.id, hit.score, hit.scores) for hit in whole
    ]
    assert {(hit.document.text, hit.document.title) for hit in bare} == {("", None)}


@pytest.mark.parametrize("codec", ["int8", "none"])
def test_a_document_is_searched_for_by_what_is_stored_of_it(
    build: Any, random_corpus: Any, codec: str
) -> None:
    documents, encoded = random_corpus(40, 2, repeat=3)
    snapshot = build((documents, encoded), segment=15, token_codec=codec).snapshot()
    for document in documents[:10]:
        like = snapshot.stored_query(document.id)
        options: dict[str, Any] = {"top_k": 40, "candidates": CandidateLimits(40, 40)}
        others = snapshot.search(like.representations, without=[document.id], **options).hits
        every = snapshot.search(like.representations, **options).hits
        assert others == [hit for hit in every if hit.document.id != document.id]
        assert len(others) == len(every) - 1
        assert like.text == document.text
    with pytest.raises(DocumentNotFoundError, match="collection 'demo' has no document 'x'"):
        snapshot.stored_query("x")
    with pytest.raises(InvalidQueryError, match=r"window 1 of document 'd.*' is not there: it has 1"):
        snapshot.stored_query(documents[0].id, 1)


def test_a_window_is_searched_for_by_what_is_stored_of_it(build_windowed: Any, windowed_corpus: Any) -> None:
    documents, encoded, windows = windowed_corpus(20, 3)
    snapshot = build_windowed((documents, encoded, windows)).snapshot()
    place = int(np.argmax(np.diff(windows.offsets)))
    for window in range(int(np.diff(windows.offsets)[place])):
        like = snapshot.stored_query(documents[place].id, window)
        row = encoded.take(np.array([windows.offsets[place] + window]))
        assert like.representations.dense == pytest.approx(row.dense, abs=1e-3)
        assert like.representations.sparse is not None
        assert row.sparse is not None
        assert like.representations.sparse.token_ids.tolist() == row.sparse.token_ids.tolist()
        assert like.text == "x" * 5
        assert documents[place].id not in {
            hit.document.id for hit in hits_of(snapshot, like.representations, without=[documents[place].id])
        }
