"""A checkpoint without the directions between languages, against the formula, with every engine."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tercet.models.encoder import Encoder, encode
from tercet.models.errors import CheckpointError
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32
from tercet.models.weights.head_weights import HEADS_FILE

torch = pytest.importorskip("torch", reason="to change a checkpoint takes torch: install tercet[torch]")
pytest.importorskip("onnxscript", reason="the export needs onnxscript: install tercet[torch]")

from tercet.models.weights.neutral_heads import language_directions
from tercet.training.errors import ConfigError, TrainingDataError
from tercet.training.neutralizing import RECORD_FILE, neutralize, texts_by_language
from tests.models.conftest import GOLDEN, export_both, write_bert
from tests.tiny.late_folders import POOLINGS, TANH, Layer, write_pooled
from tests.tiny.sparse_folders import write_splade, write_static

WORDS = {"en": ["wing", "air", "heat", "wave", "hello"], "ko": ["별", "밤", "hello"], "ja": ["東", "京", "!"]}
TEXTS = ["hello world", "wing air 별", "東京", "wave " * 30]


def drawn(count: int = 20) -> dict[str, list[str]]:
    draws = random.Random(4)
    return {
        language: [" ".join(draws.choices(words, k=3 + number % 4)) for number in range(count)]
        for language, words in WORDS.items()
    }


def torch_encoder(folder: Path) -> Encoder:
    return load_encoder(str(folder), "torch", device="cpu")


def dense_of(encoder: Encoder, texts: list[str]) -> Float32:
    dense = encode(encoder, texts, "document").dense
    assert dense is not None
    return dense


def dense_directions(encoder: Encoder, count: int) -> Float32:
    """Those in which the languages of `drawn` differ."""
    return language_directions(np.stack([dense_of(encoder, own).mean(0) for own in drawn().values()]), count)


def unit(vectors: Float32) -> Float32:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def written(folder: Path, output: Path, directions: int = 2) -> Path:
    engine = "onnx" if (folder / "onnx").is_dir() else "torch"
    neutralize(folder, load_encoder(str(folder), engine, device="cpu"), drawn(), output, directions)
    return output


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT with weights that differ, as training makes them: an export stores equal ones once."""
    folder = write_bert(tmp_path_factory.mktemp("checkpoints") / "bert")
    weights = load_file(folder / "model.safetensors")
    draws = np.random.default_rng(7)
    for name, values in weights.items():
        if values.ndim == 1:
            weights[name] = values + draws.normal(0, 0.02, values.shape).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def neutral(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(bert, tmp_path_factory.mktemp("checkpoints") / "neutral")


def test_vectors_are_those_of_the_formula(bert: Path, neutral: Path) -> None:
    """V, the principal directions of the means' differences, goes out: x - VᵀV·x, then to length 1."""
    before, after = torch_encoder(bert), torch_encoder(neutral)
    assert after.info.fingerprint != before.info.fingerprint
    by_language = [encode(before, own, "document") for own in drawn().values()]
    dense = dense_directions(before, 2)
    tokens = language_directions(
        np.stack([own.colbert.vectors.mean(0) for own in by_language if own.colbert is not None]), 2
    )
    was, now = encode(before, TEXTS), encode(after, TEXTS)
    assert was.dense is not None
    assert now.dense is not None
    assert was.colbert is not None
    assert now.colbert is not None
    np.testing.assert_allclose(now.dense, unit(was.dense - was.dense @ dense.T @ dense), atol=1e-6)
    expected = unit(was.colbert.vectors - was.colbert.vectors @ tokens.T @ tokens)
    np.testing.assert_allclose(now.colbert.vectors, expected, atol=1e-6)
    means = np.stack([dense_of(after, own).mean(0) for own in drawn().values()])
    np.testing.assert_allclose(means @ dense.T, 0, atol=1e-6)  # languages are alike along them
    assert was.sparse is not None
    assert now.sparse is not None
    np.testing.assert_array_equal(now.sparse.weights, was.sparse.weights)


def test_what_was_done_is_said(bert: Path, neutral: Path) -> None:
    record = json.loads((neutral / RECORD_FILE).read_text())
    assert record == {
        "source": torch_encoder(bert).info.fingerprint,
        "texts": {"en": 20, "ko": 20, "ja": 20},
        "dense": 2,
        "colbert": 2,
    }
    card = (neutral / "README.md").read_text()
    assert "2 out of dense vectors, 2 out of token vectors" in card
    assert card.startswith("# neutral\n")


@pytest.mark.slow
def test_every_engine_gives_the_same(neutral: Path, tmp_path: Path) -> None:
    reference = encode(torch_encoder(neutral), TEXTS)
    export_both(neutral, tmp_path / "exported", ["hello world"])
    exported = str(tmp_path / "exported")
    floats = encode(load_encoder(exported, "onnxruntime", precision="float32", device="cpu"), TEXTS)
    rounded = encode(load_encoder(exported, "onnxruntime", precision="int8", device="cpu"), TEXTS)
    kernels = load_encoder(exported, device="cpu")
    native = encode(kernels, TEXTS)
    assert kernels.info.engine == "native"
    for found, other, tolerance in ((floats, reference, 1e-5), (native, rounded, 0.1)):
        assert found.dense is not None
        assert found.colbert is not None
        assert other.colbert is not None
        np.testing.assert_allclose(found.dense, other.dense, atol=tolerance)
        np.testing.assert_allclose(found.colbert.vectors, other.colbert.vectors, atol=tolerance)
    assert native.dense is not None
    np.testing.assert_array_equal(dense_of(kernels, TEXTS[:1])[0], native.dense[0])


@pytest.mark.slow
def test_of_an_int8_graph_alone_the_heads_change_and_no_weight(bert: Path, tmp_path: Path) -> None:
    from tercet.models.export_onnx import export

    folder = tmp_path / "packed"
    export(bert, folder, int8=True, calibration=["hello world"])
    output = written(folder, tmp_path / "neutral")
    name = "onnx/model_int8.onnx.data"
    assert (output / name).read_bytes() == (folder / name).read_bytes()
    before, after = (load_encoder(str(each), "native", device="cpu") for each in (folder, output))
    plain, directions = dense_of(before, TEXTS), dense_directions(before, 2)
    expected = unit(plain - plain @ directions.T @ directions)
    np.testing.assert_allclose(dense_of(after, TEXTS), expected, atol=1e-5)


def test_the_layout_of_bge_m3(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "checkpoint", tmp_path / "golden"))
    (folder / "README.md").write_text("# Golden\n")
    output = written(folder, tmp_path / "neutral", 1)
    assert (output / HEADS_FILE).is_file()
    assert not list(output.glob("*_linear.pt"))
    assert (output / "README.md").read_text().startswith("# Golden\n\n## Languages\n")
    assert torch_encoder(output).info.sides == ("dense", "sparse", "colbert")


