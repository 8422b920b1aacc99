"""Kernels against numbers by hand and against brute force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index import scoring
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.scoring import lexical_scores, near_packed_maxsim, packed_maxsim
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.token_vectors.store import TokenCodec, TokenVectorStore, TokenVectorWriter
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import Bool, Float32, SparseRows, TokenVectors, offsets_of


def test_lexical_by_hand() -> None:
    rows = SparseRows(
        np.array([0, 2, 2, 3]), np.array([1, 5, 9], np.int32), np.array([0.5, 2.0, 4.0], np.float32)
    )
    ids, weights = np.array([5, 7, 9], np.int32), np.array([3.0, 1.0, 0.25], np.float32)
    assert lexical_scores(ids, weights, rows, np.array([0, 1, 2, 0])).tolist() == [6.0, 0.0, 1.0, 6.0]
    assert lexical_scores(ids, weights, rows, np.empty(0, np.int64)).shape == (0,)
    assert lexical_scores(ids[:0], weights[:0], rows, np.array([0, 2])).tolist() == [0.0, 0.0]
    assert lexical_scores(ids, weights, rows, np.array([1])).tolist() == [0.0]


def maxsim(query: Float32, document: Float32, mask: Bool) -> Float32:
    """Late interaction as it is defined: query float32[N, C], document float32[B, L, C], mask bool[B, L]."""
    if len(query) == 0 or document.shape[1] == 0:
        return np.zeros(len(document), np.float32)
    similarity = np.einsum("nc,blc->bnl", query, document)
    best = np.where(mask[:, None, :], similarity, -np.inf).max(axis=2)
    return np.where(mask.any(axis=1), best.mean(axis=1), 0.0).astype(np.float32)


def store(folder: Path, texts: TokenVectors, codec: TokenCodec = "int8") -> TokenVectorStore:
    writer = TokenVectorWriter(ArrayFolder(folder), codec, texts.vectors.shape[1])
    writer.append(TokenVectorStore.encode(texts, codec))
    writer.finish()
    return TokenVectorStore.open(ArrayFolder(folder), codec, len(texts), texts.vectors.shape[1])


def random_texts(seed: int, lengths: list[int], dimension: int = 8) -> TokenVectors:
    vectors = np.random.default_rng(seed).standard_normal((sum(lengths), dimension)).astype(np.float32)
    return TokenVectors(
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True), offsets_of(np.array(lengths, np.int64))
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    queries=st.integers(0, 5),
    codec=st.sampled_from(["int8", "float16"]),
    chunk=st.sampled_from([1, 4, 10, 2048]),
    data=st.data(),
)
def test_packed_and_padded_agree(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    lengths: list[int],
    queries: int,
    codec: TokenCodec,
    chunk: int,
    data: Any,
) -> None:
    monkeypatch.setattr(scoring, "CHUNK_TOKENS", chunk)
    found = store(tmp_path_factory.mktemp("tokens"), random_texts(seed, lengths), codec)
    query = random_texts(seed + 1, [queries]).vectors
    rows = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=15)), np.int64)
    padded = np.full((len(rows), max(lengths), 8), 1e9, np.float32)
    mask = np.zeros(padded.shape[:2], np.bool_)
    for place, row in enumerate(rows):
        positions = np.arange(found.offsets[row], found.offsets[row + 1])
        padded[place, : len(positions)] = found.vectors(positions)
        mask[place, : len(positions)] = True
    expected = maxsim(query, padded, mask)
    tokens = QueryTokens.of(query, codec)
    np.testing.assert_allclose(packed_maxsim(tokens, StoredTexts.of(found, rows)), expected, atol=3e-6)
    near, errors = near_packed_maxsim(tokens, StoredTexts.of(found, rows))
    assert (np.abs(near - packed_maxsim(tokens, StoredTexts.of(found, rows))) <= errors).all()
    assert (errors < 0.02).all()


@pytest.mark.parametrize("codec", ["int8", "float16"])
@pytest.mark.parametrize("length", [0.01, 1, 100])
def test_near_scores_are_as_near_to_rounded_ones_as_they_say(
    tmp_path: Path, codec: TokenCodec, length: float
) -> None:
    """A query that bytes hold exactly has no error of its own, but exact scores are rounded all the same."""
    found = store(tmp_path, random_texts(3, 200 * [1], 2), codec)
    query = QueryTokens.of(np.array([[length, 0]], np.float32), codec)
    exact = packed_maxsim(query, StoredTexts.of(found, np.arange(200)))
    near, errors = near_packed_maxsim(query, StoredTexts.of(found, np.arange(200)))
    assert np.abs(near - exact).max() > 4e-7 * min(1, length * 100)  # of half a step at most
    assert (np.abs(near - exact) <= errors).all()


@pytest.mark.parametrize("codec", ["int8", "float16"])
def test_equal_documents_have_equal_scores_wherever_they_lie(tmp_path: Path, codec: TokenCodec) -> None:
    lengths = [13, 40, 7, 77] * 30
    texts = random_texts(5, lengths, 128)
    same = texts.take(np.array([3]))
    mixed = TokenVectors.concatenate(
        [part for row in range(60) for part in (texts.take(np.array([row])), same)]
    )
    found = store(tmp_path, mixed, codec)
    for seed in range(20):
        query = QueryTokens.of(random_texts(seed, [16], 128).vectors, codec)
        scores = packed_maxsim(query, StoredTexts.of(found, np.arange(1, 120, 2)))
        assert len(set(scores.tolist())) == 1


@pytest.mark.parametrize("codec", ["int8", "float16"])
def test_documents_without_tokens_score_zero_not_less(tmp_path: Path, codec: TokenCodec) -> None:
    found = store(tmp_path, random_texts(1, [0, 3, 0]), codec)
    vectors = -found.vectors(np.array([0]))
    query, nothing = QueryTokens.of(vectors, codec), QueryTokens.of(vectors[:0], codec)
    for scores in (packed_maxsim, lambda *arguments: near_packed_maxsim(*arguments)[0]):
        assert scores(query, StoredTexts.of(found, np.array([0, 2]))).tolist() == [0.0, 0.0]
        assert scores(nothing, StoredTexts.of(found, np.array([0, 1]))).tolist() == [0.0, 0.0]
        assert scores(query, StoredTexts.of(found, np.empty(0, np.int64))).shape == (0,)


def test_errors_of_float16_grow_with_the_length_of_vectors(tmp_path: Path) -> None:
    """Products of some 2,000 cancel out to 0: what float32 loses beside them is far more than 1e-4."""
    generator = np.random.default_rng(0)
    half = generator.uniform(40_000, 60_000, (64, 256))
    vectors = np.concatenate([half, generator.permuted(half, axis=1)], axis=1).astype(np.float32)
    query = QueryTokens.of(np.repeat(np.float32([[1, -1]]) / 22.6, 256, axis=1), "float16")
    for scale, largest in ((1, 100), (1 / 1_200_000, 1e-4)):  # the second time they are of length 1, about
        folder = tmp_path / str(largest)
        folder.mkdir()
        found = store(folder, TokenVectors(np.float32(scale) * vectors, np.arange(65)), "float16")
        texts = StoredTexts.of(found, np.arange(64))
        exact, (near, errors) = packed_maxsim(query, texts), near_packed_maxsim(query, texts)
        assert (np.abs(near - exact) <= errors).all()
        assert (errors < largest).all()
        assert scale < 1 or np.abs(near - exact).max() > 1e-3
