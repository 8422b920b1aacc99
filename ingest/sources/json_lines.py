"""The records of a JSONL file, by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.sources.json_text import parse_json
from tercet.ingest.sources.lines import LineFile
from tercet.ingest.sources.record_paths import RecordPath

_MARK = b"\xef\xbb\xbf"


class JsonLines:
    """Iterates once over (line number, the value on it or why there is none). blank: lines without any.

    Of a bulk request of Elasticsearch, as dumps of wikis are, each document has the id of the line before it.
    """

    unit = "line"
    encoding = None
    cells = False
    left_out: Mapping[str, int] = {}
    names = None

    def __init__(self, path: Path, line_bytes: int, records: RecordPath | None) -> None:
        """records: where they are within the values; None where these are the records."""
        self.blank = 0
        self._records = records
        self._lines = LineFile(path, line_bytes)

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        return self._lines.fraction

    def count(self) -> int | None:
        """Lines of the file; None where counting would take long, and where a line is no record."""
        return self._lines.count() if self._records is None else None

    def __iter__(self) -> Iterator[tuple[int | str, Any | InvalidDocumentError]]:
        if self._records is None:
            yield from self._values()
            return
        for number, value in self._values():
            if isinstance(value, InvalidDocumentError):
                yield number, value
                continue
            for index, record in enumerate(self._records.records(value), start=1):
                yield f"{number}, record {index}", record
        self._records.require_some()

    def _values(self) -> Iterator[tuple[int, Any | InvalidDocumentError]]:
        own: dict[str, Any] = {}
        for number, line in self._lines:
            if line is None:
                limit = self._lines.limit_bytes
                yield number, InvalidDocumentError(f"longer than {limit} bytes, the limit for one document")
                continue
            stripped = (line.removeprefix(_MARK) if number == 1 else line).strip()
            if not stripped:
                self.blank += 1
                continue
            try:
                value = parse_json(stripped)
            except InvalidDocumentError as error:
                yield number, error
                continue
            if (action := _action(value)) is not None:
                self.blank += 1
                own = {"_id": action["_id"]} if "_id" in action else {}
                continue
            yield number, {**own, **value} if own and isinstance(value, dict) else value
            own = {}


def _action(value: Any) -> dict[str, Any] | None:
    """What a line of a bulk request says of the document on the next line; None for another line."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    action = value.get("index", value.get("create"))
    return action if isinstance(action, dict) and {"_id", "_index"} & action.keys() else None
