"""Which columns of a source hold id, title, text and metadata: those named, or those of the usual names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tercet.index.candidates import Document
from tercet.index.documents.ids import identifier_of
from tercet.index.documents.json_values import TOO_DEEP
from tercet.index.documents.metadata import PARTITION, value_at
from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import shown
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.conversations import CONVERSATIONS, said
from tercet.ingest.sources.json_kinds import kind_of
from tercet.ingest.sources.unclear_columns import Problem, missing_path, problem_message
from tercet.ingest.sources.usual_names import IDS, TEXTS, TITLES, conversation_path, known_name, usual_names

METADATA = "metadata"
GENERATED_BYTES = 16


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What somebody says of a source's columns. None: the usual names are looked for.

    A name may be a path into nested objects and lists of them, its parts joined by dots. metadata: what alone
    is kept; by default all that is nothing else. not_metadata: what of it is left out. generate_ids: ids are
    hashes of what a document holds. partition: what becomes the document's partition.
    """

    text: str | None = None
    title: str | None = None
    id: str | None = None
    metadata: tuple[str, ...] | None = None
    not_metadata: tuple[str, ...] = ()
    generate_ids: bool = False
    partition: str | None = None

    @property
    def own(self) -> list[str]:
        """The names that are said of text, title, id and partition."""
        named = (self.text, self.title, self.id, self.partition)
        return [name for name in named if name is not None]

    @property
    def has_paths(self) -> bool:
        """Whether a named column may be a path, which only records tell."""
        return any("." in name for name in self.own)

    def among(
        self, names: Sequence[str], origin: str, records: Sequence[Mapping[str, Any]] = (), hint: str = ""
    ) -> Columns:
        """The columns of a source of these names. Raises SourceError where it is unclear.

        origin, hint: for the error; records: the first ones, in which paths must lead somewhere.
        """
        problems: list[Problem] = []

        def known(usual: Sequence[str], firsts: int, flag: str) -> str:
            match = known_name(names, usual, firsts, flag)
            if isinstance(match, str):
                return match
            problems.append(match)
            return usual[0]

        text = self.text or conversation_path(names) or known(TEXTS, 1, "--text-field")
        title = self.title or next((name for name in usual_names(names, TITLES) if name != text), None)
        own = None if self.generate_ids else self.id or known(IDS, 2, "--id-field")
        for flag, wanted in (
            ("--text-field", self.text),
            ("--title-field", self.title),
            ("--id-field", self.id),
            ("--partition-field", self.partition),
        ):
            missing = None if wanted is None else missing_path(names, records, wanted, flag)
            if missing is not None:
                problems.append(missing)
        if problems:
            raise SourceError(f"{origin}: {problem_message(problems, names)}{hint}")
        return Columns(text, title, own, self)