def test_modules_of_sentence_transformers_come_first(tmp_path: Path) -> None:
    folder = write_pooled(tmp_path / "pooled", (Layer(16, bias=True, activation=TANH),), POOLINGS[0])
    before, after = torch_encoder(folder), torch_encoder(written(folder, tmp_path / "neutral", 1))
    was, direction = dense_of(before, TEXTS), dense_directions(before, 1)
    expected = unit(was - was @ direction.T @ direction)
    np.testing.assert_allclose(dense_of(after, TEXTS), expected, atol=1e-6)


def test_what_is_refused(bert: Path, neutral: Path, tmp_path: Path) -> None:
    encoder, output = torch_encoder(bert), tmp_path / "no"
    with pytest.raises(CheckpointError, match="neutral exists; name a new folder"):
        neutralize(bert, encoder, drawn(), neutral)
    with pytest.raises(
        ConfigError, match="directions is 3; 3 languages and vectors of 16 values have 1 to 2"
    ):
        neutralize(bert, encoder, drawn(), output, 3)
    splade = write_splade(tmp_path / "splade")
    with pytest.raises(CheckpointError, match="neither dense nor token vectors"):
        neutralize(splade, torch_encoder(splade), drawn(), output)
    static = write_static(tmp_path / "static")
    with pytest.raises(CheckpointError, match="holds static embeddings, which have no head"):
        neutralize(static, load_encoder(str(static)), drawn(), output)
    assert not output.exists()
    assert not list(tmp_path.glob(".no*"))


def test_texts_of_each_language_are_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "de.txt").write_text("".join(f"Satz {number}\n" for number in range(20)) + "Satz 1\n")
    with pytest.raises(TrainingDataError, match="has texts in one language; give two at least"):
        texts_by_language(tmp_path)
    lines = [json.dumps({"title": "Titre", "text": f"phrase {number}"}) for number in range(19)]
    (tmp_path / "fr.jsonl").write_text("\n".join(lines))
    with pytest.raises(TrainingDataError, match="fr has 19 texts; give 20 at least"):
        texts_by_language(tmp_path)
    (tmp_path / "fr.jsonl").write_text("\n".join([*lines, '{"text": "la fin"}']))
    texts = texts_by_language(tmp_path)
    assert {language: len(own) for language, own in texts.items()} == {"de": 20, "fr": 20}
    assert texts["fr"][0] == "Titre phrase 0"
    assert texts["fr"][-1] == "la fin"
