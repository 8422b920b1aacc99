"""What the ledger holds of an operation: documents as they are stored, or the ids of deleted ones, as bytes.

Rows are safetensors of their arrays, so that recovery encodes nothing. Declared fields are made anew from the
metadata in the contents, of many entries at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from safetensors.numpy import load, save

from tercet.index.bm25.words import WordRows
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import DamagedIndexError, InvalidDocumentError
from tercet.index.files.arrays import Array
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.segments.later_columns import with_columns
from tercet.index.segments.rows import DocumentRows
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.index.windows.store import DocumentWindows
from tercet.models.files import UNREADABLE_ARRAYS
from tercet.models.representations import SparseRows

LENGTH_BYTES = 8


def encode_rows(rows: DocumentRows) -> bytes:
    """Complete documents, to be read by `decode_rows`."""
    arrays = {
        **_packed("ids", rows.ids),
        **_packed("documents", rows.contents),
        "dense": rows.dense,
        **_sparse("sparse", rows.sparse),
    }
    if rows.tokens is not None:
        arrays |= {"token_codes": rows.tokens.codes, "token_offsets": rows.tokens.offsets}
        if rows.tokens.scales is not None:
            arrays["token_scales"] = rows.tokens.scales
        if rows.tokens.codebook is not None and rows.tokens.codebook.several:
            assert rows.tokens.centroids is not None  # noqa: S101 - as for every codebook
            arrays["token_centroids"] = rows.tokens.centroids
    if rows.words is not None:
        arrays |= {**_packed("terms", rows.words.terms), **_sparse("words", rows.words.rows)}
        arrays["word_lengths"] = rows.words.lengths
    if rows.windows is not None:
        arrays |= {"window_offsets": rows.windows.offsets, "window_spans": rows.windows.spans}
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def decode_rows(payload: bytes, settings: CollectionSettings) -> DocumentRows:
    """The documents of an entry, without positions, as theirs is the entry's, and without columns.

    Raises DamagedIndexError where it is not one of this collection.
    """
    try:
        arrays = load(payload)
        ids, contents = _unpacked("ids", arrays), _unpacked("documents", arrays)
        windows = None
        offsets = np.arange(len(contents) + 1)
        if settings.window is not None:
            windows = DocumentWindows(arrays["window_offsets"], arrays["window_spans"])
            offsets = windows.offsets
        return DocumentRows(
            ids,
            contents,
            np.zeros(len(contents), np.int64),
            {},
            offsets,
            arrays["dense"],
            _sparse_of("sparse", arrays),
            _tokens(arrays, settings) if settings.stores_token_vectors else None,
            _words(arrays) if settings.bm25 else None,
            windows,
        )
    except UNREADABLE_ARRAYS as error:
        raise _not_documents(settings, error) from error


def with_stored_fields(rows: DocumentRows, settings: CollectionSettings) -> DocumentRows:
    """The documents of entries with the columns of all declared fields.

    Raises DamagedIndexError where their metadata is not what this collection takes.
    """
    try:
        return with_columns(rows, settings.fields, rounded=True)
    except (KeyError, ValueError, InvalidDocumentError) as error:
        raise _not_documents(settings, error) from error


def _not_documents(settings: CollectionSettings, error: Exception) -> DamagedIndexError:
    return DamagedIndexError(
        f"an entry in the ledger of collection {settings.name!r} is not documents of it ({error}); "
        "restore the ledger from a backup"
    )


def encode_ids(ids: PackedBytes) -> bytes:
    """Ids, to be read by `decode_ids`."""
    return save(_packed("ids", ids))


def decode_ids(payload: bytes, settings: CollectionSettings) -> PackedBytes:
    """The ids of an entry. Raises DamagedIndexError where it holds none."""
    try:
        return _unpacked("ids", load(payload))
    except UNREADABLE_ARRAYS as error:
        raise DamagedIndexError(
            f"an entry in the ledger of collection {settings.name!r} is not ids ({error}); "
            "restore the ledger from a backup"
        ) from error


def encode_parts(parts: Sequence[DocumentRows]) -> bytes:
    """Complete documents of several segments, to be read by `decode_parts`: each part after its length."""
    payloads = [encode_rows(part) for part in parts]
    return b"".join(len(payload).to_bytes(LENGTH_BYTES, "little") + payload for payload in payloads)


def decode_parts(payload: bytes, settings: CollectionSettings) -> list[DocumentRows]:
    """The parts of an entry, as `decode_rows`. Raises DamagedIndexError where it does not hold such."""
    parts, start = [], 0
    while start < len(payload):
        begin = start + LENGTH_BYTES
        end = begin + int.from_bytes(payload[start:begin], "little")
        parts.append(decode_rows(payload[begin:end], settings))
        start = end
    return parts


def _packed(name: str, strings: PackedBytes) -> dict[str, Array]:
    first, last = int(strings.offsets[0]), int(strings.offsets[-1])
    return {name: strings.data[first:last], f"{name}_offsets": strings.offsets - first}


def _unpacked(name: str, arrays: dict[str, Array]) -> PackedBytes:
    return PackedBytes(arrays[name], arrays[f"{name}_offsets"])


def _sparse(name: str, rows: SparseRows) -> dict[str, Array]:
    return {
        f"{name}_indptr": rows.indptr,
        f"{name}_token_ids": rows.token_ids,
        f"{name}_weights": rows.weights,
    }


def _sparse_of(name: str, arrays: dict[str, Array]) -> SparseRows:
    return SparseRows(arrays[f"{name}_indptr"], arrays[f"{name}_token_ids"], arrays[f"{name}_weights"])


def _tokens(arrays: dict[str, Array], settings: CollectionSettings) -> TokenVectorStore:
    return TokenVectorStore(
        arrays["token_codes"],
        arrays.get("token_scales"),
        arrays["token_offsets"],
        arrays.get("token_centroids"),
        settings.codebook,
    )


def _words(arrays: dict[str, Array]) -> WordRows:
    return WordRows(_unpacked("terms", arrays), _sparse_of("words", arrays), arrays["word_lengths"])
