"""Document ids and stored content of one segment.

An id's row is found by binary search over `id_order`, the rows in ascending order of their id's UTF-8
bytes. Content is one JSON object a document, packed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import orjson

from tercet.index.candidates import Document
from tercet.index.documents.id_filter import IdFilter
from tercet.index.documents.metadata import MAX_METADATA_BYTES, require_metadata
from tercet.index.errors import InvalidDocumentError, damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget, open_rows
from tercet.index.files.content import text_of
from tercet.index.files.packed_bytes import PackedBytes, PackedBytesWriter, find_strings, order_of
from tercet.index.files.streams import Streams
from tercet.index.wording import shown
from tercet.models.representations import Int64

MAX_ID_BYTES = 512
MAX_CONTENT_BYTES = 16 * 2**20
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_document(document: Document) -> tuple[bytes, bytes]:
    """Checks a document and gives what is stored of it: its id and its content, as UTF-8. Lone surrogates in
    its texts become U+FFFD.

    Raises InvalidDocumentError where the id is no UTF-8 text of 1 to 512 bytes, a part has a wrong
    type, the metadata is not finite JSON of at most 8 MiB and 64 levels with integers of 64 bits, or the
    content exceeds 16 MiB.
    """
    identifier = encode_id(document.id)
    name = f"document {document.id!r}"
    if not isinstance(document.text, str):
        raise InvalidDocumentError(f"{name}: text is {type(document.text).__name__}; give a string", "text")
    if document.title is not None and not isinstance(document.title, str):
        raise InvalidDocumentError(
            f"{name}: title is {type(document.title).__name__}; give a string or null", "title"
        )
    metadata = require_metadata(name, document.metadata)
    fields = {"text": document.text, "title": document.title, "metadata": metadata}
    try:
        content = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidDocumentError(
            f"{name}: metadata is not JSON ({error}); use finite JSON values of common size",
            "metadata",
        ) from error
    encoded = _SURROGATE.sub("\ufffd", content).encode()
    if len(encoded) > MAX_CONTENT_BYTES:
        raise InvalidDocumentError(
            f"{name} has {len(encoded)} bytes of content; the limit is {MAX_CONTENT_BYTES}, so split it"
        )
    if len(encoded) > MAX_METADATA_BYTES:
        size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
        if size > MAX_METADATA_BYTES:
            raise InvalidDocumentError(
                f"{name} has {size} bytes of metadata; the limit is {MAX_METADATA_BYTES}: leave some out",
                "metadata",
            )
    return identifier, encoded


def decode_document(identifier: str, content: bytes) -> Document:
    """The document of an id and its stored content. Raises ValueError, TypeError or KeyError for another."""
    record = orjson.loads(content)
    return Document(identifier, record["text"], record["title"], record["metadata"])


def encode_id(identifier: str) -> bytes:
    """The id's UTF-8 bytes. Raises InvalidDocumentError where there are none, or more than 512."""
    if not isinstance(identifier, str):
        raise InvalidDocumentError(f"document id {shown(identifier)} is not a string; give one", "id")
    try:
        encoded = identifier.encode()
    except UnicodeEncodeError as error:
        raise InvalidDocumentError(
            f"document id {identifier!r:.80} is not UTF-8 text; remove surrogates", "id"
        ) from error
    if not 1 <= len(encoded) <= MAX_ID_BYTES:
        raise InvalidDocumentError(
            f"document id {shown(identifier, 40)} has {len(encoded)} bytes; use 1 to {MAX_ID_BYTES}", "id"
        )
    return encoded


class DocumentWriter(Streams):
    """Streams the documents of one segment."""

    def __init__(self, arrays: ArrayTarget) -> None:
        self._arrays = arrays
        self._ids = PackedBytesWriter(arrays, "ids")
        self._contents = PackedBytesWriter(arrays, "documents")
        super().__init__(self._ids, self._contents)

    def append(self, ids: PackedBytes, contents: PackedBytes) -> None:
        """Adds documents, one row each."""
        self._ids.append(ids)
        self._contents.append(contents)

    def finish(self) -> None:
        """Completes the arrays and writes the order of ids."""
        super().finish()
        self._arrays.write("id_order", order_of(PackedBytes.open(self._arrays, "ids")))


@dataclass(frozen=True, slots=True)
class DocumentStore:
    """Reads ids and contents of one segment. id_order: int64[N]."""

    ids: PackedBytes
    contents: PackedBytes
    id_order: Int64
    id_filter: IdFilter
    arrays: ArraySource

    @staticmethod
    def open(arrays: ArraySource, documents: int) -> DocumentStore:
        """Opens those of `documents` rows. Raises DamagedIndexError naming the file."""
        ids = PackedBytes.open(arrays, "ids", documents)
        return DocumentStore(
            ids,
            PackedBytes.open(arrays, "documents", documents),
            open_rows(arrays, "id_order", documents, rows=documents),
            IdFilter(ids),
            arrays,
        )

    def __len__(self) -> int:
        return len(self.id_order)

    def find_all(self, identifiers: PackedBytes) -> Int64:
        """The row of each id, int64[T]; -1 where it is not there."""
        likely = self.id_filter.passing(identifiers)
        if len(likely) == 0:
            return np.full(len(identifiers), -1, np.int64)
        return find_strings(self.ids, self.id_order, identifiers, likely)

    def ids_of(self, rows: Int64) -> list[str]:
        """The ids of rows. Raises DamagedIndexError where one is not UTF-8."""
        return [self._decoded(identifier) for identifier in self.ids.take(rows)]

    def _decoded(self, identifier: bytes) -> str:
        return text_of(identifier, self.arrays.path("ids"))

    def name(self, row: int) -> Document:
        """The document of a row by its id alone; its contents are not read."""
        return Document(self._decoded(self.ids[row]), "")

    def get(self, row: int) -> Document:
        """The stored document of a row. Raises DamagedIndexError where its bytes are not its JSON."""
        identifier = self._decoded(self.ids[row])
        try:
            return decode_document(identifier, self.contents[row])
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(self.arrays.path("documents"), f"holds no stored document in row {row}") from error
