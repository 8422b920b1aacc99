"""The order of hits: that of exact sums whatever the scale of the weights, though most are scored quickly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index import snapshot as index_snapshot
from tercet.index.candidates import CandidateLimits, Cursor, Document, Hit, Page, Weights
from tercet.index.search import ranking
from tercet.index.snapshot import Snapshot
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.models.representations import Float32, Representations, SparseRows, TokenVectors

ALL = CandidateLimits(10_000, 10_000)
LATE = Weights(0, 0, 1)


def ids_of(hits: list[Hit]) -> list[str]:
    return [hit.document.id for hit in hits]


def of_tokens(tokens: Float32) -> Representations:
    """Texts of token vectors float32[B, L, C] that are alike in all else."""
    texts, length, dimension = tokens.shape
    return Representations(
        np.full(texts, length + 1),
        np.zeros(texts, np.bool_),
        np.tile(np.float32([1, 0]), (texts, 1)),
        SparseRows(np.zeros(texts + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)),
        TokenVectors(tokens.reshape(-1, dimension), length * np.arange(texts + 1)),
    )


def late_interaction(query: Float32, documents: Float32) -> Any:
    """Of query float32[N, C] and documents float32[B, L, C]: float64[B], in steps of six decimals."""
    similarity = np.einsum("nc,blc->bnl", query.astype(np.float64), documents.astype(np.float64))
    return np.rint(similarity.max(axis=2).mean(axis=1) * 1e6)


def named(count: int, seed: int) -> list[Document]:
    """Documents whose ids are in no order."""
    return [Document(f"d{name:04d}", "text") for name in np.random.default_rng(seed).permutation(count)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e3, 1e5])
@pytest.mark.parametrize("segment", [400, 70])
def test_float32_does_not_decide_between_close_documents(build: Any, segment: int, size: float) -> None:
    """Large products cancel out: what float32 loses beside them is more than tells documents apart."""
    random = np.random.default_rng(4)
    tokens = random.choice(np.float32([0.125, 0.25, 0.5]), (400, 3, 32))
    large = np.arange(0, 32, 4)
    tokens[:, :, large] = 0.5
    names = named(400, 1)
    snapshot = build((names, of_tokens(tokens)), segment=segment, token_codec="float16").snapshot()
    misled = 0
    for _ in range(10):
        query = random.uniform(-4e-8 * size, 4e-8 * size, (4, 32)).astype(np.float32)
        query[:, large] = np.float32(size) * random.permutation([1, 1, 1, 1, -1, -1, -1, -1])
        exact = late_interaction(query, tokens)
        quick = (query @ tokens.transpose(0, 2, 1)).max(axis=2).mean(axis=1)
        ids = [document.id for document in names]
        expected = [ids[place] for place in sorted(range(400), key=lambda place: (-exact[place], ids[place]))]
        misled += int(np.argmax(quick) != np.argmax(exact))
        for top_k in (1, 10):
            hits = snapshot.search(of_tokens(query[None]), top_k=top_k, weights=LATE, candidates=ALL).hits
            assert ids_of(hits) == expected[:top_k]
    assert misled > 0  # float32 alone would have found others


@pytest.mark.parametrize("codec", ["int8", "float16"])
def test_equal_documents_tie_wherever_they_lie(build: Any, codec: str) -> None:
    """A product of float32 matrices may give equal rows other last bits at the edge of a block."""
    random = np.random.default_rng(5)
    tokens = random.standard_normal((500, 7, 31)).astype(np.float32)
    equal = random.choice(500, 200, replace=False)
    tokens[equal] = tokens[equal[0]]
    names = named(500, 2)
    snapshot = build((names, of_tokens(tokens)), token_codec=codec).snapshot()
    first = sorted(names[place].id for place in equal)
    for factor in (1, 50, 1000):
        query = of_tokens(np.float32(factor) * tokens[equal[:1], :5])  # of which these are the nearest
        hits = snapshot.search(query, top_k=20, weights=LATE, candidates=ALL).hits
        assert ids_of(hits) == first[:20]
        assert len({hit.score for hit in hits}) == 1


def test_sums_are_told_apart_below_the_last_decimal(build: Any, plain_representations: Any) -> None:
    """0.500001 and 0.5 differ by 1e-12 under the weight 1e-6."""
    vectors = [[0.5, 0.0], [0.5, 0.25], [0.5, 0.5]]
    corpus = [Document(id, "x") for id in "abc"], plain_representations(vectors, [{}, {}, {}], [[], [], []])
    snapshot = build(corpus, token_codec="none").snapshot()
    query = plain_representations([[1, 4e-6]], [{}], [[]])
    for weight in (1, 1e-6, 1e6):
        hits = snapshot.search(query, weights=Weights(weight, 0, 0)).hits
        assert ids_of(hits) == ["c", "b", "a"]
        assert [hit.score for hit in hits] == pytest.approx(
            [0.500002 * weight, 0.500001 * weight, 0.5 * weight], rel=1e-12
        )


weight = st.sampled_from([0, 0.1, 0.15, 0.3, 0.35, 0.5, 1 / 3, 1, 2, 7]) | st.floats(1e-3, 10)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    weights=st.builds(Weights, weight, weight, weight).filter(lambda w: w.dense or w.sparse or w.colbert),
    scale=st.sampled_from([1e-6, 0.001, 0.1, 3, 1e6 / 11, 1e5]) | st.floats(1e-6, 1e5),
    top_k=st.integers(1, 40),
    seed=st.integers(0, 3),
)
def test_the_scale_of_the_weights_changes_nothing(
    shared: Snapshot, random_texts: Any, weights: Weights, scale: float, top_k: int, seed: int
) -> None:
    query = random_texts(1, seed)
    scaled = Weights(scale * weights.dense, scale * weights.sparse, scale * weights.colbert)
    one, other = (
        shared.search(query, top_k=top_k, weights=used, candidates=ALL).hits for used in (weights, scaled)
    )
    assert ids_of(one) == ids_of(other)
    assert [hit.scores for hit in one] == [hit.scores for hit in other]
    assert [scale * hit.score for hit in one] == pytest.approx([hit.score for hit in other], rel=1e-9)


@pytest.fixture
def shared(build: Any, random_corpus: Any) -> Snapshot:
    """Forty documents, nine of them alike, in three segments."""
    found: Snapshot = build(random_corpus(40, 6, repeat=9), segment=15).snapshot()
    return found


@pytest.fixture
def two_groups(build: Any) -> tuple[Snapshot, Representations]:
    """200 documents, of which 32 lie far above the others, by codes of one bit; and a query."""
    random, count = np.random.default_rng(0), 200
    tokens = random.standard_normal((count + 1, 3, 16)).astype(np.float32)
    tokens /= np.linalg.norm(tokens, axis=2, keepdims=True)
    rest = random.standard_normal((count, 15))
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    first = np.where(np.arange(count) < 32, 0.99, 0.01)[:, None]
    dense = np.concatenate([first, rest * np.sqrt(1 - first**2)], axis=1).astype(np.float32)
    texts = replace(of_tokens(tokens[:count]), dense=dense)
    query = replace(of_tokens(tokens[count:]), dense=np.eye(1, 16, dtype=np.float32))
    codebook = train_codebook(np.tile(tokens.reshape(-1, 16), (2, 1)), 1)
    corpus = named(count, 1), texts
    return build(corpus, token_codec="residual1", codebook=codebook).snapshot(), query


@pytest.mark.parametrize("place", range(20, 27))
def test_a_page_behind_a_cursor_is_full_also_with_a_least_score(
    two_groups: tuple[Snapshot, Representations], place: int
) -> None:
    snapshot, query = two_groups

    def page(**which: Any) -> list[str]:
        weights = Weights(10, 0, 1)
        return ids_of(snapshot.search(query, top_k=10, weights=weights, page=Page(**which)).hits)

    weights = Weights(10, 0, 1)
    last = snapshot.search(query, top_k=60, weights=weights).hits[place - 1]
    assert last.score > 0.5
    cursor = Cursor(last.score, last.document.id)
    assert page(after=cursor, min_score=0.0) == page(after=cursor) == page(offset=place)
    assert len(page(offset=place)) == 10


def test_what_was_not_read_is_a_hit_where_bounds_were_too_high(
    two_groups: tuple[Snapshot, Representations], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, query = two_groups
    page = Page(min_score=0.1)
    expected = snapshot.search(query, page=page).hits
    assert len(expected) == 10

    def too_high(quick: Any, found: Any, *_: Any, **_options: Any) -> tuple[Any, float]:
        bounds = np.full(len(found), -np.inf)
        bounds[:3] = np.inf
        return bounds, 0.2

    monkeypatch.setattr(index_snapshot, "bounds_of", too_high)
    assert snapshot.search(query, page=page).hits == expected


@pytest.mark.parametrize("seed", range(6))
def test_a_page_behind_a_cursor_scores_few_exactly(
    build: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)

    def unit(*shape: int) -> Any:
        vectors = random.standard_normal(shape).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    texts = replace(of_tokens(unit(401, 3, 16)), dense=unit(401, 16))
    rows = np.arange(401)
    snapshot = build((named(400, 2), texts.take(rows[:400])), token_codec="int8").snapshot()
    query = texts.take(rows[400:])
    exactly: list[int] = []
    real = ranking.late_scores

    def late_scores(segments: Any, query: Any, places: Any, rows: Any) -> Any:
        exactly.append(len(rows))
        return real(segments, query, places, rows)

    monkeypatch.setattr(ranking, "late_scores", late_scores)
    *_, last = first = snapshot.search(query, top_k=10).hits
    after = Cursor(last.score, last.document.id)
    second = snapshot.search(query, top_k=10, page=Page(after=after)).hits
    assert ids_of([*first, *second]) == ids_of(snapshot.search(query, top_k=20).hits)
    assert len(exactly) == 3
    assert max(exactly) <= 40


@pytest.mark.parametrize("seed", range(37, 42))  # each has hits that are not found where nothing is added
def test_a_side_that_weighs_next_to_nothing_still_orders(build: Any, seed: int) -> None:
    """Sums near 1 are told apart by 1e-16, and what late interaction may be off, times its weight, is less:
    added to such a sum it is nothing, and yet another sum may be the next number.
    """
    random, count = np.random.default_rng(seed), 600
    whole = random.integers(-127, 128, (1, 4, 16))
    whole[:, :, 0] = 127
    query = (whole + random.uniform(-0.03, 0.03, whole.shape)) / 127  # off by 0.03 of a byte's step at most
    query /= np.linalg.norm(query, axis=2, keepdims=True)
    tokens = query + 0.015 * random.standard_normal((count, 4, 16))
    tokens /= np.linalg.norm(tokens, axis=2, keepdims=True)
    texts = of_tokens(np.concatenate([tokens, query]).astype(np.float32))
    snapshot = build((named(count, 1), texts.take(np.arange(count))), token_codec="int8").snapshot()
    encoded = replace(texts.take(np.array([count])), dense=np.float32([[0.93, 0]]))
    weights = Weights(1, 0, 1e-13)
    ids, scores = snapshot.score_all(encoded)
    sums = np.rint(930_000 * np.ones(count)) + 1e-13 * np.rint(scores[:, 2].astype(np.float64) * 1e6)
    assert 1 < len(set(sums.tolist())) < 9
    expected = [ids[place] for place in sorted(range(count), key=lambda place: (-sums[place], ids[place]))]
    for top_k in (1, 10, 30, 50, 100, 200):
        hits = snapshot.search(encoded, top_k=top_k, weights=weights, candidates=ALL).hits
        assert ids_of(hits) == expected[:top_k]
