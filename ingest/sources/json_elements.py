"""Arrays and objects in a JSON file, cut from its bytes by its brackets, strings and commas alone.

So whatever is wrong within one element stays there. No more than one element is held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import orjson

_BLOCK_BYTES = 2**16
_MARK = b"\xef\xbb\xbf"
_SPACE = b" \t\n\r"
_QUOTE, _COMMA, _ARRAY, _OBJECT = b'",[{'
_CLOSING = {_ARRAY: ord("]"), _OBJECT: ord("}")}
_MAX_LEVELS = 2**16  # so that brackets alone take no memory; no element of near so many is read
_AFTER_FIRST = bytes(range(0x80, 0xC0))  # bytes of a character after its first, in UTF-8

# Up to the end of a string, or to a backslash without what it is for.
_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_IN_STRING = re.compile(_STRING, re.DOTALL)
# Past strings, and past arrays and objects without such in them, that end in the block: to another bracket,
# and between elements to a bracket or a comma.
_FLAT = rb'(?:[^"\[\]{}]++|"' + _STRING + rb'")*+'
_WHOLE = rb'"' + _STRING + rb'"|\[' + _FLAT + rb"\]|\{" + _FLAT + rb"\}"
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _WHOLE + rb")*+", re.DOTALL)
_TO_COMMA = re.compile(rb'(?:[^"\[\]{},]++|' + _WHOLE + rb")*+", re.DOTALL)
# To the next of them, whatever it is.
_TO_ANY = re.compile(_FLAT, re.DOTALL)
_TO_VALUE = re.compile(rb'(?:[^"\[\]{},]++|"' + _STRING + rb'")*+', re.DOTALL)
# A member up to its value.
_KEY = re.compile(rb'("' + _STRING + rb'")[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)


class BrokenJsonError(Exception):
    """Brackets or ends that leave an array unreadable. It says where."""


@dataclass(slots=True)
class TextPosition:
    """Line and column of a file, from 1; columns are characters."""

    line: int = 1
    column: int = 1

    def go_past(self, text: bytes) -> None:
        lines = text.count(b"\n")
        if lines:
            self.line += lines
            self.column = 1
            text = text[text.rindex(b"\n") + 1 :]
        self.column += len(text.translate(None, _AFTER_FIRST))

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True, slots=True)
class Element:
    """The text of an element, None where it takes more bytes than the limit, and where it begins."""

    text: bytes | None
    position: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: its key, and what its value begins with."""

    key: str
    begin: bytes


