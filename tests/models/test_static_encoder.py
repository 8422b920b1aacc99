"""Static embeddings: means by hand, and folders as Model2Vec and sentence-transformers write them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tercet.models.encoder import Encoder, encode, with_adapter
from tercet.models.errors import AdapterNotFoundError, CheckpointError, UnsupportedError
from tercet.models.export_onnx import export
from tercet.models.loader import load_encoder, load_tokenizer
from tercet.models.representations import Float32
from tercet.models.static_encoder import TOKENS_AT_A_TIME
from tests.tiny.sparse_folders import (
    STATIC,
    TOKENS,
    VECTOR,
    static_vectors,
    write_json,
    write_model2vec,
    write_static,
)

TEXTS = ["hello world", "the heat of the air", "", "wing wing air", "漢", "漢 wing", "별 밤"]
UNKNOWN = 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model2vec(tmp_path / "static")


def vectors_of(encoder: Encoder, texts: list[str], kind: Any = "document") -> Float32:
    found = encode(encoder, texts, kind).dense
    assert found is not None
    return found


def by_hand(encoder: Encoder, texts: list[str], vectors: Float32, *, unknown: bool = False) -> Float32:
    """The mean of the vectors of each text's tokens, made of unit length; a row of zeros without tokens."""
    expected = np.zeros((len(texts), vectors.shape[1]), np.float32)
    for row, text in enumerate(texts):
        ids = [id for id in encoder.tokenizer.tokenize([text]).token_ids.tolist() if unknown or id != UNKNOWN]
        if ids:
            mean = vectors[ids].astype(np.float64).mean(0)
            expected[row] = mean / np.linalg.norm(mean)
    return expected


@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_the_mean_of_the_tokens(folder: Path, engine: Any) -> None:
    encoder = load_encoder(str(folder), engine)
    info = encoder.info
    assert (info.engine, info.precision, info.sides) == ("static", "float32", ("dense",))
    assert (info.dense_dimension, info.max_length, info.pooling) == (VECTOR, 512, "mean")
    found = encode(encoder, TEXTS)
    np.testing.assert_allclose(found.dense, by_hand(encoder, TEXTS, static_vectors()), atol=1e-6)
    assert found.tokens.tolist() == [2, 10, 0, 3, 1, 2, 2], "no special tokens"
    assert not found.dense[[2, 4]].any(), "a text without a known token is like nothing"  # type: ignore[index]


def test_texts_are_alike_alone_and_in_any_batch(folder: Path) -> None:
    encoder = load_encoder(str(folder))
    texts = [*TEXTS, "wing " * 500] * 40
    assert encode(encoder, texts).tokens.sum() > 3 * TOKENS_AT_A_TIME
    alone = np.concatenate([vectors_of(encoder, [text]) for text in [*TEXTS, "wing " * 500]] * 40)
    np.testing.assert_allclose(vectors_of(encoder, texts), alone, atol=1e-6)
    assert vectors_of(encoder, []).shape == (0, VECTOR)
    assert encode(encoder, TEXTS, outputs=["sparse"]).dense is None


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8])
def test_vectors_of_any_precision(folder: Path, kind: Any) -> None:
    vectors = (static_vectors() * 30).astype(kind)
    save_file({"embeddings": vectors}, folder / "model.safetensors")
    encoder = load_encoder(str(folder))
    assert encoder.info.precision == np.dtype(kind).name
    np.testing.assert_allclose(
        vectors_of(encoder, TEXTS), by_hand(encoder, TEXTS, vectors.astype(np.float32)), atol=1e-6
    )


def test_tokens_that_share_vectors_and_have_weights(folder: Path) -> None:
    random = np.random.default_rng(3)
    rows, weights = random.integers(0, 9, TOKENS), random.uniform(0.1, 2, TOKENS)
    save_file(
        {"embeddings": static_vectors()[:9], "mapping": rows, "weights": weights},
        folder / "model.safetensors",
    )
    encoder = load_encoder(str(folder))
    vectors = (static_vectors()[rows] * weights[:, None]).astype(np.float32)
    np.testing.assert_allclose(vectors_of(encoder, TEXTS), by_hand(encoder, TEXTS, vectors), atol=1e-6)


