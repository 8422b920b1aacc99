"""checkpoints/multi-m3: it goes by its name, reads other languages, and English as the default does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.checkpoint import resolve_checkpoint
from models.encoder import Encoder, encode
from models.loader import load_encoder


@pytest.fixture(scope="module")
def multilingual() -> Encoder:
    return load_encoder("multi-m3", threads=1)


def test_it_comes_with_the_project(repository: Path, multilingual: Encoder) -> None:
    assert resolve_checkpoint("multi-m3") == repository / "checkpoints" / "multi-m3"
    assert multilingual.info.name == "multi-m3"
    assert multilingual.info.precision == "int8"
    # 30,522 of the English base, and the rest of other languages.
    assert multilingual.tokenizer.vocabulary_size > 75_000


def test_english_keeps_its_vectors(embedded_checkpoint: Path, multilingual: Encoder) -> None:
    texts = ["how heavy is the moon", "Bread is baked from flour, water, yeast and salt."]
    english = encode(load_encoder(str(embedded_checkpoint), threads=1), texts)
    other = encode(multilingual, texts)
    assert english.dense is not None
    assert other.dense is not None
    assert other.colbert is not None
    np.testing.assert_allclose(other.dense, english.dense, atol=2e-3)


@pytest.mark.parametrize(
    "query",
    [
        "전쟁과 정부",
        "戦争と政府",
        "战争与政府",
        "Krieg und Regierung",
        "война и правительство",
        "guerra y gobierno",
    ],
)
def test_a_query_finds_the_english_text_about_it(query: str, multilingual: Encoder) -> None:
    texts = [query, "The government went to war.", "Bread is baked from flour.", "Music for two violins."]
    dense = encode(multilingual, texts).dense
    assert dense is not None
    similarities = dense[1:] @ dense[0]
    assert similarities.argmax() == 0


def test_a_word_is_the_same_term_wherever_it_stands(multilingual: Encoder) -> None:
    sparse = encode(multilingual, ["정부", "한국정부는"]).sparse
    assert sparse is not None
    assert set(sparse.row(0)[0]) <= set(sparse.row(1)[0])
