"""Representations with gradients are those of the engines; sub-batches change neither values nor order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.token_store import TokenStore
from tercet.training.m3.passage_index import represent
from tercet.training.m3.text_encoder import TextEncoder

TEXTS = [
    "word1 word2 word1",
    "word3",
    "word4 word5 word6 word7 word8 word9 word10",
    "word11 word12 word13 word1",
]


VARIANTS = {
    "cls": EncodingSettings(pooling="cls", max_length=32),
    "mean": EncodingSettings(pooling="mean", max_length=32, document_instruction="word3 "),
    "mcls": EncodingSettings(pooling="cls", max_length=32, mcls_every=4),
}


@pytest.fixture(params=VARIANTS)
def encoder(request: pytest.FixtureRequest, base_folder: Path) -> TextEncoder:
    settings = VARIANTS[request.param]
    torch.manual_seed(3)
    model = EncoderModel(load_body(base_folder), Heads(16, 8, settings)).eval()
    return TextEncoder(model, Tokenizer.load(base_folder, settings), 1000, "float32", "cpu")


def test_the_same_representations_as_an_engine(encoder: TextEncoder) -> None:
    batch = encoder.tokenizer.tokenize(TEXTS)
    found = encoder.encode(batch)
    store = TokenStore(batch.token_ids, batch.offsets)
    expected = represent(encoder, store, np.arange(len(TEXTS)))
    assert expected.dense is not None
    assert expected.sparse is not None
    assert expected.colbert is not None
    np.testing.assert_allclose(found.dense.detach(), expected.dense, atol=1e-6)
    for row in range(len(TEXTS)):
        token_ids, weights = expected.sparse.row(row)
        largest: dict[int, float] = {}
        for token, weight in zip(found.token_ids[row].tolist(), found.lexical[row].tolist(), strict=True):
            if weight > 0:
                largest[token] = max(weight, largest.get(token, 0.0))
        assert sorted(largest) == token_ids.tolist()
        np.testing.assert_allclose([largest[token] for token in sorted(largest)], weights, atol=1e-6)
        vectors = found.vectors[row][found.vector_mask[row]].detach()
        np.testing.assert_allclose(vectors, expected.colbert.row(row), atol=1e-6)


def test_sub_batches_change_neither_values_nor_order(encoder: TextEncoder) -> None:
    batch = encoder.tokenizer.tokenize(TEXTS)
    whole = encoder.encode(batch)
    encoder.sub_batch_tokens = 9
    assert len(encoder.parts(batch)[0]) > 2
    parts = encoder.encode_all(batch)
    for name in ("dense", "lexical"):
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name))
    for name in ("token_ids", "is_term", "vector_mask"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    mask = torch.from_numpy(whole.vector_mask)
    torch.testing.assert_close(parts.vectors[mask], whole.vectors[mask])


def test_heads_work_in_float32_after_a_body_in_bfloat16(encoder: TextEncoder) -> None:
    batch = encoder.tokenizer.tokenize(TEXTS)
    whole = encoder.encode(batch)
    encoder.precision = "bfloat16"
    half = encoder.encode(batch)
    assert {tensor.dtype for tensor in half.representations} == {torch.float32}
    assert not torch.equal(half.dense, whole.dense)
    torch.testing.assert_close(half.dense, whole.dense, atol=0.03, rtol=0.0)
