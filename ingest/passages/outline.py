"""Where the headings and pages of a text begin."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import regex

MOST_SLUG_CHARACTERS = 100
_NOT_IN_SLUGS = regex.compile(r"[^\p{L}\p{M}\p{N}\p{Pc}\- ]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a text: where its line begins, and where what is below it does, in characters.

    level: 1 to 6, the outermost first; slug: tells it from the others of its text, empty where no word is in
    it; anchor: what a link to it ends in, None where none leads to it.
    """

    start: int
    end: int
    level: int
    title: str
    slug: str
    anchor: str | None


@dataclass(frozen=True, slots=True)
class Outline:
    """The headings of a text, in order, and the first characters of its pages, none where it has no pages.

    markdown: whether the text is Markdown, so that it can be cut as such.
    """

    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    markdown: bool = False

    @property
    def title(self) -> str | None:
        """The first heading where it alone is of level 1, so that it names the whole text; otherwise None."""
        first = [heading for heading in self.headings if heading.level == 1][:2]
        return first[0].title if len(first) == 1 and first[0] is self.headings[0] else None

    def page(self, position: int) -> int:
        """The page that a character is on, from 1."""
        return max(1, bisect_right(self.pages, position))

    def sections(self, length: int) -> Iterable[Section]:
        """What lies between headings, in order; the first part of a text that begins otherwise has none."""
        path: list[Heading] = []
        ends = [heading.start for heading in self.headings] + [length]
        yield Section(0, ends[0], ())
        for heading, end in zip(self.headings, ends[1:], strict=True):
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
            yield Section(heading.end, end, tuple(path))


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a text, in characters, and the headings that it is below, from the outermost to its own."""

    start: int
    end: int
    path: tuple[Heading, ...]


class Slugs:
    """Names of headings as GitHub makes them for links: small letters, hyphens for blanks, numbers for those
    that are there again.
    """

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, title: str) -> str:
        """The next heading's; empty where no letter is in it."""
        plain = _NOT_IN_SLUGS.sub("", title.strip().lower()).replace(" ", "-")
        plain = plain if plain.strip("-") else ""
        return self.distinct(plain[:MOST_SLUG_CHARACTERS]) if plain else ""

    def distinct(self, name: str) -> str:
        """The name, or with a number where it was there before."""
        slug = name
        while slug in self._used:
            self._used[name] += 1
            slug = f"{name}-{self._used[name]}"
        self._used[slug] = 0
        return slug
