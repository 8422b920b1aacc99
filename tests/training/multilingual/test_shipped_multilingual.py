"""checkpoints/multi-m3: it goes by its name, reads many languages, and its card tells the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import DEFAULT_CHECKPOINT, resolve_checkpoint
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.training.settings.reading import read_settings
from tercet.training.settings.run import RunSettings

TEXTS = ["The government went to war.", "Bread is baked from flour.", "Music for two violins."]


@pytest.fixture(scope="module")
def multilingual() -> Encoder:
    return load_encoder("multi-m3", threads=1)


@pytest.fixture(scope="module")
def settings(repository: Path) -> RunSettings:
    return read_settings(repository / "training" / "configs" / "multi-m3.toml")


@pytest.mark.slow
def test_it_comes_with_the_project(repository: Path, multilingual: Encoder, settings: RunSettings) -> None:
    assert DEFAULT_CHECKPOINT == "multi-m3"
    assert resolve_checkpoint("multi-m3") == repository / "checkpoints" / "multi-m3"
    info = multilingual.info
    assert (info.name, info.precision, info.lexical) == ("multi-m3", "int8", "idf")
    assert (info.dense_dimension, info.colbert_dimension, info.max_length) == (384, 128, 512)
    assert info.colbert_dimension == settings.heads.colbert_dimension
    # XLM-RoBERTa's, which is BGE-M3's.
    assert multilingual.tokenizer.vocabulary_size == 250_002


@pytest.mark.parametrize(
    "query",
    [
        "전쟁과 정부",
        "戦争と政府",
        "战争与政府",
        "Krieg und Regierung",
        "война и правительство",
        "guerra y gobierno",
        "युद्ध और सरकार",
        "สงครามและรัฐบาล",
        "الحرب والحكومة",
        "vita na serikali",
    ],
)
def test_a_query_finds_the_english_text_about_it(query: str, multilingual: Encoder) -> None:
    asked, held = encode(multilingual, [query], "query"), encode(multilingual, TEXTS)
    assert asked.dense is not None
    assert held.dense is not None
    assert (held.dense @ asked.dense[0]).argmax() == 0
    assert asked.colbert is not None
    assert held.colbert is not None
    alignments = [
        (asked.colbert.row(0) @ held.colbert.row(i).T).max(axis=1).mean() for i in range(len(TEXTS))
    ]
    assert int(np.argmax(alignments)) == 0


def test_unrelated_texts_are_far_apart(multilingual: Encoder) -> None:
    """Its body alone gives them cosines around 0.8, which would drown the dense side in the sum."""
    dense = encode(multilingual, TEXTS).dense
    assert dense is not None
    assert (dense @ dense.T)[np.triu_indices(len(TEXTS), 1)].max() < 0.4


def test_the_word_that_matters_weighs_most(multilingual: Encoder) -> None:
    for text, most in (("정부의", "▁정부"), ("how heavy is the moon", "moon")):
        sparse = encode(multilingual, [text], "query").sparse
        assert sparse is not None
        ids, weights = sparse.row(0)
        assert multilingual.tokenizer.token_strings(ids[[weights.argmax()]]) == [most]


def test_the_card_names_base_sources_and_licences(repository: Path, settings: RunSettings) -> None:
    card = (repository / "checkpoints" / "multi-m3" / "README.md").read_text(encoding="utf-8")
    for fact in (settings.base.name, settings.base.licence):
        assert fact in card
    for source in settings.data.sources:
        assert source.title in card
        assert source.licence in card


def test_only_sources_that_allow_a_published_model_are_trained_on(settings: RunSettings) -> None:
    allowed = ("CC BY 4.0", "CC BY-SA", "PSF-2.0", "MPL-2.0", "public domain")
    for source in settings.data.sources:
        if source.train:
            assert source.licence.startswith(allowed)
            assert "NC" not in source.licence
            assert "GPL" not in source.licence


def test_it_holds_one_graph_and_no_large_file(repository: Path) -> None:
    folder = repository / "checkpoints" / "multi-m3"
    sizes = {path.name: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    assert [name for name in sizes if name.endswith(".onnx")] == ["model_int8.onnx"]
    assert not sizes.keys() & {"model.safetensors", "tokenizer.json"}
    assert max(sizes.values()) < 90_000_000
    assert sum(sizes.values()) < 85_000_000