USUAL = ColumnChoice()


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one source. title: None where it has none; id: None where ids are generated."""

    text: str
    title: str | None
    id: str | None
    choice: ColumnChoice = USUAL

    def __str__(self) -> str:
        parts = [f"text from {self.text!r}"]
        parts += [] if self.title is None else [f"title from {self.title!r}"]
        parts.append("ids from the content" if self.id is None else f"ids from {self.id!r}")
        return ", ".join(parts)

    @property
    def usual(self) -> bool:
        """Whether they are what every source of ours has, so that nothing is to be said."""
        return self.text == "text" and self.title in ("title", None) and self.id in ("id", "_id")

    def document(self, record: object) -> Document:
        """The document of a record. Raises InvalidDocumentError where a part is missing or of another type.

        A whole number as id becomes its decimal digits. Null stands for an absent value. What is beside an
        object `metadata` and inside it holds as it is inside.
        """
        if not isinstance(record, Mapping):
            raise InvalidDocumentError(f"expected a JSON object, got {kind_of(record)}")
        text = _text(record, self.text)
        if text is None:
            raise InvalidDocumentError(f'"{self.text}" is missing')
        if not isinstance(text, str):
            raise InvalidDocumentError(f'"{self.text}" must be a string, got {kind_of(text)}')
        title = None if self.title is None else value_at(record, self.title)
        if title is not None and not isinstance(title, str):
            raise InvalidDocumentError(f'"{self.title}" must be a string or null, got {kind_of(title)}')
        metadata = self._metadata(record)
        named = self.choice.partition
        if named is not None and (partition := value_at(record, named)) is not None:
            metadata[PARTITION] = identifier_of(partition)
        return Document(self._identifier(record, text, title, metadata), text, title or None, metadata)

    def _identifier(
        self, record: Mapping[str, Any], text: str, title: str | None, metadata: Mapping[str, Any]
    ) -> str:
        if self.id is None:
            return content_id(text, title, metadata)
        if self.id in ("id", "_id") and self.choice.id is None:
            return _usual_identifier(record)
        return _identifier(self.id, value_at(record, self.id))

    def _metadata(self, record: Mapping[str, Any]) -> dict[str, Any]:
        chosen = self.choice.metadata
        if chosen is not None:
            metadata = {name: value_at(record, name) for name in chosen}
            return {name: value for name, value in metadata.items() if value is not None}
        inside = record.get(METADATA)
        if inside is not None and not isinstance(inside, Mapping):
            raise InvalidDocumentError(f'"{METADATA}" must be an object or null, got {kind_of(inside)}')
        own = {self.text, self.title, METADATA, *(("id", "_id") if self.id in ("id", "_id") else (self.id,))}
        beside = {key: value for key, value in record.items() if key not in own and value is not None}
        metadata = {**beside, **(inside or {})}
        for name in self.choice.not_metadata:
            metadata.pop(name, None)
        return metadata


STANDARD = Columns("text", "title", "id")
"""The columns of records that were written to be read: `{"id" or "_id", "text", "title"?, "metadata"?}`."""


def content_id(text: str, title: str | None, metadata: Mapping[str, Any]) -> str:
    """An id that follows from what a document holds: a BLAKE2b hash, hexadecimal.

    Raises InvalidDocumentError for metadata that nest too deep.
    """
    try:
        content = json.dumps([text, title or None, metadata], sort_keys=True)
    except RecursionError as error:
        raise InvalidDocumentError(TOO_DEEP) from error
    return blake2b(content.encode(), digest_size=GENERATED_BYTES).hexdigest()


def _text(record: Mapping[str, Any], path: str) -> Any:
    """What is to be the text of a record. Raises InvalidDocumentError for a conversation that has none."""
    if path in CONVERSATIONS.values() and path not in record:
        return said(record, path)
    return _joined(value_at(record, path))


def _joined(value: Any) -> Any:
    """The paragraphs of a list of texts, or of lists of texts, as one text; whatever else as it is."""
    if not isinstance(value, list):
        return value
    paragraphs, left = list[str](), value[::-1]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += item[::-1]
        elif isinstance(item, str):
            paragraphs.append(item)
        else:
            return value
    return "\n\n".join(paragraphs) if paragraphs else value


def _usual_identifier(record: Mapping[str, Any]) -> str:
    names = [name for name in ("id", "_id") if record.get(name) is not None]
    if not names:
        raise InvalidDocumentError('"id" (or "_id") is missing')
    if len(names) == 2 and identifier_of(record["id"]) != identifier_of(record["_id"]):
        raise InvalidDocumentError(
            f'"id" is {shown(record["id"])} but "_id" is {shown(record["_id"])}: keep one'
        )
    return _identifier(names[0], record[names[0]])


def _identifier(name: str, value: Any) -> str:
    if value is None:
        raise InvalidDocumentError(f'"{name}" is missing')
    value = identifier_of(value)
    if not isinstance(value, str):
        raise InvalidDocumentError(
            f'"{name}" must be a string or a whole number, got {kind_of(value)}: {shown(value)}'
        )
    if not value:
        raise InvalidDocumentError(f'"{name}" is empty')
    return value
