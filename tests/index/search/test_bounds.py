"""What a first look at centroids leaves unread, and that it leaves out no hit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.candidates import CandidateLimits, Document, Page, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.codebook import Codebook, sign_codebook
from tercet.index.collection import Collection
from tercet.index.search import bounds
from tercet.index.search.exact_scores import Candidates
from tercet.index.search.late_interaction import FirstScores, TokenParts
from tercet.index.snapshot import Snapshot
from tercet.index.token_codecs import CODED, RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.models.representations import Float32, Float64
from tests.index.search.test_ranking import ALL, LATE, ids_of, named, of_tokens

few = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DOCUMENTS, LENGTH, DIMENSION, QUERIES = 800, 12, 16, 20


def around(generator: np.random.Generator, centers: Float32, count: int) -> Float32:
    """So many vectors of length 1 near each of the centers float32[N, C]: float32[N, count, C]."""
    vectors = centers[:, None] + 0.25 * generator.standard_normal((len(centers), count, centers.shape[1]))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return vectors.astype(np.float32)


@pytest.fixture
def snapshot(build: Any) -> Any:
    """Documents about twenty subjects; those of one subject have the same few centroids."""
    generator = np.random.default_rng(0)
    subjects = generator.standard_normal((20, DIMENSION)).astype(np.float32)
    subjects /= np.linalg.norm(subjects, axis=1, keepdims=True)
    tokens = around(generator, subjects[generator.integers(20, size=DOCUMENTS)], LENGTH)
    book = train_codebook(around(generator, subjects, 100).reshape(-1, DIMENSION), 1)
    corpus = named(DOCUMENTS, 1), of_tokens(tokens)
    return build(corpus, segment=300, token_codec="residual1", codebook=book).snapshot(), tokens


def queries(tokens: Float32) -> Float32:
    """Each near tokens of one document, float32[Q, N, C]."""
    generator = np.random.default_rng(1)
    return around(generator, tokens[:QUERIES, :6].reshape(-1, DIMENSION), 1).reshape(QUERIES, 6, DIMENSION)


@pytest.mark.slow
@pytest.mark.parametrize("colbert", [1.0, 1e-6, -2.0])
def test_what_is_not_read_is_no_hit(snapshot: Any, colbert: float) -> None:
    published, tokens = snapshot
    weights = Weights(0, 0, colbert)
    for query in queries(tokens):
        encoded = of_tokens(query[None])
        ids, scores = published.score_all(encoded)
        sums = np.round(colbert * scores[:, 2].astype(np.float64), 12)
        expected = [ids[place] for place in sorted(range(len(ids)), key=lambda p: (-sums[p], ids[p]))]
        found = published.search(encoded, top_k=30, weights=weights, candidates=ALL).hits
        assert ids_of(found) == expected[:30]
        page = published.search(encoded, top_k=5, weights=weights, candidates=ALL, page=Page(offset=25)).hits
        assert ids_of(page) == expected[25:30]


def test_bounds_hold_a_sum_under_a_weight_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = np.zeros(1, np.int64)
    found = Candidates(nothing, nothing, np.array([0.5]), np.zeros(1), np.zeros(1))
    read = TokenParts([lambda: (np.array([0.4]), np.array([0.1]))], [1], np.arange(2))
    monkeypatch.setattr(TokenParts, "of", lambda *_: read)
    query: Any = SimpleNamespace(colbert=())
    sums = bounds._Sums(bounds.QuickScores([], found, query), found, Weights(1, 0, -2), 3)
    sums.read(nothing)
    assert (sums.low[0], sums.high[0]) == pytest.approx((0.5 - 2 * 0.5, 0.5 - 2 * 0.3))


CODECS = ("float16", "int8", "sign", *RESIDUAL_BITS)
COUNT, WIDE = 400, 64  # documents of a crowd, and values of their vectors


def crowd(seed: int, copies: float) -> Float32:
    """Documents of 16 tokens, each near one of the five words of a subject, of which a share are nearly one;
    some are equal, some are zeros alone: float32[400, 16, 64].
    """
    generator = np.random.default_rng(seed)
    words = generator.standard_normal((8, 5, WIDE))
    tokens = words[generator.integers(8, size=(COUNT, 1)), generator.integers(5, size=(COUNT, 16))]
    tokens += 0.4 * generator.standard_normal(tokens.shape)
    near = generator.permutation(COUNT)[: 2 + int(copies * COUNT)]
    tokens[near] = tokens[near[:1]] + 1e-2 * generator.standard_normal((len(near), 16, WIDE))
    tokens[near[::2]] = tokens[near[0]]
    tokens /= np.linalg.norm(tokens, axis=2, keepdims=True)
    tokens[generator.permutation(COUNT)[:5]] = 0
    return tokens.astype(np.float32)


@pytest.fixture(scope="module")
def crowds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TokenCodec, int, float], Snapshot]:
    """Crowds stored by a codec, each built once."""

    @cache
    def built(codec: TokenCodec, seed: int, copies: float) -> Snapshot:
        tokens = crowd(seed, copies)
        if codec in CODED:  # which store directions
            tokens[~tokens.any(axis=2)] = np.eye(1, WIDE, dtype=np.float32)
        book = sign_codebook(WIDE) if codec == "sign" else None
        if codec in RESIDUAL_BITS:
            book = train_codebook(tokens.reshape(-1, WIDE), RESIDUAL_BITS[codec])
        root = tmp_path_factory.mktemp("crowds")
        settings = CollectionSettings("c", "none", "none", 2, WIDE, 9, "flat", codec, codebook=book)
        collection = Collection.create(root, "c", settings)
        with collection.writer() as writer:
            writer.add(named(COUNT, seed), of_tokens(tokens))
            writer.publish()
        return collection.snapshot()

    return built


@pytest.mark.slow
@few
@given(
    codec=st.sampled_from(CODECS),
    corpus=st.sampled_from([(0, 0.0), (1, 0.5), (2, 0.95)]),
    tokens=st.sampled_from([1, 2, 5, 16, 24]),
    noise=st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    top_k=st.sampled_from([1, 10, 40]),
    seed=st.integers(0, 1000),
)
def test_first_hits_are_those_of_all_candidates(
    crowds: Any,
    codec: TokenCodec,
    corpus: tuple[int, float],
    tokens: int,
    noise: float,
    top_k: int,
    seed: int,
) -> None:
    """Queries lie near tokens of a document, or, with much noise, near nothing."""
    snapshot = crowds(codec, *corpus)
    generator = np.random.default_rng(seed)
    drawn = crowd(*corpus)[generator.integers(COUNT)][generator.integers(16, size=tokens)]
    query = drawn + noise * generator.standard_normal((tokens, WIDE)) / WIDE**0.5
    encoded = of_tokens(query[None].astype(np.float32))
    ids, scores = snapshot.score_all(encoded)
    exact = np.round(scores[:, 2].astype(np.float64), 6)
    scored = np.flatnonzero(scores[:, 2]).tolist()  # of nothing a document is no hit
    expected = sorted(scored, key=lambda place: (-exact[place], ids[place]))
    for offset in (0, 20):
        page = Page(offset=offset)
        hits = snapshot.search(encoded, top_k=top_k, weights=LATE, candidates=ALL, page=page).hits
        assert ids_of(hits) == [ids[place] for place in expected[offset : offset + top_k]]


def test_most_candidates_are_not_read(crowds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight subjects one is asked for, so an eighth of the candidates come near."""
    snapshot, tokens = crowds("residual1", 0, 0.0), crowd(0, 0.0)
    read: list[int] = []
    read_some = bounds._Sums.read

    def counted(sums: Any, places: Any) -> None:
        read.extend([len(places)] * (len(places) > 0))
        read_some(sums, places)

    monkeypatch.setattr(bounds._Sums, "read", counted)
    noise = np.random.default_rng(1).standard_normal((QUERIES, 16, WIDE)) / WIDE**0.5
    asked = tokens[10 : 10 + QUERIES] + noise
    encoded = of_tokens(np.float32(asked / np.linalg.norm(asked, axis=2, keepdims=True)))
    for row in range(QUERIES):
        snapshot.search(encoded.take(np.array([row])), weights=LATE, candidates=ALL)
    assert sum(read) < 0.3 * QUERIES * COUNT
    read.clear()  # as many as would be read first anyway
    snapshot.search(encoded.take(np.array([0])), weights=LATE, candidates=CandidateLimits(60, 0))
    assert read == [60]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_near_copies_do_not_hide_a_better_document(build: Any, seed: int) -> None:
    """200 copies of .76 lie on centroids of their own, so of them a first look leaves nothing to be added."""
    generator = np.random.default_rng(seed)

    def unit(*shape: int) -> Any:
        vectors = generator.standard_normal(shape)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    def with_cosine(cosine: float) -> Any:
        """A document each of whose tokens has this inner product with one of the query."""
        other = unit(16, WIDE)
        other -= (other * query).sum(axis=1, keepdims=True) * query
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        return cosine * query + (1 - cosine**2) ** 0.5 * other

    query = unit(16, WIDE)
    copies, others = np.repeat(with_cosine(0.76)[None], 200, axis=0), unit(199, 16, WIDE)
    tokens = np.concatenate([copies, others, with_cosine(0.84)[None]]).astype(np.float32)
    book = train_codebook(np.concatenate([copies[:100], others]).astype(np.float32).reshape(-1, WIDE), 1)
    corpus = [Document(f"d{number}", "text") for number in range(400)], of_tokens(tokens)
    snapshot = build(corpus, token_codec="residual1", codebook=book).snapshot()
    encoded = of_tokens(query[None].astype(np.float32))
    for top_k in (1, 10, 50, 400):
        first, *_ = snapshot.search(encoded, top_k=top_k, weights=LATE, candidates=ALL).hits
        assert first.document.id == "d399"
        assert first.score > 0.78


