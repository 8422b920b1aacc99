"""Step 2: which English tokens the pieces of a language stand for."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from scipy import sparse
from tokenizers import Tokenizer

from models.tokenizer import TOKENIZER_FILE
from training.multilingual.alignment import Ints, Offsets, expected_counts
from training.multilingual.frequencies import word_frequencies
from training.multilingual.parallel import Translated, read_parallel
from training.settings.multilingual import MultilingualSettings

# The token of no word: [PAD], which no text has.
NO_WORD = 0
LEAST_COUNT = 0.02
TEXTS_AT_A_TIME = 2000


def align_language(
    settings: MultilingualSettings, language: str, base: Path, tokenizer: Path, data: Path, output: Path
) -> None:
    """Writes the expected alignments of every piece with every token of the base, csr float32[V, E]."""
    extended = Tokenizer.from_file(str(tokenizer))
    english = unpadded(base / TOKENIZER_FILE)
    chosen = settings.alignment
    pairs = chosen_pairs(settings, language, data)
    left = token_rows(extended, [pair.text for pair in pairs])
    right = token_rows(english, [pair.english for pair in pairs])
    fits = [
        row
        for row in range(len(pairs))
        if 0 < len(left[row]) <= chosen.tokens and 0 < len(right[row]) <= chosen.tokens
    ]
    # A token that a text has twice counts once.
    source = packed([[NO_WORD, *sorted(set(left[row]))] for row in fits])
    target = packed([sorted(set(right[row])) for row in fits])
    shape = (extended.get_vocab_size(), english.get_vocab_size())
    counts = expected_counts(source, target, shape, chosen.iterations)
    counts.data[counts.data < LEAST_COUNT] = 0
    counts.eliminate_zeros()
    sparse.save_npz(output, counts)


def chosen_pairs(settings: MultilingualSettings, language: str, data: Path) -> list[Translated]:
    """All pairs of trusted sources, and of others as many as the settings say."""
    chosen, generator = settings.alignment, random.Random(settings.seed)  # noqa: S311  # no secret
    trusted: list[Translated] = []
    texts: list[Translated] = []
    words: list[Translated] = []
    korean = korean_words(data) if language == "ko" else frozenset()
    for pair in read_parallel(data, language):
        if pair.kind == "word":
            if pair.source != "sino-korean" or pair.text in korean:
                words.append(pair)
        else:
            (trusted if pair.source in chosen.trusted else texts).append(pair)
    generator.shuffle(texts)
    generator.shuffle(words)
    return trusted + texts[: chosen.texts] + words[: chosen.words]


def korean_words(data: Path) -> frozenset[str]:
    """Words that Korean texts have: only these count of the readings of Chinese words."""
    return frozenset(word_frequencies(data / "frequencies", "ko"))


def unpadded(path: Path) -> Tokenizer:
    """A tokenizer that neither pads nor cuts."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def token_rows(tokenizer: Tokenizer, texts: list[str], *, special: bool = False) -> list[list[int]]:
    """Token ids of texts."""
    rows: list[list[int]] = []
    for start in range(0, len(texts), TEXTS_AT_A_TIME):
        found = tokenizer.encode_batch_fast(
            texts[start : start + TEXTS_AT_A_TIME], add_special_tokens=special
        )
        rows += [encoding.ids for encoding in found]
    return rows


def packed(rows: list[list[int]]) -> tuple[Ints, Offsets]:
    """All ids of rows one after the other, int32[ΣL], and offsets int64[P + 1]."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    offsets[1:] = np.cumsum([len(row) for row in rows])
    return np.array([token for row in rows for token in row], np.int32), offsets
