"""Documents as JSON, with what is stored of them, in pieces that each take a fraction of a millisecond."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from tercet.index.candidates import Document
from tercet.index.documents.filters import Filter
from tercet.index.documents.partitions import is_within, partition_record
from tercet.index.segments.stored import StoredRepresentations
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers.embeddings import numbers_json, packed_json
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.load.pools import Pool

PAGE_DOCUMENTS = 100  # read at a time, so that large pages of large documents take no memory


def document_record(document: Document) -> dict[str, Any]:
    """A stored document, with its collection where several are read as one."""
    return {
        "id": document.id,
        **({} if document.collection is None else {"collection": document.collection}),
        "title": document.title,
        "text": document.text,
        "metadata": document.metadata,
        **partition_record(document),
    }


async def document_pieces(
    document: Document, stored: StoredRepresentations, fingerprint: str, tokenizer: Tokenizer, *, packed: bool
) -> AsyncGenerator[bytes]:
    """A document with what is stored of it; packed: vectors as base64 of little-endian float32."""
    head = {"fingerprint": fingerprint, "position": stored.position}
    yield orjson.dumps(document_record(document))[:-1] + b',"representations":' + orjson.dumps(head)[:-1]
    if stored.windows is None or stored.windows.spans.tolist() == [[0, len(document.text)]]:
        yield b","
        for piece in _text_json(stored, 0, tokenizer, packed=packed):
            yield piece
    else:
        yield b',"windows":['
        for row, (start, end) in enumerate(stored.windows.spans.tolist()):
            yield (b"," if row else b"") + orjson.dumps({"start": start, "end": end})[:-1] + b","
            for piece in _text_json(stored, row, tokenizer, packed=packed):
                yield piece
            yield b"}"
        yield b"]"
    yield b"}}"


async def documents_pieces(
    snapshot: ReadableSnapshot, ids: Sequence[str], pool: Pool, *, partition: str | None = None
) -> AsyncGenerator[bytes]:
    """The documents of these ids that are there, or in a partition, in their order, and the ids that are not;
    of several collections those of each.
    """
    separator, missing = b'{"documents":[', []
    for start in range(0, len(ids), PAGE_DOCUMENTS):
        some = ids[start : start + PAGE_DOCUMENTS]
        for id, found in zip(some, await pool.run(snapshot.get_all, some), strict=True):
            documents = [document for document in found if is_within(document, partition)]
            if not documents:
                missing.append(id)
            for document in documents:
                yield separator + orjson.dumps(document_record(document))
                separator = b","
    yield (b"" if separator == b"," else separator) + b'],"missing":' + orjson.dumps(missing) + b"}"


async def page_pieces(
    snapshot: ReadableSnapshot,
    begin: tuple[str, str | None] | None,
    limit: int,
    filter: Filter | None,
    pool: Pool,
) -> AsyncGenerator[bytes]:
    """Up to `limit` documents of a snapshot in order of id, and the id after which the next page begins, with
    its collection where there are several.
    """
    separator, left = b'{"documents":[', limit
    after, collection = (None, None) if begin is None else begin
    while True:
        wanted = min(left, PAGE_DOCUMENTS)
        documents = await pool.run(snapshot.page, after, wanted + 1, filter, collection)
        for document in documents[:wanted]:
            yield separator + orjson.dumps(document_record(document))
            separator = b","
            after, collection = document.id, document.collection
        left -= wanted
        more = len(documents) > wanted
        if not more or not left:
            break
    following = after if collection is None else orjson.dumps([after, collection]).decode()
    yield (
        (b"" if separator == b"," else separator)
        + b'],"next":'
        + orjson.dumps(following if more else None)
        + b"}"
    )


def _text_json(
    stored: StoredRepresentations, row: int, tokenizer: Tokenizer, *, packed: bool
) -> Iterator[bytes]:
    """The entries of the three representations of one text."""
    array = packed_json if packed else numbers_json
    ids, weights = stored.sparse.row(row)
    sparse = {
        "token_ids": np.ascontiguousarray(ids),
        "weights": np.ascontiguousarray(weights),
        "tokens": tokenizer.token_strings(ids),
    }
    yield b'"sparse":' + orjson.dumps(sparse, option=orjson.OPT_SERIALIZE_NUMPY)
    yield b',"dense":'
    yield from array(stored.dense[row])
    if stored.colbert is not None:
        yield b',"colbert":'
        yield from array(stored.colbert.row(row))
