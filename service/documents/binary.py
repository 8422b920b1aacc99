"""Documents and their representations in one safetensors body, with the names of `/embed`.

documents        uint8[·]          one JSON object a line: id, text, title, metadata
dense            float32[W, D]     as all floats also float16
sparse_indptr    int64[W+1], sparse_token_ids int32, sparse_weights float32
colbert          float32[ΣL, C], colbert_offsets int64[W+1]; absent for the codec none
window_offsets   int64[N+1], window_spans int64[W, 2]; only in a collection with windows, and there optional

N documents, W encoded texts: as many, unless there are windows. A collection without a side has none of its
arrays. Metadata of the body: `fingerprint`, and at
will `idempotency_key` and `if_position`. What else `/embed` writes is ignored, so that to its answer only
`documents` is to be added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from safetensors.numpy import load

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.json_values import loads
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Float32, Int64, Output, Representations, SparseRows, TokenVectors
from tercet.models.soundness import Expected, as_token_ids, first_fault, offsets_problem
from tercet.service.documents.batch import EncodedDocuments, stored_outputs
from tercet.service.exceptions import InvalidRequestError, MalformedBodyError
from tercet.service.http.json_body import scan
from tercet.service.http.why_not_json import why_not_json

METADATA = {"fingerprint", "idempotency_key", "if_position"}
IGNORED_METADATA = {"model", "adapter", "routes"}
IGNORED_ARRAYS = {"tokens", "truncated"}
FLOATS = ("float32", "float16")
INTEGERS = ("int64", "int32")

# Name → axes and types.
ARRAYS: Mapping[str, tuple[int, Sequence[str]]] = {
    "documents": (1, ("uint8",)),
    "dense": (2, FLOATS),
    "sparse_indptr": (1, INTEGERS),
    "sparse_token_ids": (1, INTEGERS),
    "sparse_weights": (1, FLOATS),
    "colbert": (2, FLOATS),
    "colbert_offsets": (1, INTEGERS),
    "window_offsets": (1, INTEGERS),
    "window_spans": (2, INTEGERS),
}

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class BinaryBody:
    """A body that was read: its arrays, all of known names, axes and types, and its metadata."""

    arrays: Mapping[str, Array]
    metadata: Mapping[str, str]
    _header: Mapping[str, Any]
    _body: bytes

    @staticmethod
    def read(body: bytes) -> BinaryBody:
        """Raises MalformedBodyError, InvalidRequestError that names the array, or RequestTooLargeError."""
        try:
            arrays = load(body)
            size = int.from_bytes(body[:8], "little")
            header: dict[str, Any] = json.loads(body[8 : 8 + size])
        except Exception as error:
            raise MalformedBodyError(
                f"the body is not safetensors: {error}", "invalid_safetensors"
            ) from error
        metadata: dict[str, str] = header.pop("__metadata__", None) or {}
        for name in metadata:
            if name not in METADATA | IGNORED_METADATA:
                raise InvalidRequestError(f"{name}: no such metadata; leave it out", name, "unknown_field")
        for name, array in arrays.items():
            if name not in IGNORED_ARRAYS:
                _require_kind(name, array)
        scan(_given(arrays, "documents").tobytes())
        return BinaryBody(arrays, metadata, header, body)

    def content(self) -> bytes:
        """All but the idempotency key, which tells this body from others."""
        described = {name: text for name, text in self.metadata.items() if name != "idempotency_key"}
        size = int.from_bytes(self._body[:8], "little")
        return orjson.dumps([described, self._header], option=orjson.OPT_SORT_KEYS) + self._body[8 + size :]

    @property
    def fingerprint(self) -> str:
        """Raises InvalidRequestError where it is missing."""
        if "fingerprint" not in self.metadata:
            raise InvalidRequestError(
                "fingerprint is missing: give it in the metadata, as /embed does",
                "fingerprint",
                "missing_field",
            )
        return self.metadata["fingerprint"]

    @property
    def if_position(self) -> str | None:
        """A position, not yet read."""
        return self.metadata.get("if_position")

    @property
    def line_count(self) -> int:
        """How many documents there are lines for."""
        text = _given(self.arrays, "documents").tobytes()
        return text.count(b"\n") + bool(text[text.rfind(b"\n") + 1 :].strip())

    def lines(self) -> list[bytes]:
        """The documents' JSON."""
        lines = _given(self.arrays, "documents").tobytes().split(b"\n")
        return lines if lines[-1].strip() else lines[:-1]

    def values(self) -> list[Any]:
        """The documents, parsed. Raises InvalidRequestError that names the line."""
        values = []
        for number, line in enumerate(self.lines()):
            try:
                values.append(loads(line))
            except orjson.JSONDecodeError as error:
                raise InvalidRequestError(
                    f"documents.{number} is not valid JSON: {why_not_json(line, error)}",
                    f"documents.{number}",
                ) from error
        return values