class JsonElements:
    """What is in a JSON file, gone through once: the elements of one array, or the members of objects.

    First `enter` an array, then take the elements, then `leave` it.
    """

    def __init__(self, file: BinaryIO, limit_bytes: int) -> None:
        self._file = file
        self._limit = limit_bytes
        self._block = file.read(_BLOCK_BYTES).removeprefix(_MARK)
        self._at = 0
        self._closing = bytearray()  # what the open brackets are to be closed by
        # What came since the last comma between elements or, outside the array, the last bracket.
        self._text = bytearray()
        self._text_bytes = 0
        self._text_start = TextPosition()
        self._position = TextPosition()
        self._kept_to = 0  # offset in the block that text and positions go to

    def begin(self) -> bytes:
        """Goes into the value that the file is; returns the bracket that it begins with.

        It is empty where the value is no array and no object. Raises BrokenJsonError where there is none.
        """
        byte = self._to(_TO_ANY)
        self._keep()
        if byte is None and not self._text_bytes:
            raise self._ends()
        if byte not in _CLOSING or self._text_bytes:
            return b""
        self._bracket(byte)
        self._forget()
        return bytes([byte])

    def enter(self, keys: Sequence[str]) -> Sequence[str] | None:
        """Goes into the first array on a path of keys from the file's value.

        Returns the keys that are left for its elements; None where no array is there. Raises BrokenJsonError.
        """
        begin, left = self.begin(), list(keys)
        while begin == b"{" and left:
            key = left.pop(0)
            begin = next((member.begin for member in self.members() if member.key == key), b"")
        return left if begin == b"[" else None

    def members(self) -> Iterator[Member]:
        """The members of the object that was just gone into, to its end.

        Where a value begins with a bracket, that was just gone into, too: what is not read of it is passed.
        Raises BrokenJsonError.
        """
        level = len(self._closing)
        while True:
            byte = self._to(_TO_VALUE)
            self._keep()
            if byte is None:
                raise self._ends()
            match = _KEY.match(bytes(self._text))
            value = b"" if match is None else match.string[match.end() : match.end() + 1]
            if byte == _COMMA:
                self._at += 1
            else:
                self._bracket(byte)
            self._forget()
            if match is not None:
                yield Member(_key(match[1]), value or bytes([byte]))
            if len(self._closing) < level:
                return
            self._pass(level)

    def first(self) -> bytes:
        """What the first element of the array that was just gone into begins with, empty where it has none;
        an object is then gone into. Raises BrokenJsonError.
        """
        byte = self._to(_TO_VALUE)
        self._keep()
        if byte == _OBJECT and not self._text_bytes:
            self._bracket(byte)
            self._forget()
            return b"{"
        return bytes(self._text[:1])

    def __iter__(self) -> Iterator[Element]:
        """Raises BrokenJsonError."""
        level, several, last = len(self._closing), False, False
        while not last:
            between = len(self._closing) == level
            byte = self._to(_TO_COMMA if between else _TO_BRACKET)
            if byte is None:
                raise self._ends()
            if not between or byte in _CLOSING:
                self._bracket(byte)
                continue
            self._keep()
            last = byte != _COMMA
            if self._text_bytes or several or not last:
                yield self._element()
            several = True
            if last:
                self._bracket(byte)
            else:
                self._at += 1
            self._forget()

    def whole(self) -> Element:
        """The value that the file is. Raises BrokenJsonError."""
        while (byte := self._to(_TO_ANY)) is not None:  # which does not go past the end of a flat value
            self._bracket(byte)
            if not self._closing:
                break
        self._keep()
        if self._closing or not self._text_bytes:
            raise self._ends()
        element = self._element()
        self._forget()
        return element

    def leave(self) -> None:
        """Goes past what comes after the array. Raises BrokenJsonError where brackets stay open, or more
        than the JSON is there.
        """
        self._pass(0)
        more = self._to(_TO_BRACKET) is not None
        self._keep()
        if more or self._text_bytes:
            raise BrokenJsonError(f"more follows its end at {self._begins()}")

    def _pass(self, level: int) -> None:
        """Goes on until no more brackets than these are open."""
        while len(self._closing) > level:
            byte = self._to(_TO_BRACKET)
            if byte is None:
                raise self._ends()
            self._bracket(byte)
            self._forget()

    def _element(self) -> Element:
        text = bytes(self._text).rstrip(_SPACE) if self._text_bytes <= self._limit else None
        return Element(text, self._begins())

    def _to(self, stop: re.Pattern[bytes]) -> int | None:
        """Goes to the next byte, outside strings, that `stop` stops at; None at the end of the file."""
        while True:
            self._go(stop)
            if self._at == len(self._block):
                if not self._read():
                    return None
            elif self._block[self._at] != _QUOTE:
                return self._block[self._at]
            else:
                self._pass_string()

    def _pass_string(self) -> None:
        """Past a string that ends in another block, or not at all."""
        self._at += 1
        while True:
            self._go(_IN_STRING)
            if self._block.startswith(b'"', self._at):
                self._at += 1
                return
            if not self._read():
                return

    def _go(self, pattern: re.Pattern[bytes]) -> None:
        """Past all that a pattern matches from here on."""
        match = pattern.match(self._block, self._at)
        if match is not None:
            self._at = match.end()

    def _read(self) -> bool:
        """Goes on to the next block, with what is left of this before it; False at the end of the file."""
        self._keep()
        block = self._file.read(_BLOCK_BYTES)
        self._block = self._block[self._at :] + block if block else b""
        self._at = self._kept_to = 0
        return bool(block)

    def _bracket(self, byte: int) -> None:
        """Past a bracket, which opens something or closes what is open. Raises BrokenJsonError."""
        if byte in _CLOSING:
            self._closing.append(_CLOSING[byte])
            if len(self._closing) > _MAX_LEVELS:
                self._keep()
                raise BrokenJsonError(f"more than {_MAX_LEVELS:,} brackets are open at {self._position}")
        elif self._closing and byte == self._closing[-1]:
            self._closing.pop()
        else:
            self._keep()
            due = f"where {chr(self._closing[-1])} is due" if self._closing else "which closes nothing"
            raise BrokenJsonError(f"{self._position} has {chr(byte)} {due}{self._since()}")
        self._at += 1

    def _ends(self) -> BrokenJsonError:
        self._keep()
        return BrokenJsonError(f"the file ends too early, at {self._position}{self._since()}")

    def _since(self) -> str:
        return f", in what begins at {self._text_start}" if self._text_bytes else ""

    def _begins(self) -> str:
        return str(self._text_start if self._text_bytes else self._position)

    def _keep(self) -> None:
        """Adds what came up to here to the text, while that is not too long."""
        text = self._block[self._kept_to : self._at]
        self._kept_to = self._at
        if not self._text_bytes:
            stripped = text.lstrip(_SPACE)
            self._position.go_past(text[: len(text) - len(stripped)])
            text = stripped
            self._text_start = replace(self._position)
        self._position.go_past(text)
        self._text_bytes += len(text)
        if self._text_bytes <= self._limit:
            self._text += text
        else:
            self._text.clear()

    def _forget(self) -> None:
        """Begins a new text here."""
        self._keep()
        self._text.clear()
        self._text_bytes = 0


def _key(text: bytes) -> str:
    """A key of an object, as readers of JSON have it."""
    try:
        return str(orjson.loads(text))
    except orjson.JSONDecodeError:
        return text[1:-1].decode("utf-8", "replace")
