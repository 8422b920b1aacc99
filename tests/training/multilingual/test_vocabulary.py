"""The extended tokenizer: English keeps its tokens, other languages get pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from training.multilingual.align import token_rows, unpadded
from training.multilingual.vocabulary import extended, spaced_pieces, unspaced_pieces, without_english_changes


@pytest.fixture
def base_json(embedded_checkpoint: Path) -> str:
    return (embedded_checkpoint / "tokenizer.json").read_text(encoding="utf-8")


def test_english_keeps_its_tokens(base_json: str, embedded_checkpoint: Path) -> None:
    texts = ["The mass of the moon, measured in 1969.", "unaffordable electroencephalography"]
    tokenizer = Tokenizer.from_str(extended(base_json, ["regierung", "##daten"], ["정부"]))
    assert token_rows(tokenizer, texts) == token_rows(unpadded(embedded_checkpoint / "tokenizer.json"), texts)


def test_words_without_spaces_are_found_anywhere_longest_first(base_json: str) -> None:
    tokenizer = Tokenizer.from_str(extended(base_json, [], ["정", "정부", "한국", "는", "政府"]))
    tokens = tokenizer.encode("한국정부는 政府。", add_special_tokens=False).tokens
    assert tokens == ["한국", "정부", "는", "政府", "。"]


def test_accents_are_kept_and_a_turkish_capital_is_one_letter(base_json: str) -> None:
    tokenizer = Tokenizer.from_str(extended(base_json, ["regierungen", "straße", "chính"], []))
    tokens = tokenizer.encode("REGIERUNGEN Straße Chính İran", add_special_tokens=False).tokens
    assert tokens == ["regierungen", "straße", "chính", "iran"]


def test_a_piece_that_would_change_english_is_left_out(base_json: str) -> None:
    """`immu` would be the longest beginning of immunoassay."""
    words = {"immunoassay": 100.0, "moon": 1000.0}
    assert without_english_changes(base_json, ["immu", "regierungen"], words, 8.0) == ["regierungen"]
    assert without_english_changes(base_json, ["immu"], words, 1000.0) == ["immu"]


def test_pieces_come_by_frequency() -> None:
    assert unspaced_pieces({"정부": 5.0, "나라": 9.0, "나": 1.0}, words=1, characters=1) == ["나라", "나"]
    learned = spaced_pieces({"haus": 90.0, "hausboot": 40.0, "boot": 60.0, "정부": 99.0}, 60)
    assert "haus" in learned
    assert not any("정" in piece for piece in learned)
