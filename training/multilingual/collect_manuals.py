"""Makes training pairs of manuals that exist in many languages, within each language and across.

Run: python -m tercet.training.multilingual.collect_manuals DEBIAN --output DATA/manuals

DEBIAN holds unpacked packages of Debian, as docs/multilingual.md says. A line of each file is
{"query": heading, "pos": [passage], "language": code}; across languages "to" is the passage's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tercet.training.multilingual.help_sections import (
    ENGLISH,
    Section,
    gnome_sections,
    libreoffice_sections,
)

Line = dict[str, object]
Edition = dict[str, Section]
"""The sections of one manual in one language, by their key."""
# Text in scripts without spaces says as much in a third of the characters.
FEWEST_CHARACTERS, FEWEST_UNSPACED = 60, 24
UNSPACED = frozenset({"ja", "ko", "zh", "zh-TW", "th"})
MOST_CHARACTERS = 1200
# Of the pairs across languages, so many have an English passage.
TO_ENGLISH = 0.5
# Manuals are of one kind, so that more of a language would teach little.
MOST_WITHIN, MOST_ACROSS = 1500, 2500


def editions(debian: Path) -> dict[str, Edition]:
    """What each manual has in each language, by manual and language, without what is left in English."""
    found: dict[str, Edition] = {}
    share = debian / "usr" / "share"
    readers = (
        (share / "libreoffice" / "help", "*", libreoffice_sections),
        (share / "help", "*/gnome-help", gnome_sections),
    )
    for root, pattern, reader in readers:
        for folder in sorted(path for path in root.glob(pattern) if path.is_dir()):
            for section in reader(folder):
                found.setdefault(section.language, {}).setdefault(section.key, section)
    english = found.get(ENGLISH, {})
    return {
        language: {
            key: s for key, s in sections.items() if language == ENGLISH or translated(s, english.get(key))
        }
        for language, sections in found.items()
    }


def translated(section: Section, english: Section | None) -> bool:
    """Whether heading and most of the text differ from the English section's."""
    if english is None:
        return True
    same = set(section.paragraphs) & set(english.paragraphs)
    return section.heading != english.heading and 4 * len(same) <= len(section.paragraphs)


def usable(section: Section) -> bool:
    """Whether there is enough text to find."""
    fewest = FEWEST_UNSPACED if section.language in UNSPACED else FEWEST_CHARACTERS
    return len(section.text) >= fewest


def within(found: dict[str, Edition]) -> Iterator[Line]:
    """Headings with the text below them, language after language."""
    for language, sections in sorted(found.items()):
        for section in filter(usable, sections.values()):
            yield {"query": section.heading, "pos": [section.text[:MOST_CHARACTERS]], "language": language}


def across(found: dict[str, Edition], seed: int) -> Iterator[Line]:
    """Headings and paragraphs with the text in another language: one of each for every section."""
    drawn = random.Random(seed)  # noqa: S311  # a fixed choice, not a secret
    for language, sections in sorted(found.items()):
        for key, section in sections.items():
            others = [other for other in found if other != language and key in found[other]]
            others = [other for other in others if usable(found[other][key])]
            if not others:
                continue
            to = ENGLISH if ENGLISH in others and drawn.random() < TO_ENGLISH else drawn.choice(others)
            target = found[to][key]
            yield {
                "query": section.heading,
                "pos": [target.text[:MOST_CHARACTERS]],
                "language": language,
                "to": to,
            }
            if len(section.paragraphs) == len(target.paragraphs):
                place = drawn.randrange(len(section.paragraphs))
                own, other = section.paragraphs[place], target.paragraphs[place]
                if own != other and min(len(own), len(other)) >= FEWEST_UNSPACED:
                    yield {
                        "query": own[:MOST_CHARACTERS],
                        "pos": [other[:MOST_CHARACTERS]],
                        "language": language,
                        "to": to,
                    }


def chosen(lines: Iterable[Line], most: int, seed: int) -> Iterator[Line]:
    """At most so many lines of each language, drawn at random, each pair once."""
    drawn = random.Random(seed)  # noqa: S311  # a fixed choice, not a secret
    by_language: dict[str, dict[str, Line]] = {}
    for line in lines:
        pair = json.dumps([line["query"], line["pos"]])
        by_language.setdefault(str(line["language"]), {}).setdefault(pair, line)
    for found in by_language.values():
        yield from drawn.sample(list(found.values()), min(most, len(found)))


def write(path: Path, lines: Iterable[Line]) -> Counter[str]:
    """Writes the lines; how many there are by language."""
    counts: Counter[str] = Counter()
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for line in lines:
            counts[str(line["language"])] += 1
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("debian", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    found = editions(asked.debian)
    for name, lines, most in (
        ("within", within(found), MOST_WITHIN),
        ("across", across(found, asked.seed), MOST_ACROSS),
    ):
        counts = write(asked.output / f"{name}.jsonl.gz", chosen(lines, most, asked.seed))
        print(f"{name}: {counts.total()} pairs, {dict(counts)}", flush=True)  # noqa: T201  # a program's output


if __name__ == "__main__":
    main()
