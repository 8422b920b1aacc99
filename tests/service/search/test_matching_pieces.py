"""Pieces of the shipped tokenizers in texts: whole words between spaces, and stretches of other scripts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.tokenizer import Tokenizer
from tercet.service.search.matching_pieces import matching_pieces


@pytest.fixture(scope="module", params=["multi-m3", "minilm-m3"])
def tokenizer(request: pytest.FixtureRequest, repository: Path) -> Tokenizer:
    """Of SentencePiece and of WordPiece."""
    return Tokenizer.load(repository / "checkpoints" / request.param, EncodingSettings(max_length=512))


@pytest.fixture(scope="module")
def multilingual(repository: Path) -> Tokenizer:
    return Tokenizer.load(repository / "checkpoints" / "multi-m3", EncodingSettings(max_length=512))


def marked(tokenizer: Tokenizer, query: str, text: str) -> str:
    """The text with brackets around what matches a query of these pieces."""
    token_ids = np.unique(tokenizer.tokenize_whole([query]).token_ids)
    shown, place = "", 0
    for start, end in matching_pieces(text, token_ids, tokenizer).tolist():
        assert place <= start < end
        shown += text[place:start] + "[" + text[start:end] + "]"
        place = end
    return shown + text[place:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("how is tea made?", "tea? It is made.", "[tea]? It [is] [made]."),
        ("mountains", "the mountains, a train's s", "the [mountains], a train's s"),
        ("unhappy", "an unhappy unbelievable", "an [unhappy] unbelievable"),
        ("tea", "", ""),
        ("tea", "🍵 🍵🍵 tea 🍵", "🍵 🍵🍵 [tea] 🍵"),
    ],
)
def test_words_match_as_a_whole(tokenizer: Tokenizer, query: str, text: str, expected: str) -> None:
    assert marked(tokenizer, query, text) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("서울 식당", "서울에서는 식당이", "[서울]에서는 [식당]이"),
        ("김치", "정치와 김치찌개", "정치와 [김치]찌개"),  # 김 and 치 are pieces
        ("绿茶", "中国绿茶文化", "中国[绿茶]文化"),
        ("緑茶の", "日本の 緑茶 の道", "日本の [緑茶] の道"),  # の alone is a particle
        ("Tee", "Der Tee, Teesorten", "Der [Tee], Teesorten"),
        ("чай", "чай и чайник", "[чай] и чайник"),
    ],
)
def test_other_scripts_match_piece_by_piece(
    multilingual: Tokenizer, query: str, text: str, expected: str
) -> None:
    assert marked(multilingual, query, text) == expected


def test_pieces_that_are_less_than_a_character_say_nothing(repository: Path) -> None:
    """WordPiece takes Hangul syllables apart into letters, which most words have."""
    tokenizer = Tokenizer.load(repository / "checkpoints" / "minilm-m3", EncodingSettings(max_length=512))
    assert marked(tokenizer, "서울", "서울에서는 식당이") == "서울에서는 식당이"
