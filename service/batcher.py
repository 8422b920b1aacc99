"""Gathers concurrent texts into batches under a token budget.

One task owns the queue. While a batch is encoded in a worker thread, requests gather; when it is done the
next batch starts at once, so an idle batcher never waits. Requests take turns, one text each, so a request of
a thousand texts does not hold up a request of one. Each caller gets its own result, or its batch's error.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.representations import OUTPUTS, Int64, Output, Representations, TokenBatch
from service.exceptions import NotReadyError, OverloadedError, RequestTooLargeError
from service.pools import Pool

Encode = Callable[[TokenBatch, Sequence[Output], Sequence[str | None]], Representations]
"""Tokens of texts, outputs, and the adapter of each text, to representations."""
Observe = Callable[[int, int, float], None]  # texts, tokens and seconds of an encoded batch


@dataclass(slots=True, eq=False)
class _Request:
    """One caller's texts, longest first so that batches pad little; `order` leads back."""

    tokens: TokenBatch
    lengths: list[int]
    order: Int64
    outputs: Sequence[Output]
    adapter: str | None
    answer: asyncio.Future[list[Representations]]
    taken: int = 0
    parts: list[Representations] = field(default_factory=list)

    @property
    def left(self) -> bool:
        """Whether some of its texts are in no batch yet."""
        return self.taken < len(self.lengths)

    def join(self) -> Representations:
        """All parts, in the caller's order."""
        return Representations.concatenate(self.parts).take(np.argsort(self.order, kind="stable"))


@dataclass(frozen=True, slots=True)
class _Slice:
    """Consecutive texts of one request within a batch."""

    request: _Request
    start: int
    stop: int


