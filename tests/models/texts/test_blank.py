"""Blank texts say nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import encode
from tercet.models.representations import OUTPUTS
from tercet.models.soundness import Expected, faults
from tercet.models.texts.blank import is_blank, without_blank
from tercet.models.tokenizer import Tokenizer


@pytest.mark.parametrize("text", ["", " ", "\t \n", "\u200b", "\u00a0 "])
def test_spaces_are_blank(tiny: Any, text: str) -> None:
    assert is_blank(tiny.tokenizer, text) == (text != "\u200b")  # which this one has an unknown token for


@pytest.mark.parametrize("text", ["tea", " tea", "?", "…", "7", "茶"])
def test_words_and_signs_are_not(tiny: Any, text: str) -> None:
    assert not is_blank(tiny.tokenizer, text)


def test_an_instruction_is_no_text(tiny: Any) -> None:
    settings = EncodingSettings(pooling="mean", max_length=8, query_instruction="hot ")
    tokenizer = Tokenizer.from_bytes(tiny.tokenizer.to_bytes(), settings)
    assert is_blank(tokenizer, "  ", "query")
    assert not is_blank(tokenizer, "?", "query")


def test_blank_texts_have_no_weights_and_vectors_of_nothing(tiny: Any) -> None:
    texts = ["hot tea", " ", "tea", ""]
    encoded = encode(tiny, texts)
    said = without_blank(tiny.tokenizer, texts, encoded)
    assert said.dense is not None
    assert said.sparse is not None
    assert said.colbert is not None
    assert said.dense.any(axis=1).tolist() == [True, False, True, False]
    assert np.diff(said.colbert.offsets).tolist() == [3, 0, 2, 0]
    assert np.diff(said.sparse.indptr).tolist() == [2, 0, 1, 0]
    others = np.array([0, 2])
    kept, whole = said.take(others), encoded.take(others)
    for one, other in (
        (kept.dense, whole.dense),
        (kept.sparse.weights, whole.sparse.weights),  # type: ignore[union-attr]
        (kept.colbert.vectors, whole.colbert.vectors),  # type: ignore[union-attr]
    ):
        np.testing.assert_array_equal(one, other)
    assert without_blank(tiny.tokenizer, ["hot tea", "tea"], whole) is whole
    stored = Expected(len(texts), OUTPUTS, tiny.info, blank=True)
    assert list(faults(said, stored)) == []
    assert [fault.text for fault in faults(said, replace(stored, blank=False))] == [1, 3]
    only_zeros = replace(encoded, dense=said.dense)  # with token vectors
    assert [(fault.array, fault.text) for fault in faults(only_zeros, stored)] == [("dense", 1), ("dense", 3)]
