"""What FAISS must find in a file, before it reads it: it takes numbers on trust, and makes room by them.

As FAISS writes the indexes of `building.py` (https://github.com/facebookresearch/faiss/blob/main/faiss/impl/index_write.cpp).
Vectors of a file it holds against the file's size itself.
"""

from __future__ import annotations

import struct
from typing import Any

from tercet.index.dense.kinds import DenseKind

NUMBER_BYTES = 8  # of a vector's number, beside its code
INNER_PRODUCT, NO_MAP = 0, 0
PQ_BITS, PQ_ENTRIES = 8, 256
MOST_RABITQ_BITS = 9
MOST_CODE_BYTES = 64  # of RaBitQ, beside those of the values


def require_layout(content: memoryview, kind: DenseKind, vectors: int, dimension: int) -> None:
    """Raises ValueError where a file is not an index of this kind, of so many vectors of so many values."""
    try:
        fields = _Fields(content)
        if kind == "hnsw":
            fields.header(b"IHNs", vectors, dimension)
            return
        if kind == "ivfrabitq":
            fields.header(b"IxPT", vectors, dimension)
            fields.rotation(dimension)
            fields.header(b"Iwrr", vectors, dimension)
        else:
            fields.header(b"IwPQ", vectors, dimension)
        lists = fields.quantizer(vectors, dimension)
        code_bytes = fields.rabitq(dimension) if kind == "ivfrabitq" else fields.product_quantizer(dimension)
        fields.lists(lists, code_bytes, vectors)
    except struct.error as error:
        raise ValueError("it ends too early") from error


class _Fields:
    """The numbers of a file, one after the other. Whatever differs from what it must be raises ValueError."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._offset = 0

    def header(self, name: bytes, vectors: int, dimension: int) -> None:
        """What each index begins with."""
        kind, values, count, _, _, trained, metric = self._take("4siqqqBi")
        if (kind, trained, metric) != (name, 1, INNER_PRODUCT):
            raise ValueError(f"it is no trained index {name.decode()} of inner products")
        if (count, values) != (vectors, dimension):
            raise ValueError(
                f"it is of {count} vectors of {values} values, the segment has {vectors} of {dimension}"
            )

    def rotation(self, dimension: int) -> None:
        self._require("i", 1)
        self._require("4sB", b"rrot", 0)
        self._floats(dimension * dimension)
        self._floats(0)
        self._require("iiB", dimension, dimension, 1)

    def quantizer(self, vectors: int, dimension: int) -> int:
        """The number of lists, and the centroid of each."""
        lists, _ = self._take("QQ")
        if not 1 <= lists <= vectors:
            raise ValueError(f"it has {lists} lists of {vectors} vectors")
        self.header(b"IxFI", lists, dimension)
        self._floats(lists * dimension)
        self._require("BQ", NO_MAP, 0)
        return int(lists)

    def product_quantizer(self, dimension: int) -> int:
        """Bytes of a code."""
        _, code_bytes = self._take("BQ")
        if not 1 <= code_bytes <= dimension or dimension % code_bytes:
            raise ValueError(f"it has codes of {code_bytes} bytes for {dimension} values")
        self._require("QQQ", dimension, code_bytes, PQ_BITS)
        self._floats(dimension * PQ_ENTRIES)
        return int(code_bytes)

    def rabitq(self, dimension: int) -> int:
        """Bytes of a code."""
        values, code_bytes, metric, bits, also_bytes, *_ = self._take("QQiQQBB")
        most = MOST_CODE_BYTES + -(-dimension * max(bits, 1) // 8)
        if (values, metric, also_bytes) != (dimension, INNER_PRODUCT, code_bytes) or not (
            1 <= bits <= MOST_RABITQ_BITS and code_bytes <= most
        ):
            raise ValueError(f"it has codes of {code_bytes} bytes and {bits} bits for {values} values")
        return int(code_bytes)

    def lists(self, lists: int, code_bytes: int, vectors: int) -> None:
        """How long each list is."""
        self._require("4sQQ", b"ilar", lists, code_bytes)
        kind, count = self._take("4sQ")
        if kind not in (b"full", b"sprs") or count > 2 * lists:
            raise ValueError(f"it has the lengths of {count} lists, not of {lists}")
        sizes = self._take(f"{count}Q")
        if sum(sizes if kind == b"full" else sizes[1::2]) != vectors:
            raise ValueError(f"its lists do not hold {vectors} vectors")
        end = self._offset + vectors * (code_bytes + NUMBER_BYTES)
        if end != len(self._content):  # FAISS maps what follows, and reads it without another look
            raise ValueError(f"it has {len(self._content)} bytes, but its lists end at {end}")

    def _take(self, form: str) -> tuple[Any, ...]:
        taken = struct.unpack_from(f"<{form}", self._content, self._offset)
        self._offset += struct.calcsize(f"<{form}")
        return taken

    def _require(self, form: str, *values: Any) -> None:
        taken = self._take(form)
        if taken != values:
            raise ValueError(f"it has {taken} in the place of {values}")

    def _floats(self, count: int) -> None:
        """Skips a vector of so many values in float32."""
        self._require("Q", count)
        self._offset += 4 * count
