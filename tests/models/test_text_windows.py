"""Windows of a text: between words, all of it, none longer than asked, whatever the text."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Vocabulary
from tokenizers import decoders, models, pre_tokenizers, processors

from models import text_windows
from models.checkpoint import EncodingSettings
from models.errors import UnsupportedError
from models.text_windows import WindowCutter
from models.tokenizer import Tokenizer

WORDS = ["tea", "hot", "water"]


def pieces(text: str, cutter: WindowCutter, head: str = "") -> list[str]:
    return [text[start:end] for start, end in cutter.cut(text, head)]


@pytest.fixture(scope="module")
def wordpiece(embedded_checkpoint: Path) -> Tokenizer:
    """The tokenizer of the embedded checkpoint: words of letters, and pieces of words."""
    return Tokenizer.load(embedded_checkpoint, EncodingSettings(max_length=512))


@pytest.fixture(scope="module")
def unigram() -> Tokenizer:
    """A tokenizer as of XLM-RoBERTa: a word is what lies between spaces, and begins with a mark."""
    pieces = [
        ("<s>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("▁a", -1.5),
        ("ab", -2.5),
        ("ba", -2.4),
    ]
    pieces += [(letter, -4.0) for letter in "ab木水"]
    vocabulary = Vocabulary(models.Unigram(pieces, unk_id=2))
    vocabulary.pre_tokenizer = pre_tokenizers.Metaspace()
    vocabulary.decoder = decoders.Metaspace()
    vocabulary.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return Tokenizer(vocabulary.to_str().encode(), EncodingSettings(max_length=64))


def test_windows_by_hand(tiny: Any) -> None:
    """Eight tokens are six words between [CLS] and [SEP]; two of them are shared."""
    text = "  tea hot water brew train rail station green leaf black steam "
    cutter = WindowCutter.of(tiny.tokenizer, tokens=8, overlap=2)
    assert (cutter.room, pieces(text, cutter)) == (
        6,
        [
            "  tea hot water brew train rail",
            "train rail station green leaf black",
            "leaf black steam ",
        ],
    )
    assert pieces("tea", cutter) == ["tea"]
    assert pieces("", cutter) == [""]
    assert pieces("tea hot water brew train rail", cutter) == ["tea hot water brew train rail"]


def test_a_head_takes_room_in_every_window(tiny: Any) -> None:
    cutter = WindowCutter.of(tiny.tokenizer, tokens=8, overlap=1)
    assert cutter.takes("green tea\n")
    assert pieces("a the hot water brew train rail", cutter, "green tea\n") == [
        "a the hot water",
        "water brew train rail",
    ]
    assert not cutter.takes("green tea leaf\n")  # 2 · 3 > 6 − 1


def test_cuts_fall_between_words(wordpiece: Tokenizer) -> None:
    """Where they can: "unbelievably" has several tokens."""
    cutter = WindowCutter.of(wordpiece, tokens=20, overlap=2)
    text = "an unbelievably electroencephalographic story of uncharacteristically small hippopotamuses. " * 3
    found = pieces(text, cutter)
    assert len(found) > 4
    whole = set(re.findall(r"\w+", text))
    assert all(word in whole for piece in found for word in re.findall(r"\w+", piece))


def test_a_word_longer_than_a_window_is_cut(unigram: Tokenizer) -> None:
    cutter = WindowCutter.of(unigram, tokens=10, overlap=2)
    text = "木水" * 30
    found = pieces(text, cutter)
    assert found[0] + "".join(piece[2:] for piece in found[1:]) == text
    assert all(len(unigram.tokenize([piece]).token_ids) <= 10 for piece in found)


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(st.sampled_from("ab木水 .\n\u3000é"), max_size=400),
    tokens=st.integers(8, 20),
    share=st.floats(0, 0.75),
    characters=st.integers(1, 3),
)
@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_windows_hold_all_of_a_text_and_fit(
    request: pytest.FixtureRequest, kind: str, text: str, tokens: int, share: float, characters: int
) -> None:
    """Also where the text is tokenized in parts of few characters."""
    tokenizer: Tokenizer = request.getfixturevalue(kind)
    cutter = WindowCutter.of(tokenizer, tokens, int(share * (tokens - 2)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_windows, "CHARACTERS_PER_TOKEN", characters)
        patched.setattr(text_windows, "CUT_MARGIN_TOKENS", 8)
        spans = list(cutter.cut(text))
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    for (start, end), (following, further) in pairwise(spans):
        assert start < following
        assert end < further
        assert not tokenizer.spans(text[end:following])  # nothing between them
    for start, end in spans:
        assert not tokenizer.tokenize([text[start:end]], max_length=tokens).truncated[0]


def test_neighbours_share_so_many_tokens(wordpiece: Tokenizer) -> None:
    text = " ".join(WORDS[place % 3] for place in range(3000))
    spans = list(WindowCutter.of(wordpiece, tokens=256, overlap=64).cut(text))
    assert {len(wordpiece.spans(text[start:end])) for start, end in spans[:-1]} == {254}
    shared = [text[start:end] for (_, end), (start, _) in pairwise(spans)]
    assert {len(part.split()) for part in shared} == {64}
    assert len(spans) == 16  # 254 + 15 · 190 ≥ 3000


def test_what_an_encoder_does_not_take_is_refused(tiny: Any) -> None:
    with pytest.raises(
        UnsupportedError, match="windows of 33 tokens are asked for; this encoder takes at most 32"
    ):
        WindowCutter.of(tiny.tokenizer, tokens=33, overlap=0)
    wordy = Tokenizer(
        tiny.tokenizer.to_bytes(), EncodingSettings(max_length=32, document_instruction="tea hot water brew ")
    )
    with pytest.raises(UnsupportedError, match="windows of 8 tokens have room for 2 of a text"):
        WindowCutter.of(wordy, tokens=8, overlap=2)
    assert WindowCutter.of(wordy, tokens=8, overlap=1).room == 2
