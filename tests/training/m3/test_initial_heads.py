"""Where heads start: idf, the regression on it, and the projection."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.representations import LexicalKind
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import PairTable, RaggedRows, ScoredRows
from tercet.training.data.token_store import TokenStore
from tercet.training.m3.document_frequencies import idf_of_all
from tercet.training.m3.initial_heads import (
    initial_heads,
    ridge_regression,
    sample_pairs,
    token_states,
    whitened_projection,
)
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.data import PairSource
from tercet.training.settings.objective import HeadSettings


def test_the_regression_finds_a_line() -> None:
    states = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32)
    targets = states @ np.array([1.0, -2.0, 0.5], np.float32) + 4
    weights, bias = ridge_regression(states, targets, 1e-6)
    np.testing.assert_allclose(weights, [1.0, -2.0, 0.5], atol=1e-4)
    assert math.isclose(bias, 4.0, abs_tol=1e-4)
    assert np.abs(ridge_regression(states, targets, 1e6)[0]).max() < 0.01


def test_the_projection_is_orthonormal_and_whitens() -> None:
    states = (np.random.default_rng(1).normal(size=(500, 6)) * [9, 3, 1, 1, 1, 1]).astype(np.float32)
    plain = whitened_projection(states, 4, 0.0, 1)
    np.testing.assert_allclose(plain @ plain.T, np.eye(4), atol=1e-5)
    np.testing.assert_array_equal(plain, whitened_projection(states, 4, 0.0, 1))
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    fully = unit @ whitened_projection(states, 6, 0.5, 1).T
    moment = fully.T @ fully / len(fully)
    np.testing.assert_allclose(moment / moment[0, 0], np.eye(6), atol=0.05)


def table_of(passages: TokenStore) -> PairTable:
    """A source whose every passage is its own query."""
    every, none = np.arange(len(passages), dtype=np.int64), np.zeros(0, np.int64)
    rows = RaggedRows.pack([every[row : row + 1] for row in every])
    nothing = RaggedRows.pack([none for _ in every])
    source = PairSource(path="made.jsonl", title="Made", licence="CC0 1.0")
    scored = ScoredRows(nothing, np.zeros(0, np.float32))
    return PairTable(source, passages, passages, rows, nothing, every, none, none, scored)


def first_weights(
    lexical: LexicalKind, base_folder: Path, tokenizer: Tokenizer
) -> tuple[list[float], TokenStore]:
    """The weights of a text right after heads were fitted, and the passages that they were fitted to."""
    settings = EncodingSettings(pooling="mean", max_length=32, lexical=lexical)
    torch.manual_seed(1)
    encoder = TextEncoder(
        EncoderModel(load_body(base_folder), Heads(16, 8, settings)), tokenizer, 64, "float32", "cpu"
    )
    batch = tokenizer.tokenize([f"word0 word{n} word{n + 1}" for n in range(1, 30)])
    passages = TokenStore(batch.token_ids, batch.offsets)
    settings_of_heads = HeadSettings(colbert_dimension=8, idf_scale=0.5, ridge_penalty=0.1)
    weights = initial_heads(encoder, [table_of(passages)], settings_of_heads, 1)
    encoder.model.heads = Heads.from_weights(weights, settings)
    encoder.model.eval()
    found: list[float] = encoder.encode(tokenizer.tokenize(["word0 word7 word8"])).lexical[0].tolist()
    return found, passages


def test_rare_words_weigh_more_from_the_start(base_folder: Path, tokenizer: Tokenizer) -> None:
    found, passages = first_weights("plain", base_folder, tokenizer)
    assert found[0] == found[4] == 0.0  # special tokens
    assert found[1] < min(found[2], found[3])
    idf = idf_of_all([passages], tokenizer.vocabulary_size)
    expected = [0.5 * math.sqrt(idf[token]) for token in (5, 12, 13)]
    np.testing.assert_allclose(found[1:4], expected, atol=0.25)


def test_all_words_weigh_alike_where_collections_bring_their_idf(
    base_folder: Path, tokenizer: Tokenizer
) -> None:
    found, _ = first_weights("idf", base_folder, tokenizer)
    np.testing.assert_allclose(found, [0, 0.5, 0.5, 0.5, 0], atol=1e-5)


def test_distilling_changes_the_projection_alone(base_folder: Path, tokenizer: Tokenizer) -> None:
    settings = EncodingSettings(pooling="mean", max_length=32)
    torch.manual_seed(1)
    model = EncoderModel(load_body(base_folder), Heads(16, 4, settings)).eval()
    encoder = TextEncoder(model, tokenizer, 64, "float32", "cpu")
    batch = tokenizer.tokenize([f"word{n} word{n + 1} word{(n * 7) % 39}" for n in range(1, 30)])
    tables = [table_of(TokenStore(batch.token_ids, batch.offsets))]
    plain, distilled = (
        initial_heads(encoder, tables, HeadSettings(colbert_dimension=4, distil_steps=steps), 1)
        for steps in (0, 5)
    )
    (lexical, plain_head), (same, distilled_head) = plain.both(), distilled.both()
    np.testing.assert_array_equal(lexical.weight, same.weight)
    assert not plain_head.bias.any()
    assert distilled_head.bias.any()
    assert not np.array_equal(plain_head.weight, distilled_head.weight)


def test_pairs_of_states_are_those_of_the_texts(base_folder: Path, tokenizer: Tokenizer) -> None:
    settings = EncodingSettings(pooling="mean", max_length=32)
    model = EncoderModel(load_body(base_folder), Heads(16, 8, settings)).eval()
    encoder = TextEncoder(model, tokenizer, 12, "float32", "cpu")
    batch = tokenizer.tokenize([f"word{n} " * (1 + n % 3) for n in range(20)])
    store = TokenStore(batch.token_ids, batch.offsets)
    queries, passages = (token_states(encoder, texts) for texts in sample_pairs([table_of(store)], 10_000, 3))
    assert len(queries) == len(passages) == 20
    order = np.random.default_rng(3).permutation(20)
    for row, one, other in zip(order.tolist(), queries, passages, strict=True):
        with torch.no_grad():
            hidden, mask = encoder.hidden(store.take(np.array([row])))
        expected = hidden[0, 1 : int(mask.sum())]
        torch.testing.assert_close(one.float(), expected, atol=2e-3, rtol=2e-3)
        torch.testing.assert_close(other.float(), one.float())
    few, _ = sample_pairs([table_of(store)], 8, 3)
    assert 1 <= len(few) <= 4
