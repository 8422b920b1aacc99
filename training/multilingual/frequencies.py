"""Word frequencies: a file for each language, a word, a tab and its frequency in a billion a line."""

from __future__ import annotations

from pathlib import Path


def has_frequencies(folder: Path, language: str) -> bool:
    """Whether there is a list of the language."""
    return (folder / f"{language}.tsv").is_file()


def word_frequencies(folder: Path, language: str) -> dict[str, float]:
    """Words with their frequencies, in the order of the file: most frequent first."""
    lines = (folder / f"{language}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = (line.rpartition("\t") for line in lines)
    return {word: float(frequency) for word, _, frequency in pairs}
