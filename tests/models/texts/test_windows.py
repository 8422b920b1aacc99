"""Windows of a text: between words, all of it, none longer than asked, whatever the text."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Vocabulary
from tokenizers import decoders, models, pre_tokenizers, processors

from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import TextTooLongError, UnsupportedWindowError
from tercet.models.texts import edges, windows
from tercet.models.texts.windows import WindowCutter
from tercet.models.tokenizer import Tokenizer

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
    """Eight tokens are six words between [CLS] and [SEP]; two of them are shared. No blanks are cut off of a
    text that fits.
    """
    text = "  tea hot water brew train rail station green leaf black steam "
    cutter = WindowCutter.of(tiny.tokenizer, tokens=8, overlap=2)
    assert (cutter.room, pieces(text, cutter)) == (
        6,
        [
            "tea hot water brew train rail",
            "train rail station green leaf black",
            "leaf black steam",
        ],
    )
    assert pieces(" tea ", cutter) == [" tea "]
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


LETTERS = st.sampled_from("ab木水 .\n\u3000é한\u0301")
RUNS = st.sampled_from(["tea ", "木", "한", " " * 30, "\u3000" * 90, "a" * 50])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    text=st.text(LETTERS, max_size=400) | st.lists(RUNS, max_size=20).map("".join),
    tokens=st.integers(8, 20),
    share=st.floats(0, 0.75),
    characters=st.integers(1, 3),
    most=st.sampled_from([5, 40, 100_000]),
)
@example(  # the first part ends with the three tokens of one character, which count as none before its edge
    text="木한\u0301\u3000木\u3000\u3000한\n.水éé한é\u3000木 ",
    tokens=8,
    share=0.65,
    characters=1,
    most=100_000,
)
@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_windows_hold_all_of_a_text_and_fit(
    request: pytest.FixtureRequest,
    kind: str,
    text: str,
    tokens: int,
    share: float,
    characters: int,
    most: int,
) -> None:
    """Also where the text is tokenized in parts of few characters, and windows may have few."""
    tokenizer: Tokenizer = request.getfixturevalue(kind)
    cutter = WindowCutter.of(tokenizer, tokens, int(share * (tokens - 2)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(edges, "CHARACTERS_PER_TOKEN", characters)
        patched.setattr(edges, "CUT_MARGIN_TOKENS", 8)
        for module in (edges, windows):
            patched.setattr(module, "MOST_CHARACTERS", most)
        spans = list(islice(cutter.cut(text), len(text) + 1))
    assert not text[: spans[0][0]].strip()
    assert not text[spans[-1][1] :].strip()
    for (start, end), (following, further) in pairwise(spans):
        assert start < following
        assert end < further
        assert not text[end:following].strip()  # nothing between them
    for start, end in spans:
        assert end - start <= most
        assert not tokenizer.tokenize([text[start:end]], max_length=tokens).truncated[0]


def test_white_space_longer_than_a_window_ends_one(wordpiece: Tokenizer) -> None:
    """It is longer, too, than what is tokenized at once, so that no token of the part comes after it."""
    before, after = "tea " * 300, "water " * 3
    text = before + " " * 5 * edges.MOST_CHARACTERS + after
    spans = list(islice(WindowCutter.of(wordpiece, tokens=256, overlap=64).cut(text), 10))
    assert [text[start:end].split()[0] for start, end in spans[:2]] == ["tea", "tea"]
    assert (spans[-2][1], spans[-1]) == (len(before) - 1, (len(text) - len(after), len(text) - 1))


def test_neighbours_share_so_many_tokens(wordpiece: Tokenizer) -> None:
    text = " ".join(WORDS[place % 3] for place in range(3000))
    spans = list(WindowCutter.of(wordpiece, tokens=256, overlap=64).cut(text))
    assert {len(wordpiece.spans(text[start:end])) for start, end in spans[:-1]} == {254}
    shared = [text[start:end] for (_, end), (start, _) in pairwise(spans)]
    assert {len(part.split()) for part in shared} == {64}
    assert len(spans) == 16  # 254 + 15 · 190 ≥ 3000


def test_a_character_of_several_tokens_is_not_cut(wordpiece: Tokenizer) -> None:
    """The syllable 한 is three letters to this tokenizer, all of them at the same place of the text.

    The first part that is tokenized holds just as many tokens as make one window.
    """
    cutter = WindowCutter.of(wordpiece, tokens=16, overlap=12)
    assert wordpiece.spans("한").starts.tolist() == [0, 0, 0]
    part = "한" + "!" * (cutter.room + 128 - 3 - 20) + (" " + "x" * 100) * 20
    text = part.ljust((cutter.room + 128) * 16) + "tea water " * 100
    starts = [start for start, _ in islice(cutter.cut(text), 2000)]
    assert len(starts) < 1000
    assert len(set(starts)) == len(starts)


@pytest.fixture(scope="module")
def multilingual(repository: Path) -> Tokenizer:
    """A tokenizer to which ﷺ, one character, is a sentence of four tokens."""
    return Tokenizer.load(repository / "checkpoints" / "multi-m3", EncodingSettings(max_length=512))


@pytest.mark.slow
def test_a_window_without_room_leaves_out_the_head(multilingual: Tokenizer) -> None:
    """Six tokens beside the special ones: of head and text, or of the text alone where these do not fit."""
    cutter = WindowCutter.of(multilingual, tokens=8, overlap=0)
    text, head = "tea ﷺ water", "hot green tea\n"
    assert cutter.takes(head)
    parts = [cutter.joined(head, part) for part in pieces(text, cutter, head)]
    assert parts == ["hot green tea\ntea", "ﷺ", "hot green tea\nwater"]


@pytest.mark.slow
def test_a_character_longer_than_a_window_is_named(multilingual: Tokenizer) -> None:
    wordy = Tokenizer(multilingual.to_bytes(), EncodingSettings(max_length=64, document_instruction="a: b: "))
    cutter = WindowCutter.of(wordy, tokens=8, overlap=0)
    assert cutter.room < 4
    with pytest.raises(TextTooLongError, match=rf"'ﷺ' has 4 tokens, .* room for {cutter.room}: use longer"):
        pieces("tea ﷺ water", cutter)


def test_accents_at_a_cut_stay(wordpiece: Tokenizer) -> None:
    """This tokenizer drops combining marks: they are of no token."""
    text = "cafe\u0301 " * 8
    cutter = WindowCutter.of(wordpiece, tokens=8, overlap=0)
    assert pieces(text, cutter) == [
        "cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301",
        "cafe\u0301 cafe\u0301",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "x" * 250_000,
        "tea" + " " * 250_000 + "water",
        " " * 250_000,
        "\u0301" * 250_000,
        "QUJD" * 60_000 + " tea",
    ],
    ids=["one word", "blanks between", "blanks alone", "no token", "base64"],
)
def test_few_tokens_of_many_characters_are_cut(wordpiece: Tokenizer, text: str) -> None:
    """An encoder worker elsewhere refuses texts of more characters than it allows."""
    spans = list(WindowCutter.of(wordpiece, tokens=64, overlap=0).cut(text, "head\n"))
    assert all(end - start + 5 <= 100_000 for start, end in spans)
    held = "".join(text[start:end] for start, end in spans)
    assert re.sub(r"\s+", "", held) == re.sub(r"\s+", "", text)


def test_a_head_of_any_size_is_refused_at_once(wordpiece: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is far too long is not tokenized."""
    cutter, read = WindowCutter.of(wordpiece, tokens=256, overlap=64), []
    real = Tokenizer.spans
    monkeypatch.setattr(Tokenizer, "spans", lambda self, text: read.append(len(text)) or real(self, text))
    assert not cutter.takes("tea " * 1_000_000)
    assert sum(read) == 0
    assert cutter.takes("tea ")
    assert sum(read) == 4


def test_what_an_encoder_does_not_take_is_refused(tiny: Any) -> None:
    with pytest.raises(
        UnsupportedWindowError, match=r"window\.tokens is 33; this encoder takes at most 32: use"
    ):
        WindowCutter.of(tiny.tokenizer, tokens=33, overlap=0)
    wordy = Tokenizer(
        tiny.tokenizer.to_bytes(), EncodingSettings(max_length=32, document_instruction="tea hot water brew ")
    )
    with pytest.raises(
        UnsupportedWindowError, match=r"window\.overlap is 2; .* room for 2 beside .* less than 2"
    ):
        WindowCutter.of(wordy, tokens=8, overlap=2)
    assert WindowCutter.of(wordy, tokens=8, overlap=1).room == 2
    wordy = Tokenizer(
        tiny.tokenizer.to_bytes(),
        EncodingSettings(max_length=32, document_instruction="tea hot water brew a the "),
    )
    with pytest.raises(UnsupportedWindowError, match=r"window\.tokens is 8; .* take 8: use more than 8"):
        WindowCutter.of(wordy, tokens=8, overlap=0)
