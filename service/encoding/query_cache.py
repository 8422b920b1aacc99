"""Queries that come again are not encoded again: a cache of what they were encoded to, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tercet.models.encoder import AdapterDescription, EncoderInfo
from tercet.models.representations import OUTPUTS, Output, Representations, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.service.encoding.options import DOCUMENTS, TextOptions
from tercet.service.encoding.service import EncodingService
from tercet.service.load.admission import Ticket
from tercet.service.load.deadlines import Deadline

ENTRY_BYTES = 2000  # of the objects around the arrays of one query


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
            found = self._entries.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return found[1]

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


class CachedQueries:
    """An `EncodingService` whose queries come from a cache where they are there."""

    def __init__(self, encoding: EncodingService, cache: QueryCache) -> None:
        """cache: may be shared by several encoders."""
        self._encoding = encoding
        self._cache = cache

    @property
    def info(self) -> EncoderInfo:
        return self._encoding.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoding.tokenizer

    @property
    def pending_tokens(self) -> int:
        return self._encoding.pending_tokens

    @property
    def slice_tokens(self) -> int:
        return self._encoding.slice_tokens

    async def info_of(self, adapter: str | None, collection: str | None = None) -> EncoderInfo:
        """As of the encoder itself."""
        return await self._encoding.info_of(adapter, collection)

    async def adapters(self) -> list[AdapterDescription]:
        """As of the encoder itself."""
        return await self._encoding.adapters()

    async def encode(
        self,
        texts: Sequence[str],
        options: TextOptions = DOCUMENTS,
        *,
        ticket: Ticket | None = None,
        tokens: TokenBatch | None = None,
    ) -> Representations:
        """Representations of at least one text, in order; only queries that are not kept are encoded."""
        keys: list[QueryKey] = []
        found: list[Representations | None] = []
        if options.input_type == "query":
            info = await self._encoding.info_of(options.adapter)
            given = tuple(output for output in OUTPUTS if output in options.outputs)
            scope = info.fingerprint, info.adapter, given, options.max_length, options.truncate
            keys = [QueryKey(*scope, text) for text in texts]
            found = [self._cache.get(key) for key in keys]
        known = [one for one in found if one is not None]
        if known and len(known) == len(texts):
            return Representations.concatenate(known)
        rows = [row for row, one in enumerate(found) if one is None]  # none of documents
        encoded = await self._encoding.encode(
            [texts[row] for row in rows] if known else texts,
            options,
            ticket=ticket,
            tokens=tokens.take(np.array(rows)) if known and tokens is not None else tokens,
        )
        for place, row in enumerate(rows):
            self._cache.put(keys[row], encoded.take(np.array([place])))
        return _in_order(found, rows, encoded) if known else encoded

    def wait_seconds(self, tokens: int) -> float:
        """As of the encoder itself."""
        return self._encoding.wait_seconds(tokens)

    def require_room(self, tokens: int, deadline: Deadline) -> None:
        """As of the encoder itself."""
        self._encoding.require_room(tokens, deadline)

    async def check(self) -> None:
        """As of the encoder itself."""
        await self._encoding.check()

    async def close(self) -> None:
        """Closes the encoder."""
        await self._encoding.close()


def _in_order(
    found: Sequence[Representations | None], rows: Sequence[int], encoded: Representations
) -> Representations:
    """The texts that were found with those of `rows` that were encoded."""
    known = [row for row, one in enumerate(found) if one is not None]
    parts = [*(one for one in found if one is not None), encoded]
    return Representations.concatenate(parts).take(np.argsort([*known, *rows]))
