"""The records of an array in a JSON file: of the whole of it, or the first array of objects in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.json_elements import BrokenJsonError, Element, JsonElements
from tercet.ingest.sources.json_text import parse_json
from tercet.ingest.sources.packed import PackedFile


class JsonArray:
    """Iterates once over (number from 1 with its place, the element or why there is none).

    Raises SourceError where the file holds no array of objects, or its brackets do not match. What is between
    them is read of the array alone.
    """

    unit = "record"
    encoding = None
    cells = False
    blank = 0
    left_out: Mapping[str, int] = {}
    names = None

    def __init__(self, path: Path, record_bytes: int) -> None:
        self.path = path
        self._limit_bytes = record_bytes
        self._file = PackedFile(path)

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        return self._file.fraction

    def count(self) -> None:
        """Not known: only reading it all would tell."""

    def __iter__(self) -> Iterator[tuple[str, Any | InvalidDocumentError]]:
        number = 0
        with self._file.opened(lambda: f"record {number}") as file:
            elements = JsonElements(file, self._limit_bytes)
            try:
                if not elements.enter():
                    raise SourceError(
                        f"{self.path}: no array of objects is in it; give one, or an object on each line "
                        "(JSONL), in UTF-8"
                    )
                for number, element in enumerate(elements, start=1):
                    yield f"{number} ({element.position})", self._value(element)
                elements.leave()
            except BrokenJsonError as error:
                raise SourceError(f"{self.path}: no valid JSON after record {number}: {error}") from error

    def _value(self, element: Element) -> Any | InvalidDocumentError:
        if element.text is None:
            return InvalidDocumentError(f"longer than {self._limit_bytes} bytes, the limit for one document")
        if not element.text:
            return InvalidDocumentError("not valid JSON: a comma has no value at one of its sides")
        try:
            return parse_json(element.text, "the element")
        except InvalidDocumentError as error:
            return error
