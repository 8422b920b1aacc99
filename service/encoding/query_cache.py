"""Queries that come again are not encoded again: a cache of what they were encoded to, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import numpy as np

from tercet.models.encoder import EncoderInfo
from tercet.models.representations import OUTPUTS, Output, Representations, TokenBatch
from tercet.service.encoding.options import TextOptions

ENTRY_BYTES = 2000  # of the objects around the arrays of one query

Encode = Callable[[Sequence[str], TokenBatch | None], Awaitable[Representations]]
"""Texts, and their tokens where they are known, to representations."""


class QueryKey(NamedTuple):
    """All that says what a query is encoded to."""

    fingerprint: str
    adapter: str | None
    outputs: tuple[Output, ...]
    max_length: int | None
    truncate: bool
    text: str


class QueryCache:
    """Representations of queries, up to so many bytes; those longest of no use go first.

    Safe to use from several threads. hits, misses: queries that were found here, and that were not.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()  # of all below
        self._entries: OrderedDict[QueryKey, tuple[int, Representations]] = OrderedDict()
        self.size_bytes = self.hits = self.misses = 0

    def get(self, key: QueryKey) -> Representations | None:
        """What a query was encoded to, as it was; None where it is not here."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: QueryKey, encoded: Representations) -> None:
        """Keeps what one query was encoded to, unless it is larger than the whole cache."""
        size = ENTRY_BYTES + encoded.size_bytes + len(key.text.encode("utf-8", "surrogatepass"))
        if size > self._limit_bytes:
            return
        with self._lock:
            former, _ = self._entries.pop(key, (0, None))
            self._entries[key] = size, encoded
            self.size_bytes += size - former
            while self.size_bytes > self._limit_bytes:
                _, (freed, _) = self._entries.popitem(last=False)
                self.size_bytes -= freed

    async def encode(
        self,
        texts: Sequence[str],
        options: TextOptions,
        info: EncoderInfo,
        tokens: TokenBatch | None,
        encode: Encode,
    ) -> Representations:
        """Representations of at least one query, in order; only those that are not kept are encoded.

        info: of the encoder with its adapter; tokens: of the texts, where they are known; encode: for others.
        """
        given = tuple(output for output in OUTPUTS if output in options.outputs)
        scope = info.fingerprint, info.adapter, given, options.max_length, options.truncate
        keys = [QueryKey(*scope, text) for text in texts]
        cached = [self.get(key) for key in keys]
        known = [query for query in cached if query is not None]
        if len(known) == len(texts):
            return Representations.concatenate(known)
        rows = [row for row, query in enumerate(cached) if query is None]
        if known:
            tokens = None if tokens is None else tokens.take(np.array(rows))
            texts = [texts[row] for row in rows]
        encoded = await encode(texts, tokens)
        for index, row in enumerate(rows):
            self.put(keys[row], encoded.take(np.array([index])))
        return _in_order(cached, rows, encoded) if known else encoded


def _in_order(
    cached: Sequence[Representations | None], rows: Sequence[int], encoded: Representations
) -> Representations:
    """The cached queries with the encoded ones, which have these rows, in order."""
    known = [row for row, query in enumerate(cached) if query is not None]
    parts = [*(query for query in cached if query is not None), encoded]
    return Representations.concatenate(parts).take(np.argsort([*known, *rows]))