class Batcher:
    """Owns the queue of texts to encode; use from one event loop."""

    def __init__(
        self,
        encode: Encode,
        pool: Pool,
        *,
        batch_tokens: int,
        queue_tokens: int,
        observe: Observe | None = None,
    ) -> None:
        """pool: where answers of several batches are joined."""
        self._encode = encode
        self._pool = pool
        self._batch_tokens = batch_tokens
        self._queue_tokens = queue_tokens
        self._observe = observe
        self._waiting: deque[_Request] = deque()
        self._pending_tokens = 0
        self._tokens_per_second = 2000.0  # a cautious start; follows what is measured
        self._wake = asyncio.Event()
        self._closing = False
        self._thread = Pool("encoder", 1)
        self._owner: asyncio.Task[None] | None = None

    @property
    def pending_tokens(self) -> int:
        """Tokens accepted and not yet encoded."""
        return self._pending_tokens

    async def submit(
        self, tokens: TokenBatch, outputs: Sequence[Output] = OUTPUTS, adapter: str | None = None
    ) -> Representations:
        """Representations of at least one text, in order, all with one adapter or none.

        Raises RequestTooLargeError where the texts exceed the whole queue, OverloadedError where they do
        not fit now, NotReadyError while closing, and whatever the encoder raised for their batch.
        """
        if self._closing:
            raise NotReadyError("the server is shutting down; send the request again in a moment")
        self._admit(len(tokens.token_ids))
        order = np.argsort(-tokens.lengths, kind="stable")
        ordered = tokens.take(order)
        answer: asyncio.Future[list[Representations]] = asyncio.get_running_loop().create_future()
        request = _Request(ordered, ordered.lengths.tolist(), order, outputs, adapter, answer)
        self._pending_tokens += len(tokens.token_ids)
        self._waiting.append(request)
        self._wake.set()
        if self._owner is None or self._owner.done():
            self._owner = asyncio.create_task(self._run(), name="batcher")
        try:
            parts = await answer
        finally:
            self._drop(request)  # of use only where its client left or a batch of it failed
        return await self._pool.run(request.join) if len(parts) > 1 else request.join()

    async def close(self) -> None:
        """Finishes what was accepted, then ends."""
        self._closing = True
        self._wake.set()
        if self._owner is not None:
            await self._owner
        self._thread.close()

    def _admit(self, tokens: int) -> None:
        if tokens > self._queue_tokens:
            raise RequestTooLargeError(
                f"the request has {tokens} tokens and this server takes at most {self._queue_tokens} at once "
                "(setting queue_tokens): split the request, or shorten its texts with max_length"
            )
        excess_tokens = self._pending_tokens + tokens - self._queue_tokens
        if excess_tokens > 0:
            seconds = max(1, math.ceil(excess_tokens / self._tokens_per_second))
            raise OverloadedError(
                f"{self._pending_tokens} tokens wait already, the request has {tokens} and the limit is "
                f"{self._queue_tokens}: try again in {seconds} s",
                seconds,
            )

    def _drop(self, request: _Request) -> None:
        """Forgets the texts that are in no batch yet."""
        if request.left:
            self._waiting.remove(request)
            self._pending_tokens -= sum(request.lengths[request.taken :])
            request.taken = len(request.lengths)

    async def _run(self) -> None:
        try:
            while self._waiting or not self._closing:
                batch = self._next_batch()
                if batch:
                    await self._work(batch)
                elif not self._closing:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            for request in self._waiting:
                _fail(request, NotReadyError("the encoder's queue has ended"))

    def _next_batch(self) -> list[_Slice]:
        """Texts up to the token budget, one of each waiting request in turn, and at least one text."""
        first_rows: dict[_Request, int] = {}
        budget = self._batch_tokens
        while self._waiting:
            request = self._waiting[0]
            if request.answer.done():
                self._drop(request)
                continue
            length = request.lengths[request.taken]
            if length > budget and first_rows:
                break
            first_rows.setdefault(request, request.taken)
            request.taken += 1
            budget -= length
            self._waiting.popleft()
            if request.left:
                self._waiting.append(request)
        return [_Slice(request, first, request.taken) for request, first in first_rows.items()]

    async def _work(self, batch: list[_Slice]) -> None:
        """Encodes one batch and answers those whose last texts it held."""
        tokens = sum(sum(part.request.lengths[part.start : part.stop]) for part in batch)
        started = time.perf_counter()
        try:
            parts = await self._thread.run(self._encode_slices, batch)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, every waiter of this batch receives it
            # A panic of compiled code is no Exception, and would end whoever awaits it.
            known = error if isinstance(error, Exception) else RuntimeError(f"the encoder failed: {error!r}")
            for part in batch:
                _fail(part.request, known)
            return
        finally:
            self._pending_tokens -= tokens
        seconds = time.perf_counter() - started
        self._tokens_per_second += 0.2 * (tokens / max(seconds, 1e-6) - self._tokens_per_second)
        if self._observe is not None:
            self._observe(sum(part.stop - part.start for part in batch), tokens, seconds)
        for part, representations in zip(batch, parts, strict=True):
            part.request.parts.append(representations)
            if not part.request.left and not part.request.answer.done():
                part.request.answer.set_result(part.request.parts)

    def _encode_slices(self, batch: list[_Slice]) -> list[Representations]:
        """One encoder pass over all texts, cut back into the batch's slices."""
        rows = [np.arange(part.start, part.stop) for part in batch]
        tokens = [part.request.tokens.take(row) for part, row in zip(batch, rows, strict=True)]
        outputs = [output for output in OUTPUTS if any(output in part.request.outputs for part in batch)]
        adapters = [part.request.adapter for part, row in zip(batch, rows, strict=True) for _ in row]
        encoded = self._encode(TokenBatch.concatenate(tokens), outputs, adapters)
        starts = np.cumsum([0, *map(len, rows)])
        return [
            encoded.take(np.arange(start, start + len(row))).keep(part.request.outputs)
            for part, row, start in zip(batch, rows, starts, strict=False)
        ]


def _fail(request: _Request, error: Exception) -> None:
    if not request.answer.done():
        request.answer.set_exception(error)
