"""Sections of manuals that exist in many languages: LibreOffice's help and GNOME's.

A section is what stands under one heading. Its key is the same in every language, so that a heading in one
language can be paired with the text in another.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

LIBREOFFICE, GNOME = "libreoffice", "gnome"
ENGLISH = "en"
# Names of folders that are no plain language codes.
CODES = {"en-US": ENGLISH, "C": ENGLISH, "zh-CN": "zh", "zh_CN": "zh"}
MARKUP = re.compile(r"<[^<>]{1,400}>")
SPACE = re.compile(r"\s+")
BLOCK = re.compile(r'<(p|h\d)\b[^>]*\bid="((?:par|hd)_id\w+)"[^>]*>(.*?)</\1>', re.DOTALL)
MALLARD = "{http://projectmallard.org/1.0/}"
MALLARD_LEFT_OUT = frozenset(f"{MALLARD}{name}" for name in ("info", "media", "links"))


@dataclass(frozen=True, slots=True)
class Section:
    """key: of the page and the heading, in every language alike; paragraphs: what follows the heading."""

    key: str
    language: str
    heading: str
    paragraphs: tuple[str, ...]

    @property
    def text(self) -> str:
        """All paragraphs as one passage."""
        return "\n".join(self.paragraphs)


def language_of(folder: Path) -> str:
    """The language of a manual's folder, as BCP 47 has it."""
    return CODES.get(folder.name, folder.name.replace("_", "-"))


def libreoffice_sections(folder: Path) -> Iterator[Section]:
    """Sections of LibreOffice's help in one language; a heading below the first comes after the page's."""
    language = language_of(folder)
    for path in sorted((folder / "text").rglob("*.html")):
        page = f"{LIBREOFFICE}/{path.relative_to(folder).with_suffix('')}"
        title, heading, key = "", "", ""
        paragraphs: list[str] = []
        for kind, name, markup in BLOCK.findall(path.read_text(encoding="utf-8", errors="replace")):
            text = plain(markup)
            if kind == "p":
                paragraphs.append(text)
                continue
            yield from _section(f"{page}#{key}", language, heading, paragraphs)
            title, key, paragraphs = title or text, name, []
            heading = text if text == title else f"{title} - {text}"
        yield from _section(f"{page}#{key}", language, heading, paragraphs)


def gnome_sections(folder: Path) -> Iterator[Section]:
    """Sections of GNOME's help in one language, each page with its description as a heading, too."""
    language = language_of(folder.parent)
    for path in sorted(folder.glob("*.page")):
        root = ElementTree.parse(path).getroot()  # noqa: S314  # a manual of the distribution
        page = f"{GNOME}/{path.stem}"
        title = _mallard_title(root)
        description = root.find(f"{MALLARD}info/{MALLARD}desc")
        own = [part for part in root if part.tag != f"{MALLARD}section"]
        text = list(_mallard_paragraphs(own))
        yield from _section(f"{page}#", language, title, text)
        if description is not None:
            yield from _section(f"{page}#description", language, _flat(description), text)
        for number, section in enumerate(root.iter(f"{MALLARD}section")):
            heading = f"{title} - {_mallard_title(section)}"
            yield from _section(f"{page}#{number}", language, heading, list(_mallard_paragraphs(section)))


def plain(markup: str) -> str:
    """The text without markup."""
    return SPACE.sub(" ", html.unescape(MARKUP.sub(" ", markup))).strip()


def _section(key: str, language: str, heading: str, paragraphs: list[str]) -> Iterator[Section]:
    kept = tuple(paragraph for paragraph in paragraphs if any(map(str.isalpha, paragraph)))
    if heading and kept:
        yield Section(key, language, heading, kept)


def _mallard_title(element: ElementTree.Element) -> str:
    title = element.find(f"{MALLARD}title")
    return "" if title is None else _flat(title)


def _mallard_paragraphs(elements: ElementTree.Element | list[ElementTree.Element]) -> Iterator[str]:
    """Texts of paragraphs below elements, without titles, notes for translators and figures."""
    for element in elements:
        if element.tag == f"{MALLARD}p":
            yield _flat(element)
        elif element.tag not in MALLARD_LEFT_OUT and element.tag != f"{MALLARD}title":
            yield from _mallard_paragraphs(element)


def _flat(element: ElementTree.Element) -> str:
    return SPACE.sub(" ", "".join(element.itertext())).strip()
