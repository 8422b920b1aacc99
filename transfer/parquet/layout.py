"""The columns of an exported Parquet file, and what is in them. One row is one document.

    id, text           string
    title              string or null
    metadata           string, a JSON object
    dense              list<float>, D values
    sparse_token_ids   list<int32>, ascending
    sparse_weights     list<float>, one for each
    colbert            list<list<float>>, a list of C values for each token; absent for the codec none

A collection with windows has a list of them in each row instead of `dense` and `colbert`; the sparse columns
then hold the largest weight of each term in any window:

    windows            list<struct<start: int64, end: int64, and the four above>>

The file's metadata has the collection's description as JSON under the key `tercet`.
"""

from __future__ import annotations

import pyarrow

from tercet.index.catalog.settings import CollectionSettings

FLOATS = pyarrow.list_(pyarrow.float32())
SPARSE = [("sparse_token_ids", pyarrow.list_(pyarrow.int32())), ("sparse_weights", FLOATS)]
DOCUMENT = [("id", pyarrow.string()), ("title", pyarrow.string()), ("text", pyarrow.string())]
DOCUMENT += [("metadata", pyarrow.string())]


def encoding_fields(*, colbert: bool) -> list[tuple[str, pyarrow.DataType]]:
    """The columns of one encoded text."""
    return [("dense", FLOATS), *SPARSE, *([("colbert", pyarrow.list_(FLOATS))] if colbert else [])]


def columns(settings: CollectionSettings) -> list[tuple[str, pyarrow.DataType]]:
    """The columns of a collection's file."""
    encoded = encoding_fields(colbert=settings.stores_token_vectors)
    if settings.window is None:
        return [*DOCUMENT, *encoded]
    window = pyarrow.struct([("start", pyarrow.int64()), ("end", pyarrow.int64()), *encoded])
    return [*DOCUMENT, *SPARSE, ("windows", pyarrow.list_(window))]
