"""The same outputs as FlagEmbedding 1.4.2 on the tiny random checkpoint of tests/models/make_golden.py."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet.models.encoder import encode
from tercet.models.loader import load_encoder

TOLERANCE = 1e-4


@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_all_three_outputs_equal_the_reference(
    engine: str, golden: Path, request: pytest.FixtureRequest
) -> None:
    exported = engine == "onnx"
    folder = request.getfixturevalue("xlmr_exported") if exported else golden / "checkpoint"
    encoder = load_encoder(str(folder), engine, precision="float32", device="cpu")
    lines = (golden / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    expected = load_file(golden / "flagembedding.safetensors")
    found = encode(encoder, [json.loads(line)["text"] for line in lines])
    np.testing.assert_allclose(found.dense, expected["dense"], atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(found.sparse.indptr, expected["sparse_indptr"])
    np.testing.assert_array_equal(found.sparse.token_ids, expected["sparse_token_ids"])
    np.testing.assert_allclose(found.sparse.weights, expected["sparse_weights"], atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(found.colbert.offsets, expected["colbert_offsets"])
    np.testing.assert_allclose(found.colbert.vectors, expected["colbert"], atol=TOLERANCE, rtol=0)


def test_the_golden_texts_cover_truncation(golden: Path) -> None:
    encoder = load_encoder(str(golden / "checkpoint"), "torch", device="cpu")
    texts = [json.loads(line)["text"] for line in (golden / "texts.jsonl").read_text("utf-8").splitlines()]
    assert encoder.tokenizer.tokenize(texts).truncated.tolist() == [False] * 11 + [True]
