"""What is counted of a collection, kept in its engine, so that an opening need not read every document.

The group `statistics NAME` of the engine's records has it as a safetensors file, zlib-compressed and cut
into parts `POSITION.NUMBER`, with a record `newest` that is put last: which position it is of, of which
lineage, how many parts, and their checksum. It holds for just that position. The arrays of the file:

documents     int64     how many there are
terms         int32[T]  with idf: ascending; with `frequencies` and `masses`, int64[T], see `TermTotals`
words         uint8     with BM25: X words end to end; with `word_offsets` int64[X+1], `word_counts` int64[X]
words_length  int64     with BM25: how many words all documents have together
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tercet.cluster.backends.engine import Engine, Records
from tercet.cluster.backends.terms import Statistics, Words
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.sparse.term_totals import TermTotals

NEWEST = "newest"
PART_BYTES = 40_000  # in base64 below the 64 KiB that Milvus takes as one JSON value
PARTS_AT_ONCE = 64


class KeptStatistics:
    """Those of one collection. Each method asks the engine, and raises BackendError where it fails."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._group = f"statistics {name}"

    def keep(self, settings: CollectionSettings, position: int, statistics: Statistics) -> None:
        """Keeps them in the place of former ones. statistics: after the write at the position."""
        former = [*self._engine.records(self._group)]
        data = zlib.compress(_packed(statistics), 1)
        parts = {
            f"{position}.{number}": {"data": b64encode(data[start : start + PART_BYTES]).decode()}
            for number, start in enumerate(range(0, len(data), PART_BYTES))
        }
        keys = list(parts)
        for start in range(0, len(keys), PARTS_AT_ONCE):
            some: Records = {key: parts[key] for key in keys[start : start + PARTS_AT_ONCE]}
            self._engine.put_records({self._group: some})
        newest = {
            "position": position,
            "lineage": _lineage(settings),
            "parts": len(parts),
            "sha256": sha256(data).hexdigest(),
        }
        self._engine.put_records({self._group: {NEWEST: newest}})
        self._engine.remove_records(self._group, [key for key in former if key not in {*parts, NEWEST}])

    def of(self, settings: CollectionSettings, position: int) -> Statistics | None:
        """Those after the write at a position; None where they are not there, or not whole."""
        newest = self._engine.records(self._group, NEWEST).get(NEWEST)
        if newest is None:
            return None
        try:
            if (newest["position"], newest["lineage"]) != (position, _lineage(settings)):
                return None
            records = self._engine.records(self._group)
            parts = (records[f"{position}.{number}"] for number in range(newest["parts"]))
            data = b"".join(b64decode(part["data"]) for part in parts)
            if sha256(data).hexdigest() != newest["sha256"]:
                return None
            return _unpacked(zlib.decompress(data), settings)
        except (KeyError, TypeError, ValueError, zlib.error, SafetensorError):
            return None

    def forget(self) -> None:
        """Removes them."""
        self._engine.remove_records(self._group, [*self._engine.records(self._group)])


def _lineage(settings: CollectionSettings) -> str | None:
    return None if settings.lineage is None else settings.lineage.id


def _packed(statistics: Statistics) -> bytes:
    arrays: dict[str, npt.NDArray[Any]] = {"documents": np.array(statistics.documents, np.int64)}
    if statistics.terms is not None:
        frequencies, masses = statistics.terms.counts()
        terms = np.flatnonzero((frequencies != 0) | (masses != 0))
        arrays |= {
            "terms": terms.astype(np.int32),
            "frequencies": frequencies[terms],
            "masses": masses[terms],
        }
    if statistics.words is not None:
        counts = statistics.words.counted()
        words = PackedBytes.of(list(counts))
        arrays |= {
            "words": words.data,
            "word_offsets": words.offsets,
            "word_counts": np.fromiter(counts.values(), np.int64, len(counts)),
            "words_length": np.array(statistics.words.total_length, np.int64),
        }
    return save(arrays)


def _unpacked(data: bytes, settings: CollectionSettings) -> Statistics:
    """Raises KeyError, ValueError and SafetensorError for what is none."""
    arrays = load(data)
    terms = words = None
    if settings.lexical == "idf":
        terms = TermTotals([], settings.vocabulary_size)
        terms.apply(arrays["terms"], arrays["frequencies"], arrays["masses"])
    if settings.bm25:
        counts = arrays["word_counts"].tolist()
        strings = PackedBytes(arrays["words"], arrays["word_offsets"]).take(np.arange(len(counts)))
        words = Words(dict(zip(strings, counts, strict=True)), {}, int(arrays["words_length"]))
    return Statistics(int(arrays["documents"]), terms, words)
