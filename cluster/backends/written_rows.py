"""How a document that Tercet writes lies in an engine.

What is scored of it is one string of bytes, as in a ledger (`index/live/entries.py`): token vectors as the
collection's codec has them, and dense and lexical values as they are stored. So nothing is lost on the way
there and back. Beside it lie the texts and metadata, for the engine's filters and for people, and the vectors
that the engine proposes by.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tercet.cluster.backends.engine import EngineDocument
from tercet.index.bm25.formula import weights
from tercet.index.bm25.words import WordRows
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.store import decode_document, encode_document
from tercet.index.errors import DamagedIndexError, InvalidDocumentError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live.entries import decode_rows, encode_rows, with_stored_fields
from tercet.index.segments.rows import DocumentRows
from tercet.index.windows.store import largest_weights
from tercet.ingest.sources.columns import STANDARD
from tercet.models.representations import SparseRows
from tercet.service.exceptions import BackendError

CONTENTS = ["id", "title", "text", "metadata"]
FIELDS = [*CONTENTS, "position", "rows"]
STRING_BYTES = 49_149  # whose base64 has 65,532 characters: a string of Milvus has 65,535 at most
NUMBERS = 2**31  # of terms of BM25
NOTHING = PackedBytes.of([b""])


def engine_documents(rows: DocumentRows, mean_length: float) -> Iterator[EngineDocument]:
    """Documents as engines keep them. mean_length: of the collection's texts at present, by which BM25
    proposes; scores go by that of each moment.
    """
    lexical = lexical_of(rows)
    for row in range(len(rows)):
        one = rows.take(np.array([row]))
        document = decode_document(one.ids[0].decode(), one.contents[0])
        words, numbers = one.words, dict[int, float]()
        if words is not None:
            words = _own_terms(words)
            shares = weights(words.rows.weights, int(words.lengths[0]), mean_length)
            every = words.terms.take(np.arange(len(words.terms)))
            for term, share in zip(every, shares.tolist(), strict=True):
                number = term_number(term)
                numbers[number] = max(share, numbers.get(number, 0.0))
        content = encode_rows(replace(one, ids=NOTHING, contents=NOTHING, words=words))
        ids, values = lexical.row(row)
        yield EngineDocument(
            {
                "id": document.id,
                "title": document.title,
                "text": document.text,
                "metadata": dict(document.metadata),
                "position": int(one.positions[0]),
                "rows": _strings(content),
            },
            one.dense.astype(np.float32),
            dict(zip(ids.tolist(), values.tolist(), strict=True)),
            numbers,
        )


def stored_rows(
    stored: Sequence[Mapping[str, Any]], settings: CollectionSettings, name: str
) -> list[DocumentRows]:
    """Documents of their `FIELDS`, with columns; none of none. name: of the collection, for messages.

    Raises BackendError for what Tercet did not write.
    """
    if not stored:
        return []
    try:
        rows = DocumentRows.concatenate([_row(fields, settings) for fields in stored])
        return [with_stored_fields(rows, settings)]
    except (DamagedIndexError, InvalidDocumentError, KeyError, TypeError, ValueError) as error:
        raise BackendError(
            f"{name} has a document that Tercet did not write so ({error}); write it again"
        ) from error


def document_of(fields: Mapping[str, Any] | None) -> Document:
    """The document of its `CONTENTS`. Raises InvalidDocumentError."""
    return STANDARD.document({name: (fields or {}).get(name) for name in CONTENTS})


def lexical_of(rows: DocumentRows) -> SparseRows:
    """The lexical weights of each document: of its windows the largest of each term."""
    return rows.sparse if rows.windows is None else largest_weights(rows.sparse, rows.windows.offsets)


def term_number(term: bytes) -> int:
    """What stands for a term of BM25 in an engine, which knows numbers alone. Two terms may share one: then a
    document is proposed that has the other.
    """
    return zlib.crc32(term) % NUMBERS


def _row(fields: Mapping[str, Any], settings: CollectionSettings) -> DocumentRows:
    id, content = encode_document(document_of(fields))
    rows = decode_rows(b"".join(map(b64decode, fields["rows"])), settings)
    return replace(
        rows,
        ids=PackedBytes.of([id]),
        contents=PackedBytes.of([content]),
        positions=np.array([fields["position"]], np.int64),
    )


def _strings(content: bytes) -> list[str]:
    starts = range(0, len(content), STRING_BYTES)
    return [b64encode(content[start : start + STRING_BYTES]).decode() for start in starts]


def _own_terms(words: WordRows) -> WordRows:
    """The words of one document, without terms that it has not."""
    numbers = words.rows.token_ids
    places = np.arange(len(numbers), dtype=np.int32)
    return replace(
        words, terms=words.terms.gather(numbers.astype(np.int64)), rows=replace(words.rows, token_ids=places)
    )
