"""Reads what free software and free dictionaries translate: catalogues, help pages, dictionaries, wordnets.

Every reader yields pairs (text, English text) of one language.
"""

from __future__ import annotations

import gettext
import gzip
import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Pair = tuple[str, str]

CONTEXT_END = "\x04"
MARKUP = re.compile(r"<[^<>]{1,200}>")
ROLE = re.compile(r":[a-z:+-]+:`[!~]?([^`<]*?)(?:\s*<[^`>]*>)?`")
LINK = re.compile(r"`([^`<]+?)\s*<[^`>]*>`_+")
SPACE = re.compile(r"\s+")
PARENTHESES = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|/[^/]*/")
PARAGRAPH = re.compile(r'<(p|h\d)\b[^>]*\bid="((?:par|hd)_id\w+)"[^>]*>(.*?)</\1>', re.DOTALL)
MOST_CHARACTERS = 500


def plain(text: str) -> str:
    """The text without markup, accelerator marks and references of documentation."""
    text = ROLE.sub(r"\1", LINK.sub(r"\1", MARKUP.sub(" ", html.unescape(text))))
    text = text.replace("``", "").replace("**", "").replace("\\n", " ")
    text = re.sub(r"[_&~](?=\w)", "", text)
    return SPACE.sub(" ", text).strip()


def catalogue(path: Path) -> Iterator[Pair]:
    """Messages of a compiled gettext catalogue (`.mo`)."""
    with path.open("rb") as file:
        messages = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    for key, translated in messages.items():
        english = key[0] if isinstance(key, tuple) else key
        english = english.rsplit(CONTEXT_END, 1)[-1]
        if english and isinstance(translated, str):
            yield plain(translated), plain(english)


def portable_objects(path: Path) -> Iterator[Pair]:
    """Messages of a gettext source file (`.po`), without those marked fuzzy."""
    for entry in path.read_text(encoding="utf-8").split("\n\n"):
        if "#, fuzzy" in entry or "#~" in entry:
            continue
        parts: dict[str, str] = defaultdict(str)
        field = ""
        for line in entry.splitlines():
            begin = re.match(r'(msgid|msgstr) "', line)
            if begin:
                field = begin[1]
            if (begin or line.startswith('"')) and field:
                quoted = line[line.index('"') + 1 : -1]
                parts[field] += quoted.replace('\\"', '"').replace("\\\\", "\\").replace("\\n", "\n")
        if parts["msgid"] and parts["msgstr"]:
            yield plain(parts["msgstr"]), plain(parts["msgid"])


def help_pages(folder: Path, english: Path) -> Iterator[Pair]:
    """Paragraphs of LibreOffice's help that have the same id in both folders."""
    for path in sorted(folder.rglob("*.html")):
        other = english / path.relative_to(folder)
        if not other.is_file():
            continue
        originals = dict(paragraphs(other))
        for name, text in paragraphs(path):
            if name in originals:
                yield text, originals[name]


def paragraphs(path: Path) -> Iterator[tuple[str, str]]:
    """Ids and texts of a help page's paragraphs."""
    for _, name, text in PARAGRAPH.findall(path.read_text(encoding="utf-8", errors="replace")):
        yield name, plain(text)


def dictd(path: Path, *, english_first: bool) -> Iterator[Pair]:
    """Headwords and equivalents of a FreeDict dictionary in the format of dictd (`.dict.dz`)."""
    words: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        started = False
        for line in file:
            line = line.rstrip("\n")
            started = started or " /" in line
            if not started or not line or line.startswith((" ", "\t", '"', "Synonym", "see:", "  ")):
                continue
            if re.search(r" /|<[^>]+>$|\{[^}]+\}$", line) and not re.match(r"\d+\. ", line):
                words = senses(line)
                continue
            for sense in senses(re.sub(r"^\d+\. ", "", line)):
                for word in words:
                    yield (sense, word) if english_first else (word, sense)