def test_a_module_of_sentence_transformers(tmp_path: Path) -> None:
    """It keeps the unknown token and the tokenizer's own limit, here 8 tokens; its prompts are read."""
    folder = write_static(tmp_path / "static")
    encoder = load_encoder(str(folder))
    assert encoder.info.max_length == 8
    expected = by_hand(encoder, TEXTS, static_vectors(), unknown=True)
    np.testing.assert_allclose(vectors_of(encoder, TEXTS), expected, atol=1e-6)
    np.testing.assert_array_equal(vectors_of(encoder, ["wing"], "query"), vectors_of(encoder, ["hello wing"]))
    assert load_tokenizer(folder).tokenize(["wing"]).token_ids.tolist() == [5]


@pytest.mark.parametrize(
    ("named", "limit"), [({"max_length": 20}, 20), ({"max_length": None}, 8192), ({}, 512)]
)
def test_longer_texts_are_cut(tmp_path: Path, named: Any, limit: int) -> None:
    encoder = load_encoder(str(write_model2vec(tmp_path / "static", **named)))
    found = encode(encoder, ["wing " * (limit + 5)])
    assert found.tokens.tolist() == [limit]
    assert found.truncated.tolist() == [True]


def test_settings_and_files_are_in_the_fingerprint(folder: Path, tmp_path: Path) -> None:
    plain = load_encoder(str(folder)).info.fingerprint
    assert load_encoder(str(write_model2vec(tmp_path / "same"))).info.fingerprint == plain
    write_json(folder / "tercet.json", {"max_length": 64, "query_instruction": "hello "})
    encoder = load_encoder(str(folder))
    assert encoder.info.max_length == 64
    assert encoder.info.fingerprint != plain


def test_it_loads_no_engine(folder: Path) -> None:
    """Serving needs neither torch nor onnxruntime."""
    program = (
        "import sys; from tercet.models.loader import load_encoder; "
        "from tercet.models.encoder import encode; "
        f"encode(load_encoder({str(folder)!r}), ['wing']); "
        "print([name for name in ('torch', 'onnxruntime', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_it_cannot_do(folder: Path, tmp_path: Path) -> None:
    encoder = load_encoder(str(folder))
    with pytest.raises(AdapterNotFoundError):
        with_adapter(encoder, "law")
    assert encoder.describe_adapters() == []
    with pytest.raises(UnsupportedError, match="the vectors of static are float32"):
        load_encoder(str(folder), precision="int8")
    with pytest.raises(UnsupportedError, match="static embeddings, which have no graph"):
        export(folder, tmp_path / "exported", int8=False)


Change = Callable[[Path], object]


def _arrays(**arrays: Any) -> Change:
    return lambda folder: save_file(arrays, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json is missing"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), r"tokenizer\.json is damaged"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors is missing"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "cannot be read"),
        (_arrays(vectors=np.ones((71, 4))), "has neither embedding.weight nor embeddings"),
        (_arrays(embeddings=np.ones(71)), r"shape \(71,\); a table of rows"),
        (_arrays(embeddings=np.ones((70, 4))), "of another vocabulary: it has 70 vectors, but .* has 71"),
        (_arrays(embeddings=np.ones((71, 4)), weights=np.ones(9)), "another vocabulary: it has 9 weights"),
        (_arrays(embeddings=np.ones((4, 4)), mapping=np.full(71, 4)), "mapping must name rows from 0 to 3"),
        (_arrays(embeddings=np.ones((4, 4)), mapping=np.zeros(70, int)), "it has 70 mapping"),
        (_arrays(embeddings=np.ones((4, 4)), mapping=np.zeros(71)), "mapping must name rows from 0 to 3"),
        (_arrays(embeddings=np.ones((71, 4)), weights=np.ones((71, 2))), r"weights have shape \(71, 2\)"),
        (_arrays(embeddings=np.full((71, 4), np.nan)), "vectors has values that are not finite"),
        (
            lambda folder: write_json(
                folder / "modules.json",
                [{"path": ".", "type": STATIC}, {"path": "1", "type": "sentence_transformers.models.Dense"}],
            ),
            "StaticEmbedding and Dense is not read here",
        ),
        (lambda folder: write_json(folder / "tercet.json", {"pooling": "cls"}), "of static embeddings it is"),
        (lambda folder: write_json(folder / "tercet.json", {"max": 1}), "unknown keys"),
        (
            lambda folder: write_json(folder / "config.json", {"model_type": "model2vec", "max_length": "9"}),
            "max_length",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_named(folder: Path, change: Change, message: str) -> None:
    change(folder)
    with pytest.raises(CheckpointError, match=message):
        load_encoder(str(folder))
