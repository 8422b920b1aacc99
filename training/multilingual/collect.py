"""Gathers what free software and dictionaries translate into files of pairs, one for each language.

Run: python -m training.multilingual.collect SOURCES --output DATA/parallel

SOURCES holds what docs/multilingual.md lists, each source in a folder of its own; what is not there is
left out.
A line is {"query": text, "pos": [English], "kind": "text" or "word", "source": name}.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from training.multilingual.languages import LANGUAGES, Language
from training.multilingual.translations import (
    Pair,
    catalogue,
    cedict,
    dictd,
    edict,
    help_pages,
    plain,
    portable_objects,
    sino_korean,
    usable,
    wordnet,
    wordnet_lemmas,
)

CATALOGUES = {"iso_": "iso", "wesnoth": "wesnoth", "libreoffice": "libreoffice"}


@dataclass
class Collected:
    """Pairs of one language with the name of their source; the first source of a pair counts."""

    texts: dict[Pair, str] = field(default_factory=dict)
    words: dict[Pair, str] = field(default_factory=dict)

    def add_texts(self, source: str, pairs: Iterable[Pair]) -> None:
        for pair in filter(usable, pairs):
            self.texts.setdefault(pair, source)

    def add_words(self, source: str, pairs: Iterable[Pair]) -> None:
        for pair in filter(usable, pairs):
            self.words.setdefault(pair, source)

    def write(self, path: Path) -> None:
        """Writes all pairs, texts first."""
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for kind, pairs in (("text", self.texts), ("word", self.words)):
                for (text, english), source in pairs.items():
                    line = {"query": text, "pos": [english], "kind": kind, "source": source}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def collect(sources: Path, language: Language, lemmas: Mapping[str, list[str]]) -> Collected:
    """Everything that the sources have of one language."""
    found = Collected()
    debian = sources / "debian" / "usr" / "share"
    for code in language.catalogues:
        for path in sorted((sources / "debian").glob(f"**/{code}/LC_MESSAGES/*.mo")):
            name = next((name for part, name in CATALOGUES.items() if part in str(path)), "catalogues")
            found.add_texts(name, catalogue(path))
    for code in language.help_pages:
        folder = debian / "libreoffice" / "help" / code
        found.add_texts("help", help_pages(folder, folder.parent / "en-US"))
    for path in sorted((sources / "python-docs" / language.code).rglob("*.po")):
        found.add_texts("python-docs", portable_objects(path))
    for path in sorted((sources / "pairs" / language.code).glob("*.jsonl.gz")):
        found.add_texts(path.name.removesuffix(".jsonl.gz"), pairs_of(path))
    for path in sorted((sources / "sentences" / language.code).glob("*.tsv")):
        found.add_texts(path.stem, tab_separated(path))
    for name in language.wordnets:
        path = sources / "omw" / f"wn-{name}.tab"
        if path.is_file():
            found.add_words("wordnet", wordnet(path, lemmas))
    for forwards, name in ((False, f"{language.iso}-eng"), (True, f"eng-{language.iso}")):
        path = debian / "dictd" / f"freedict-{name}.dict.dz"
        if path.is_file() and name not in language.left_out:
            found.add_words("freedict", dictd(path, english_first=forwards))
    add_east_asian(found, sources, language.code)
    return found


def add_east_asian(found: Collected, sources: Path, code: str) -> None:
    """EDICT, CC-CEDICT, and Korean readings of the latter's words."""
    japanese = sources / "debian" / "usr" / "share" / "edict" / "edict"
    chinese = sources / "cedict" / "cedict.txt.gz"
    readings = sources / "hanja" / "table.yml"
    if code == "ja" and japanese.is_file():
        found.add_words("edict", edict(japanese))
    if code == "zh" and chinese.is_file():
        entries = list(cedict(chinese))
        forms = chain.from_iterable(((new, sense), (old, sense)) for old, new, sense in entries)
        found.add_words("cedict", forms)
    if code == "ko" and chinese.is_file() and readings.is_file():
        found.add_words("sino-korean", sino_korean(cedict(chinese), readings))


def pairs_of(path: Path) -> Iterator[Pair]:
    """Queries with their first positive, of a file of training pairs."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            yield plain(pair["query"]), plain(pair["pos"][0])


def tab_separated(path: Path) -> Iterator[Pair]:
    """Lines of a text, a tab and its English translation."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text, _, english = line.partition("\t")
        yield text.strip(), english.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--languages", nargs="*", default=list(LANGUAGES), choices=list(LANGUAGES))
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    dictionary = asked.sources / "debian" / "usr" / "share" / "wordnet"
    lemmas = wordnet_lemmas(dictionary) if dictionary.is_dir() else {}
    for code in asked.languages:
        found = collect(asked.sources, LANGUAGES[code], lemmas)
        found.write(asked.output / f"{code}.jsonl.gz")
        counts = Counter(found.texts.values()) + Counter(found.words.values())
        line = f"{code}: {len(found.texts)} texts, {len(found.words)} words, {dict(counts)}"
        print(line, flush=True)  # noqa: T201  # a program's output


if __name__ == "__main__":
    main()