@dataclass(frozen=True, slots=True)
class ReadyArrays:
    """The representations of all documents of a batch, as arrays."""

    arrays: Mapping[str, Array]
    fingerprints: Sequence[str]
    positions: Int64

    def encoded(self, documents: Sequence[Document], settings: CollectionSettings) -> EncodedDocuments:
        """What was brought, checked. Raises InvalidRequestError that names the array."""
        outputs = stored_outputs(settings)
        dense, sparse, colbert = None, None, None
        if "dense" in outputs:
            dense = _floats(self.arrays, "dense")
        if "sparse" in outputs:
            sparse = SparseRows(
                _integers(self.arrays, "sparse_indptr"),
                as_token_ids(_given(self.arrays, "sparse_token_ids")),
                _floats(self.arrays, "sparse_weights"),
            )
        if "colbert" in outputs:
            vectors = _floats(self.arrays, "colbert")
            colbert = TokenVectors(vectors, _integers(self.arrays, "colbert_offsets"))
        first = next(rows for rows in (dense, sparse, colbert) if rows is not None)
        texts = max(0, len(first))
        offsets, spans = self._windows(documents, settings, texts, outputs[0])
        encoded = Representations(
            np.zeros(texts, np.int64), np.zeros(texts, np.bool_), dense, sparse, colbert
        )
        fault = first_fault(encoded, Expected(texts, outputs, settings, blank=True))
        if fault is not None:
            name = fault.array
            if fault.text is not None:
                name = f"documents.{int(np.searchsorted(offsets, fault.text, 'right')) - 1}.{name}"
            raise InvalidRequestError(f"{name} {fault.problem}", name)
        return EncodedDocuments(self.positions, encoded, offsets, spans)

    def _windows(
        self, documents: Sequence[Document], settings: CollectionSettings, texts: int, side: Output
    ) -> tuple[Int64, Int64]:
        """Which texts are each document's, and where they lie in its text. side: whose rows were counted."""
        if "window_offsets" not in self.arrays and "window_spans" not in self.arrays:
            if texts != len(documents):
                raise InvalidRequestError(
                    f"{side} has {texts} rows and documents {len(documents)} lines; give one row for each",
                    side,
                )
            whole = DocumentWindows.whole(documents)
            return whole.offsets, whole.spans
        if settings.window is None:
            raise InvalidRequestError(
                f"collection {settings.name!r} has no windows; leave window_offsets and window_spans out",
                "window_offsets",
            )
        offsets = _integers(self.arrays, "window_offsets")
        problem = offsets_problem(offsets, len(documents), texts)
        if problem is not None:
            raise InvalidRequestError(f"window_offsets {problem}", "window_offsets")
        spans = _given(self.arrays, "window_spans")
        if spans.shape != (texts, 2):
            raise InvalidRequestError(
                f"window_spans has shape {list(spans.shape)}; give [{texts}, 2]", "window_spans"
            )
        return offsets, spans.astype(np.int64)


def _require_kind(name: str, array: Array) -> None:
    if name not in ARRAYS:
        raise InvalidRequestError(f"{name[:80]}: no such array; leave it out", name, "unknown_field")
    axes, types = ARRAYS[name]
    if array.ndim != axes or array.dtype.name not in types:
        raise InvalidRequestError(
            f"{name} is {array.dtype.name} of {array.ndim} axes; use {' or '.join(types)} of {axes}", name
        )


def _given(arrays: Mapping[str, Array], name: str) -> Array:
    if name not in arrays:
        raise InvalidRequestError(f"{name} is missing; give it", name, "missing_field")
    return arrays[name]


def _floats(arrays: Mapping[str, Array], name: str) -> Float32:
    return _given(arrays, name).astype(np.float32, copy=False)


def _integers(arrays: Mapping[str, Array], name: str) -> Int64:
    return _given(arrays, name).astype(np.int64, copy=False)
