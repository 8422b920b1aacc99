"""BM25 as a side of a collection: its formula, exact candidates, and the same from one segment or many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet.index.bm25 import analysis, cutting, writer
from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.formula import ratios, weights
from tercet.index.bm25.term_table import TermTable
from tercet.index.bm25.words import count_words
from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import InvalidQueryError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.packed_bytes import PackedBytes, PackedBytesWriter
from tercet.index.files.string_numbers import STRING_BYTES
from tercet.index.native.kernels import find_beginnings
from tercet.index.sparse import document_frequencies
from tercet.index.verify import verify
from tercet.index.writer import SegmentLimits
from tercet.models.representations import Representations

ONLY_BM25 = Weights(0, 0, 0, 1)
TEXTS = {"a": "tea milk tea", "b": "milk", "c": "", "d": "tea sugar honey lemon"}


@pytest.fixture
def query(random_texts: Any) -> Representations:
    asked: Representations = random_texts(1, 9)
    return asked


def test_scores_by_hand(collection_of: Any, query: Representations) -> None:
    snapshot = collection_of(TEXTS).snapshot()
    hits = snapshot.search(query, text="tea tea honey", weights=ONLY_BM25).hits
    # 4 documents of 2 words on average; tea is in two: ln(1 + 2.5/2.5) = ln 2, honey in one: ln(1 + 3.5/1.5).
    # d has 4 words: norm 1.2 (0.25 + 0.75 · 2) = 2.1; a has 3: 1.2 (0.25 + 0.75 · 1.5) = 1.65.
    d = 0.05 * (2 * np.log(2) / 3.1 + np.log(10 / 3) / 3.1)
    a = 0.05 * 2 * np.log(2) * 2 / 3.65
    assert [(hit.document.id, hit.score) for hit in hits] == [  # others are found by other sides, and score 0
        ("d", pytest.approx(d, abs=1e-6)),
        ("a", pytest.approx(a, abs=1e-6)),
    ]
    assert [hit.scores.bm25 for hit in hits] == [hit.score for hit in hits]


def test_the_plain_sum_leaves_it_out_but_shows_it(collection_of: Any, query: Representations) -> None:
    snapshot = collection_of(TEXTS, token_codec="float16").snapshot()
    for hit in snapshot.search(query, text="milk").hits:
        scores = hit.scores
        assert hit.score == pytest.approx(scores.dense + scores.sparse + scores.colbert, abs=2e-6)
        assert (scores.bm25 or 0) > 0 if "milk" in hit.document.text else scores.bm25 == 0
    assert all(hit.scores.bm25 is None for hit in snapshot.search(query).hits)


def test_it_proposes_only_where_it_has_a_weight(collection_of: Any, query: Representations) -> None:
    snapshot = collection_of(TEXTS).snapshot()
    alone = CandidateLimits(0, 0, 1)
    weights = Weights(1, 1, 1, 0.5)
    found = snapshot.search(query, text="honey", weights=weights, candidates=alone).hits
    assert [hit.document.id for hit in found] == ["d"]
    (hit,) = found
    summed = hit.scores.dense + hit.scores.sparse + hit.scores.colbert + 0.5 * hit.scores.bm25
    assert hit.score == pytest.approx(summed, abs=2e-6)
    with pytest.raises(InvalidQueryError, match="nothing can be found"):
        snapshot.search(query, text="honey", candidates=alone)


@pytest.mark.slow
@pytest.mark.parametrize("segment", [10_000, 37, 5])
def test_candidates_and_scores_are_exact_in_one_segment_or_many(
    collection_of: Any, formula: Any, random_words: Any, query: Representations, segment: int
) -> None:
    texts = random_words(240, 3)
    snapshot = collection_of(texts, segment=segment).snapshot()
    for words in ("0 1 2", "5 5 40 71", "3", "79 78 77 76", "0 0 0 unknown"):
        expected = formula(texts, words)
        for k in (1, 10, 100):
            hits = snapshot.search(
                query, text=words, weights=ONLY_BM25, candidates=CandidateLimits(0, 0, k), top_k=k
            ).hits
            best = sorted(expected.values(), reverse=True)[:k]
            assert [hit.score for hit in hits] == pytest.approx([s for s in best if s > 0], abs=1.1e-6)
            assert all(hit.score == pytest.approx(expected[hit.document.id], abs=1e-6) for hit in hits)


def test_the_division_into_segments_does_not_show(
    collection_of: Any, random_words: Any, query: Representations
) -> None:
    texts = random_words(400, 5)
    repeated = {**texts, **{f"again-{id}": text for id, text in texts.items()}}
    one, many = (
        collection_of(repeated, name=name, segment=segment).snapshot()
        for name, segment in (("one", 10_000), ("many", 90))
    )
    for words in ("0 7 12 12", "1 2 3 4 5", "60 61"):
        asked = {"text": words, "weights": Weights(1, 1, 1, 1), "top_k": 60}
        answers = [
            [(hit.document.id, hit.score, hit.scores) for hit in snapshot.search(query, **asked).hits]
            for snapshot in (one, many)
        ]
        assert answers[0] == answers[1]


def test_only_allowed_documents_are_proposed(build: Any, random_corpus: Any, random_texts: Any) -> None:
    documents, encoded = random_corpus(200, 8)
    collection = build((documents, encoded), bm25=True, fields={"year": "integer"})
    allowed = {document.id for document in documents if document.metadata["year"] == 2003}
    hits = (
        collection.snapshot()
        .search(
            random_texts(1, 2),
            text="text 17 18 19",
            weights=ONLY_BM25,
            candidates=CandidateLimits(0, 0, 500),
            filter=parse_filter({"eq": {"year": 2003}}),
            top_k=500,
        )
        .hits
    )
    assert {hit.document.id for hit in hits} == allowed


@pytest.mark.parametrize(("own", "mean"), [(3.0, 11.0), (11.0, 3.0), (4.0, 4.0)])
def test_every_weight_is_within_its_bounds(own: float, mean: float) -> None:
    lengths = np.array([1, 2, 5, 40, 90], np.int32)
    least, most = ratios(90, own, mean)
    for length in lengths.tolist():
        frequencies = np.arange(1, length + 1, dtype=np.float32)
        stored = weights(frequencies, length, own).astype(np.float32).astype(np.float64)
        ratio = weights(frequencies, length, mean) / stored
        assert (ratio >= least).all()
        assert (ratio <= most).all()
    assert min(least, 1 / most) > 0.25  # and the bounds are not idle


def test_documents_without_words_and_queries_without_known_ones(
    collection_of: Any, query: Representations
) -> None:
    empty = collection_of({"a": "", "b": "…"}, name="empty").snapshot()
    assert empty.search(query, text="tea", weights=ONLY_BM25).hits == []
    snapshot = collection_of(TEXTS).snapshot()
    for text in ("?!", "zzzz"):
        assert snapshot.search(query, text=text, weights=ONLY_BM25).hits == []
        hits = snapshot.search(query, text=text, weights=Weights(1, 0, 0, 1)).hits
        assert len(hits) == len(TEXTS)
        assert {hit.scores.bm25 for hit in hits} == {0.0}


def test_terms_are_found_by_their_bytes(tmp_path: Path) -> None:
    kept = ["a", "ab", "abc", "b", "é", "日本", "𝒳"]
    packed = PackedBytesWriter(ArrayFolder(tmp_path), "bm25_terms")
    packed.append(PackedBytes.of([term.encode() for term in kept]))
    packed.finish()
    wanted = ["", "a", "aa", "abc", "abcd", "c", "é", "日本", "日", "𝒳", "𝒴"]
    terms = PackedBytes.open(ArrayFolder(tmp_path), "bm25_terms")
    counts = np.arange(1, len(kept) + 1, dtype=np.int32)
    others = PackedBytes.of([b"aa", b"c"])
    parts = [terms, others, terms.span(0, 0)]
    table = TermTable((each, find_beginnings(each.data, each.offsets), counts[: len(each)]) for each in parts)
    places, frequencies = table.find(PackedBytes.of([term.encode() for term in wanted]))
    assert places[0].tolist() == [kept.index(term) if term in kept else -1 for term in wanted]
    assert places[1].tolist() == [0 if term == "aa" else 1 if term == "c" else -1 for term in wanted]
    assert (places[2] == -1).all()
    assert frequencies.tolist() == [0, 1, 1, 3, 0, 2, 5, 6, 0, 7, 0]


def test_terms_that_begin_alike_are_found_by_the_rest() -> None:
    """Of 400 terms many begin with the same eight bytes, over several steps; with NUL bytes among them."""
    alike = [b"beginning" + bytes([one, other]) for one in range(10) for other in range(20)]
    terms = sorted(
        {*alike, *(b"b" * count for count in range(1, 30)), *(bytes([each, 0]) for each in range(171))}
    )
    packed = PackedBytes.of(terms)
    wanted = [*terms, b"beginning", b"", b"\0", b"beginnin", b"b" * 31]
    table = TermTable([(packed, find_beginnings(packed.data, packed.offsets), np.ones(len(terms), np.int32))])
    places, _ = table.find(PackedBytes.of(wanted))
    assert places[0].tolist() == [*range(len(terms)), -1, -1, -1, -1, -1]


def test_rows_are_numbered_anew_piece_by_piece(
    collection_of: Any, random_words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = random_words(120, 6)
    whole = collection_of(texts, name="whole")
    monkeypatch.setattr(writer, "WEIGHTS_AT_ONCE", 7)
    monkeypatch.setattr(document_frequencies, "IDS_AT_ONCE", 11)
    monkeypatch.setattr(cutting, "CHARACTERS_AT_ONCE", 20)
    pieces = collection_of(texts, name="pieces")
    left, right = (load_file(next(each.layout.segments.glob("*/*"))) for each in (whole, pieces))
    names = sorted(name for name in left if name.startswith("bm25_"))
    assert len(names) == 16
    for name in names:
        np.testing.assert_array_equal(left[name], right[name], name)


def test_words_are_counted_by_document(monkeypatch: pytest.MonkeyPatch) -> None:
    analyzer = Analyzer("english")
    words = count_words(["teas and tea", "", "milk tea"], analyzer)
    assert words.terms.take(np.arange(3)) == [b"tea", b"and", b"milk"]
    assert [words.rows.row(row)[0].tolist() for row in range(3)] == [[0, 1], [], [0, 2]]
    assert words.rows.row(0)[1].tolist() == [2, 1]
    assert words.lengths.tolist() == [3, 0, 2]
    assert words.take(np.array([2])).rows.row(0)[0].tolist() == [0, 2]
    monkeypatch.setattr(analysis, "REMEMBERED_UNITS", 2)
    units = ("cups", "teas", "mills", "cups")
    assert [analyzer.terms(unit) for unit in units] == [("cup",), ("tea",), ("mill",), ("cup",)]


def test_a_title_counts(build: Any, random_texts: Any, query: Representations) -> None:
    documents = [Document("a", "leaves", "Tea"), Document("b", "leaves")]
    snapshot = build((documents, random_texts(2, 1)), bm25=True).snapshot()
    hits = snapshot.search(query, text="teas", weights=ONLY_BM25, candidates=CandidateLimits(0, 0, 5)).hits
    assert [hit.document.id for hit in hits] == ["a"]


def test_a_weight_needs_a_collection_with_bm25_and_a_text(
    build: Any, three: Any, three_query: Any, collection_of: Any, query: Representations
) -> None:
    plain = build(three, name="plain").snapshot()
    with pytest.raises(
        InvalidQueryError, match=r"weights\.bm25 is 1, but collection 'plain' has no BM25; leave"
    ):
        plain.search(three_query, text="apple", weights=Weights(bm25=1))
    assert all(hit.scores.bm25 is None for hit in plain.search(three_query, text="apple").hits)
    with pytest.raises(InvalidQueryError, match="no bm25 representation; give its text"):
        collection_of(TEXTS).snapshot().search(query, weights=Weights(bm25=1))


def test_score_and_score_all_have_a_fourth_column(
    collection_of: Any, formula: Any, query: Representations
) -> None:
    snapshot = collection_of(TEXTS, segment=3).snapshot()
    ids, scores = snapshot.score_all(query, "tea milk")
    expected = formula(TEXTS, "tea milk")
    assert dict(zip(ids, scores[:, 3].tolist(), strict=True)) == pytest.approx(expected, abs=1e-6)
    found = snapshot.retrieve(query, text="tea milk", candidates=CandidateLimits(0, 0, 2))
    ids, exact = snapshot.score(query, found, "tea milk")
    assert {id: exact[place, 3] for place, id in enumerate(ids)} == pytest.approx(
        {id: expected[id] for id in ids}, abs=1e-6
    )


def test_an_explanation_adds_up(collection_of: Any, query: Representations) -> None:
    snapshot = collection_of(TEXTS, segment=2).snapshot()
    words = snapshot.explanations(query, ["d"], "tea tea honey salt")[0].bm25
    assert words is not None
    assert words.terms == ("tea", "honey")  # tea counts twice
    assert words.counts.tolist() == [2, 1]
    assert words.frequencies.tolist() == [1, 1]
    assert words.idf == pytest.approx([np.log(2), np.log(10 / 3)])
    assert words.weights == pytest.approx([1 / 3.1, 1 / 3.1])
    (hit,) = [h for h in snapshot.search(query, text="tea tea honey salt").hits if h.document.id == "d"]
    assert words.products.sum() == pytest.approx(hit.scores.bm25, abs=1e-6)
    assert snapshot.explanations(query, ["d"])[0].bm25 is None


def test_settings_survive_a_rebuild_and_go_into_one_file(
    collection_of: Any, query: Representations, root: Path
) -> None:
    collection_of(TEXTS)
    rebuilt = collection_of({"z": "tea"})
    assert rebuilt.settings.bm25
    assert rebuilt.settings.bm25_language == "none"
    hits = rebuilt.snapshot().search(query, text="tea", weights=ONLY_BM25).hits
    assert [hit.document.id for hit in hits] == ["z"]
    assert not list(root.rglob("*scratch*"))


def test_segments_end_before_their_terms_fill_the_memory(
    collection_of: Any, random_words: Any, root: Path, random_texts: Any
) -> None:
    texts = random_words(40, 2)
    collection = collection_of(texts)
    documents = [Document(id, text) for id, text in texts.items()]
    with collection.writer(SegmentLimits(buffered_bytes=20 * STRING_BYTES)) as writing:
        for number, document in enumerate(documents):
            writing.add([document], random_texts(40, 1).take(np.array([number])))
        writing.publish()
    manifest = collection.manifest()
    assert manifest is not None
    assert len(manifest.segments) > 1
    assert verify(root, collection.settings.name) == []