def looked_at(scores: Float64, tokens: int = 16) -> FirstScores:
    return FirstScores(scores, 1.0, tokens)


def test_the_share_that_codes_add() -> None:
    """Centroids say .2 to .59; the codes add a share of what is left to 1."""
    scores, all_of_them = 0.2 + 0.01 * np.arange(40), np.arange(40)
    first = looked_at(scores)
    left = 1 - scores
    assert bounds._share_of(first, scores + 0.1 * left, all_of_them) == bounds.LEAST_SHARE
    shares = np.where(all_of_them % 2, 0.1, 0.3)  # of mean .2 and deviation .1
    assert bounds._share_of(first, scores + shares * left, all_of_them) == pytest.approx(0.6)
    assert bounds._share_of(first, scores + 5 * shares * left, all_of_them) == 1
    few_tokens = looked_at(scores, bounds.FEW_TOKENS)
    assert bounds._share_of(few_tokens, scores + 0.1 * left, all_of_them) == 1


def test_candidates_that_are_alike_show_nothing() -> None:
    """Equal ones count once, so that 19 others are too few and 20 are not."""
    scores = np.full(40, 0.5)
    scores[:18] = 0.2 + 0.01 * np.arange(18)
    assert bounds._share_of(looked_at(scores), scores, np.arange(40)) == 1
    scores[18] = 0.45
    assert bounds._share_of(looked_at(scores), scores, np.arange(40)) == bounds.LEAST_SHARE


