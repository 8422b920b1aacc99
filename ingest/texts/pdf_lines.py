"""The lines of a page of a PDF: what stands in them, and where, from PDFium's single characters."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from string import ascii_lowercase

import pypdfium2
from pypdfium2 import raw

BREAKS = "\r\n"
# Single letters with blanks between them, which a layout has set apart.
_SPACED = re.compile(r"(?<!\S)(?:[^\W\d_] ){3,}[^\W\d_](?![^\W_])")
_WIDEST_SPACING = 1.2  # of the letters' height: wider apart they are letters of their own
_WORD_GAP = 0.25  # of the letters' height, beyond what is between letters


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a character with the room above and below it, in points from the lower left corner."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom

    def meets(self, other: Box) -> bool:
        """Whether some of it is within another."""
        beside = self.right < other.left or other.right < self.left
        return not beside and self.bottom <= other.top and other.bottom <= self.top


@dataclass(frozen=True, slots=True)
class Line:
    """Text in one line, or in one column of vertical writing, and its place."""

    text: str
    box: Box
    is_column: bool = False


@dataclass(slots=True)
class PageCharacters:
    """What PDFium tells of each character of a page. unmapped: how many have no character in Unicode."""

    page: pypdfium2.PdfTextPage
    marks: list[str] = field(default_factory=list)
    unmapped: int = 0

    def __post_init__(self) -> None:
        handle, unicode_of, is_unmapped = (
            self.page.raw,
            raw.FPDFText_GetUnicode,
            raw.FPDFText_HasUnicodeMapError,
        )
        for index in range(self.page.count_chars()):
            # Without a map, the number of a character in the font is all that is known of it.
            code = unicode_of(handle, index)
            is_known = is_unmapped(handle, index) != 1 and code <= sys.maxunicode
            self.marks.append(chr(code) if is_known else "")
        self.unmapped = self.marks.count("")

    def box(self, index: int) -> Box:
        """The place of a character."""
        rectangle = raw.FS_RECTF()
        raw.FPDFText_GetLooseCharBox(self.page, index, ctypes.byref(rectangle))
        return Box(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)

    def lines(self) -> Iterator[Line]:
        """The lines as PDFium finds them, without blanks around them."""
        for start, end in self._ranges():
            first, last = self.box(start), self.box(end - 1)  # a line goes on below after a hyphen
            right = max(first.right, last.right)
            yield Line(self._text(start, end), Box(first.left, first.bottom, right, first.top))

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """The first character of each line, and the one after its last; none is a blank."""
        start = 0
        for index, mark in enumerate([*self.marks, "\n"]):
            if mark and mark in BREAKS:
                first, end = start, index
                while first < end and not self.marks[first].strip():
                    first += 1
                while first < end and not self.marks[end - 1].strip():
                    end -= 1
                if first < end:
                    yield first, end
                start = index + 1

    def _text(self, start: int, end: int) -> str:
        """The text of a line, in which letters that are set apart make words."""
        places = [index for index in range(start, end) if self.marks[index]]
        text = "".join(self.marks[index] for index in places)
        return _SPACED.sub(lambda run: self._words(run[0], places[run.start() : run.end()]), text)

    def _words(self, run: str, places: Sequence[int]) -> str:
        """Letters, each a blank from the next, as words by what is between them."""
        boxes = [self.box(place) for place in places[::2]]
        gaps = [after.left - before.right for before, after in pairwise(boxes)]
        height, letter_gap = boxes[0].height, median(gaps)
        letters = run[::2]
        if letter_gap > _WIDEST_SPACING * height or letters.lower() in ascii_lowercase:
            return run
        limit = letter_gap + _WORD_GAP * height
        return letters[0] + "".join(
            f" {letter}" if gap > limit else letter for letter, gap in zip(letters[1:], gaps, strict=True)
        )
