"""Stored documents as queries, as messages: made by a shard, read by a router."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.reading.examples import Example
from tercet.index.segments.stored import StoredQuery
from tercet.models.representations import offsets_of
from tercet.service.shard.messages import Arrays, Message
from tercet.service.shard.queries import representation_arrays, representations_of


def example_arrays(found: Sequence[tuple[Example, str] | None]) -> Arrays:
    """The arrays of what there is of some documents."""
    there = [each for each in found if each is not None]
    examples = [example for example, _ in there]
    tokens = [each.tokens for each in examples if each.tokens is not None]
    return {
        "there": np.array([each is not None for each in found], np.bool_),
        "texts": PackedBytes.of([text.encode(errors="surrogatepass") for _, text in there]),
        "dense": np.stack([each.dense for each in examples]) if examples else None,
        "terms": offsets_of(np.array([len(each.token_ids) for each in examples], np.int64)),
        "token_ids": np.concatenate([np.empty(0, np.int32), *(each.token_ids for each in examples)]),
        "weights": np.concatenate([np.empty(0, np.float32), *(each.weights for each in examples)]),
        "tokens": offsets_of(np.array(list(map(len, tokens)), np.int64)) if tokens else None,
        "vectors": np.concatenate(tokens) if tokens else None,
    }


def examples_of(found: Message, count: int, dimension: int) -> list[tuple[Example, str] | None]:
    """What there is of so many documents. Raises ValueError and its like."""
    there = found.array("there", np.bool_, count)
    size = int(np.count_nonzero(there))
    examples = iter(_examples(found, size, dimension))
    return [next(examples) if each else None for each in there.tolist()]


def _examples(found: Message, size: int, dimension: int) -> list[tuple[Example, str]]:
    if not size:
        return []
    dense = found.array("dense", np.float32, size, dimension)
    terms = found.array("terms", np.int64, size + 1)
    token_ids = found.array("token_ids", np.int32, int(terms[-1]))
    weights = found.array("weights", np.float32, int(terms[-1]))
    texts = found.strings("texts", size)
    tokens = found.array_or_none("tokens", np.int64, size + 1)
    vectors = None if tokens is None else found.array("vectors", np.float32, int(tokens[-1]), None)
    return [
        (
            Example(
                dense[number],
                token_ids[start:stop],
                weights[start:stop],
                None if tokens is None or vectors is None else vectors[tokens[number] : tokens[number + 1]],
            ),
            texts[number].decode(errors="surrogatepass"),
        )
        for number, (start, stop) in enumerate(pairwise(terms.tolist()))
    ]


def stored_arrays(stored: StoredQuery) -> Arrays:
    """The arrays of a stored document as a query."""
    text = stored.text.encode(errors="surrogatepass")
    return {"text": np.frombuffer(text, np.uint8), **representation_arrays(stored.representations)}


def stored_of(found: Message) -> StoredQuery:
    """A stored document as a query. Raises ValueError and its like."""
    text = found.array("text", np.uint8, None).tobytes().decode(errors="surrogatepass")
    return StoredQuery(representations_of(found), text)