def test_a_larger_share_than_was_expected_has_all_read(build: Any) -> None:
    """Centroids say .60 and .30 of two documents, of which the codes make about .88 and .92; others have .39
    to .66, and the codes add next to nothing. Half of what is left, .65 for the last, would not do.
    """
    step = 0.92 / 63
    plain = np.arange(27, 46) * step
    centroids, entries = np.zeros((len(plain) + 3, 8)), np.zeros((256, 8))
    centroids[:-3, 0], centroids[:-3, 2] = plain, np.sqrt(1 - plain**2)
    centroids[-3, 7] = 0.9  # the lowest is looked at
    centroids[-2, [0, 3]] = 0.6, 0.475
    centroids[-1, [0, 1]] = 0.3, 0.39
    entries[:21, 0], entries[:21, 5] = np.arange(21) % 3 * step, np.arange(21) // 3 * 2 * step
    entries[21:23, 0] = 0.28, 0.62
    vectors = np.array(
        [centroids[number % len(plain)] + entries[number // len(plain)] for number in range(397)]
        + [centroids[-3], centroids[-2] + entries[21], centroids[-1] + entries[22]]
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    book = Codebook(
        np.eye(8, dtype=np.float32),
        (np.rint(centroids / step) + 64).astype(np.uint8),
        (np.rint(entries / step) + 64).astype(np.uint8)[None],
        step,
    )
    corpus = (
        [Document(f"d{number}", "text") for number in range(400)],
        of_tokens(np.float32(vectors)[:, None]),
    )
    snapshot = build(corpus, token_codec="residual1", codebook=book).snapshot()
    query = of_tokens(np.tile(np.eye(1, 8, dtype=np.float32), (1, 16, 1)))
    hits = snapshot.search(query, top_k=10, weights=LATE, candidates=ALL).hits
    assert ids_of(hits)[:2] == ["d399", "d398"]
    assert [hit.score for hit in hits[:2]] == pytest.approx([0.92, 0.88], abs=0.01)
