"""The part of a write that goes to one shard, as the binary body that its route for documents takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson
from safetensors.numpy import save

from tercet.cluster.shards.fleet import Fleet
from tercet.index.candidates import Document
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Int64, Representations, ragged_positions
from tercet.service.documents.binary import Array
from tercet.service.exceptions import RequestTooLargeError
from tercet.service.load.deadlines import Deadline

SMALL_BYTES = 2**20  # of a body that any shard takes


def body_of(
    documents: Sequence[Document],
    representations: Representations,
    windows: DocumentWindows | None,
    places: Int64,
    metadata: Mapping[str, str],
) -> bytes:
    """Some documents of a batch with their representations, by their places int64[B].

    representations: of all documents, or of all windows; metadata: of the body.
    """
    texts = places if windows is None else ragged_positions(windows.offsets, places)
    encoded = representations if len(texts) == len(representations) else representations.take(texts)
    lines = b"\n".join(_line(documents[place]) for place in places.tolist())
    arrays: dict[str, Array] = {"documents": np.frombuffer(lines, np.uint8)}
    if encoded.dense is not None:
        arrays["dense"] = np.ascontiguousarray(encoded.dense)
    if encoded.sparse is not None:
        arrays["sparse_indptr"] = encoded.sparse.indptr
        arrays["sparse_token_ids"] = encoded.sparse.token_ids
        arrays["sparse_weights"] = encoded.sparse.weights
    if encoded.colbert is not None:
        arrays["colbert"] = np.ascontiguousarray(encoded.colbert.vectors)
        arrays["colbert_offsets"] = encoded.colbert.offsets
    if windows is not None:
        own = windows.take(places)
        arrays |= {"window_offsets": own.offsets, "window_spans": own.spans}
    return save(arrays, dict(metadata))


def _line(document: Document) -> bytes:
    return orjson.dumps(
        {
            "id": document.id,
            "text": document.text,
            "title": document.title,
            "metadata": document.metadata,
        }
    )


def require_fitting(fleet: Fleet, bodies: Mapping[int, bytes], deadline: Deadline) -> None:
    """Raises RequestTooLargeError where a shard would refuse its body for its size."""
    large = {shard: body for shard, body in bodies.items() if len(body) > SMALL_BYTES}
    if not large:
        return
    limits = fleet.require(dict.fromkeys(large, lambda shard: shard.largest_body_bytes(deadline)))
    for shard, limit in limits.items():
        if len(large[shard]) > limit:
            raise RequestTooLargeError(
                f"the documents for shard {fleet.clients[shard].name} have {len(large[shard])} bytes with "
                f"their representations; it takes {limit} (its setting max_body_bytes): write fewer at a "
                "time, or raise that"
            )
