"""checkpoints/minilm-m3 against the settings that made it: it loads, and its card tells the truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations
from tercet.training.settings.reading import read_settings
from tercet.training.settings.run import RunSettings


@pytest.fixture
def heads_settings(repository: Path) -> RunSettings:
    return read_settings(repository / "training" / "configs" / "minilm-m3-heads.toml")


@pytest.fixture
def settings(repository: Path) -> RunSettings:
    return read_settings(repository / "training" / "configs" / "minilm-m3.toml")


def test_it_loads_and_encodes_all_three(
    embedded_checkpoint: Path, heads_settings: RunSettings, settings: RunSettings
) -> None:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    assert encoder.info.name == settings.name
    assert encoder.info.precision == "int8"
    assert encoder.info.lexical == "idf"
    assert encoder.info.colbert_dimension == heads_settings.heads.colbert_dimension
    assert encoder.info.max_length == heads_settings.encoder.max_length
    assert encoder.info.pooling == heads_settings.encoder.pooling
    texts = ["how heavy is the moon", "the mass of the moon", "bread is baked from flour"]
    encoded = encode(encoder, texts)
    assert encoded.dense is not None
    assert encoded.sparse is not None
    similarities = encoded.dense @ encoded.dense[0]
    assert similarities[1] > similarities[2]
    ids, weights = encoded.sparse.row(0)
    by_word = dict(zip(encoder.tokenizer.token_strings(ids), weights.tolist(), strict=True))
    assert set(sorted(by_word, key=by_word.__getitem__)[-2:]) == {"heavy", "moon"}
    assert by_word.get("the", 0.0) < by_word["moon"] / 2
    assert np.all(weights > 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_a_text_has_the_same_vectors_alone_and_in_any_batch(name: str, repository: Path) -> None:
    encoder = load_encoder(name, threads=1)
    lines = (repository / "examples" / "demo" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines[::6]]  # in five languages
    together = encode(encoder, texts)
    alone = Representations.concatenate([encode(encoder, [text]) for text in texts])
    assert together.sparse is not None
    assert together.colbert is not None
    assert alone.sparse is not None
    assert alone.colbert is not None
    np.testing.assert_allclose(together.dense, alone.dense, atol=1e-6)
    np.testing.assert_array_equal(together.sparse.weights, alone.sparse.weights)
    np.testing.assert_array_equal(together.colbert.vectors, alone.colbert.vectors)


def test_the_second_run_starts_from_the_first(heads_settings: RunSettings, settings: RunSettings) -> None:
    assert settings.base.checkpoint == f"trained/{heads_settings.name}"
    assert heads_settings.base.name in settings.base.name


def test_the_card_names_base_sources_and_licences(embedded_checkpoint: Path, settings: RunSettings) -> None:
    card = (embedded_checkpoint / "README.md").read_text(encoding="utf-8")
    for fact in (settings.base.name, settings.base.licence):
        assert fact in card
    for source in settings.data.sources:
        assert source.title in card
        assert source.licence in card


def test_only_sources_that_allow_a_published_model_are_trained_on(
    heads_settings: RunSettings, settings: RunSettings
) -> None:
    for source in (*heads_settings.data.sources, *settings.data.sources):
        if source.train:
            assert source.licence.startswith(("CC BY 4.0", "CC BY-SA", "CC0", "PSF-2.0"))
            assert "NC" not in source.licence


def test_it_holds_one_graph_of_about_23_megabytes(embedded_checkpoint: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in embedded_checkpoint.rglob("*") if path.is_file()}
    assert [name for name in sizes if name.endswith(".onnx")] == ["model_int8.onnx"]
    assert sum(sizes.values()) < 25_000_000
    assert "model.safetensors" not in sizes
