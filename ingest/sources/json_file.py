"""The records of a JSON file: the elements of an array in it, or the one object that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.json_elements import BrokenJsonError, Element, JsonElements
from tercet.ingest.sources.json_object import ObjectOutline
from tercet.ingest.sources.json_text import parse_json
from tercet.ingest.sources.packed import PackedFile
from tercet.ingest.sources.record_paths import RecordPath


class JsonFile:
    """Iterates once over (number from 1 with its place, the record or why there is none).

    An object with a text of its own is a record; another one that holds just one list of objects stands for
    these. Raises SourceError where it is unclear what the records are, or brackets do not match. Of what is
    beside the records nothing else is looked at.
    """

    unit = "record"
    encoding = None
    cells = False
    blank = 0
    left_out: Mapping[str, int] = {}
    names = None

    def __init__(self, path: Path, record_bytes: int, text: str | None, records: RecordPath | None) -> None:
        """text: path of the texts, records: where the records are; None where these are found."""
        self.path = path
        self._limit_bytes = record_bytes
        self._text = text
        self._records = records
        self._file = PackedFile(path)

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        return self._file.fraction

    def count(self) -> None:
        """Not known: only reading it all would tell."""

    def __iter__(self) -> Iterator[tuple[str, Any | InvalidDocumentError]]:
        streamed = self._list()
        number = 0
        with self._file.opened(lambda: f"record {number}") as file:
            elements = JsonElements(file, self._limit_bytes)
            try:
                left = None if streamed is None else elements.enter(streamed)
                for element in [elements.whole()] if left is None else elements:
                    for value in self._values(element, left):
                        number += 1
                        yield f"{number} ({element.position})", value
                elements.leave()
            except BrokenJsonError as error:
                raise SourceError(f"{self.path}: no valid JSON after record {number}: {error}") from error
        if self._records is not None:
            self._records.require_some()

    def _list(self) -> Sequence[str] | None:
        """The keys that lead to the list whose elements are read one by one; None where the file is one."""
        outline = ObjectOutline(self._text)
        with self._file.opened(lambda: "its beginning") as file:
            elements = JsonElements(file, self._limit_bytes)
            try:
                if self._records is not None:
                    keys = self._records.keys
                    return None if elements.enter(keys) is None else keys
                begin = elements.begin()
                if begin == b"[":
                    return ()
                if begin:
                    outline.read(elements)
                if begin and not outline.is_document:
                    elements.leave()
            except BrokenJsonError as error:
                raise SourceError(f"{self.path}: no valid JSON: {error}") from error
        return outline.records(self.path)

    def _values(self, element: Element, keys: Sequence[str] | None) -> Iterator[Any | InvalidDocumentError]:
        """The records of an element. keys: those that are left of the path to them; by default all."""
        value = self._value(element)
        if self._records is None or isinstance(value, InvalidDocumentError):
            yield value
        else:
            yield from self._records.records(value, keys)

    def _value(self, element: Element) -> Any | InvalidDocumentError:
        if element.text is None:
            return InvalidDocumentError(f"longer than {self._limit_bytes} bytes, the limit for one document")
        if not element.text:
            return InvalidDocumentError("not valid JSON: a comma has no value at one of its sides")
        try:
            return parse_json(element.text, "the element")
        except InvalidDocumentError as error:
            return error