def senses(text: str) -> list[str]:
    """The alternatives that a dictionary's line lists, without its notes."""
    text = PARENTHESES.sub(" ", text)
    found = (SPACE.sub(" ", part).strip(" .!?") for part in re.split(r"[,;/]", text))
    return [part for part in found if 0 < len(part) <= 60]


def edict(path: Path) -> Iterator[Pair]:
    """Words and readings of EDICT with their English meanings."""
    with path.open(encoding="euc-jp", errors="replace") as file:
        next(file)
        for line in file:
            head, _, rest = line.partition("/")
            words = re.findall(r"[^\s\[\];]+", head)
            for meaning in rest.split("/")[:6]:
                for sense in senses(meaning)[:3]:
                    for word in words:
                        yield word, sense.removeprefix("to ")


def cedict(path: Path) -> Iterator[tuple[str, str, str]]:
    """Traditional form, simplified form and one English meaning of the entries of CC-CEDICT."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            entry = re.match(r"(\S+) (\S+) \[[^\]]*\] /(.*)/", line)
            if entry is None:
                continue
            for meaning in entry[3].split("/")[:6]:
                if re.match(r"(variant|old variant|surname|see|CL:|abbr)", meaning):
                    continue
                for sense in senses(meaning)[:3]:
                    yield entry[1], entry[2], sense.removeprefix("to ")


def sino_korean(entries: Iterable[tuple[str, str, str]], readings: Path) -> Iterator[Pair]:
    """Korean spellings of Chinese words of two characters or more, by the readings of their characters.

    readings: the table of the package `hanja`. Many Korean nouns are such words; which of these are words
    of Korean, the caller has to know.
    """
    table = dict(re.findall(r'"\\u([0-9A-F]{4})": "\\u([0-9A-F]{4})"', readings.read_text()))
    by_character = {chr(int(key, 16)): chr(int(value, 16)) for key, value in table.items()}
    for traditional, _, sense in entries:
        read = [by_character.get(character, "") for character in traditional]
        if len(read) >= 2 and all(read):
            yield initial_sounds("".join(read)), sense


def initial_sounds(word: str) -> str:
    """A Korean word with its first consonant as South Korea spells it (ㄹ and ㄴ change at the beginning)."""
    first = ord(word[0]) - 0xAC00
    if not 0 <= first < 11172:
        return word
    consonant, rest = divmod(first, 588)
    vowel = rest // 28
    if consonant in (2, 5):  # ㄴ, ㄹ
        if vowel in (2, 3, 6, 7, 12, 17, 20):
            consonant = 11  # ㅇ
        elif consonant == 5:
            consonant = 2
    return chr(0xAC00 + consonant * 588 + rest) + word[1:]


def wordnet_lemmas(folder: Path) -> dict[str, list[str]]:
    """English lemmas of each synset of WordNet 3.0, by `offset-pos`."""
    lemmas = {}
    for name, pos in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        with (folder / f"data.{name}").open(encoding="latin-1") as file:
            for line in file:
                if line.startswith("  "):
                    continue
                fields = line.split(" ")
                count = int(fields[3], 16)
                words = fields[4 : 4 + 2 * count : 2]
                lemmas[f"{fields[0]}-{pos}"] = [re.sub(r"\(.*", "", w).replace("_", " ") for w in words]
    return lemmas


def wordnet(path: Path, english: Mapping[str, list[str]]) -> Iterator[Pair]:
    """Lemmas of a wordnet of the Open Multilingual Wordnet with the English ones of the same synset."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and fields[1].endswith("lemma"):
            for word in english.get(fields[0], [])[:4]:
                yield fields[2].replace("_", " "), word


def usable(pair: Pair) -> bool:
    """Whether a pair can teach: two texts that differ, neither empty, too long or without letters."""
    text, english = pair
    return (
        0 < len(text) <= MOST_CHARACTERS
        and 0 < len(english) <= MOST_CHARACTERS
        and text.casefold() != english.casefold()
        and any(c.isalpha() for c in text)
        and sum(c.isascii() and c.isalpha() for c in english) >= len(english) // 2
    )
