"""Step 1: the extended tokenizer.json."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path

from models.tokenizer import TOKENIZER_FILE
from training.multilingual.frequencies import has_frequencies, word_frequencies
from training.multilingual.parallel import read_parallel
from training.multilingual.translations import cedict
from training.multilingual.vocabulary import (
    extended,
    spaced_pieces,
    unspaced_pieces,
    without_english_changes,
)
from training.settings.multilingual import MultilingualSettings

# An English word that is rarer than this, in texts and list together, may change.
LEAST_ENGLISH = 3.0
# The list's frequencies are in a billion; the texts have about so many words.
ENGLISH_SHARE = 1e-2
TRADITIONAL_SHARE = 1 / 3


def build_vocabulary(settings: MultilingualSettings, base: Path, data: Path, output: Path) -> None:
    """Writes the tokenizer of the base with the pieces of all languages."""
    lists = data / "frequencies"
    chosen = settings.vocabulary
    tokenizer_json = (base / TOKENIZER_FILE).read_text(encoding="utf-8")
    unspaced: list[str] = []
    for language, sizes in chosen.unspaced.items():
        frequencies = unspaced_frequencies(lists, data, language)
        unspaced += unspaced_pieces(frequencies, sizes.words, sizes.characters)
    spaced: list[str] = []
    for language, size in chosen.spaced.items():
        words = dict(islice(word_frequencies(lists, language).items(), chosen.frequent_words))
        spaced += spaced_pieces(words, size)
    known = json.loads(tokenizer_json)["model"]["vocab"]
    new = [piece for piece in dict.fromkeys(spaced) if piece not in known]
    english = english_words(lists, [data / path for path in chosen.english_texts])
    kept = without_english_changes(tokenizer_json, new, english, chosen.change_limit)
    output.write_text(extended(tokenizer_json, kept, dict.fromkeys(unspaced)), encoding="utf-8")


def unspaced_frequencies(lists: Path, data: Path, language: str) -> dict[str, float]:
    """Frequencies of the words of a language; Chinese ones also in traditional characters, as CC-CEDICT
    spells them. A language without a list is counted in its parallel texts."""
    if not has_frequencies(lists, language):
        texts = (pair.text for pair in read_parallel(data, language) if pair.kind == "text")
        return dict(Counter(run for text in texts for run in re.findall(r"\w+", text)))
    frequencies = word_frequencies(lists, language)
    if language == "zh":
        for old, new, _ in cedict(lists / "cedict.txt.gz"):
            if old != new and new in frequencies:
                frequencies.setdefault(old, frequencies[new] * TRADITIONAL_SHARE)
    return frequencies


def english_words(lists: Path, files: list[Path]) -> dict[str, float]:
    """How often English words occur in the positives of pair files and, scaled to them, in the list."""
    counts: Counter[str] = Counter()
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                counts.update(re.findall(r"[a-z]+", json.loads(line)["pos"][0].lower()))
    frequencies = {word: float(count) for word, count in counts.items()}
    for word, frequency in word_frequencies(lists, "en").items():
        frequencies[word] = frequencies.get(word, 0.0) + ENGLISH_SHARE * frequency
    return {word: frequency for word, frequency in frequencies.items() if frequency >= LEAST_ENGLISH}
