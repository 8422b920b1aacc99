"""Gathers concurrent texts into batches under a token budget.

While a batch is encoded in the encoder's thread, requests gather; its end begins the next one, so an idle
batcher never waits. `service/encoding/text_queue.py` says who comes next. Each caller gets its own result, or
its batch's error; a text too large for the memory, or one that comes out unsound, is its own caller's error.
A short text of a request that is alone is encoded where it is asked for: to hand it to a thread and back
would take a good part of its time.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

import numpy as np

from tercet.models.errors import EncoderMemoryError, UnsoundRepresentationsError
from tercet.models.representations import OUTPUTS, Output, Representations, TokenBatch
from tercet.service.encoding.health import EncoderHealth
from tercet.service.encoding.text_queue import QueuedCall, Slice, TextQueue
from tercet.service.exceptions import NotReadyError, OverloadedError, RequestTooLargeError
from tercet.service.load.admission import ANY_WAIT, Admission, Ticket, too_late
from tercet.service.load.clients import CLIENT, SHARE
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pace import Pace
from tercet.service.load.pools import Pool
from tercet.service.load.relay import Awaited, expiring
from tercet.service.tracing.request import record

BATCH_SHARE = 0.1  # of the longest wait that is promised, which one batch may take
LEAST_BATCH_TOKENS = 256  # fewer would cost more for each token
ALONE_SECONDS = 0.005  # of a pass that may hold the event loop, while nobody else is served
FIRST_TOKENS_PER_SECOND = 2000.0  # a cautious guess, until batches are measured

Encode = Callable[[TokenBatch, Sequence[Output], Sequence[str | None]], Representations]
"""Tokens of texts, outputs, and the adapter of each text, to representations."""
Observe = Callable[[int, int, float], None]  # texts, tokens and seconds of an encoded batch


class Batcher:
    """Owns the queue of texts to encode. Safe to use from any thread, on an event loop or in a relay."""

    def __init__(
        self,
        encode: Encode,
        pool: Pool,
        *,
        batch_tokens: int,
        queue_tokens: int,
        admission: Admission = ANY_WAIT,
        observe: Observe | None = None,
        health: EncoderHealth | None = None,
        encodes_here: bool = False,
    ) -> None:
        """pool: where answers of several batches are joined; admission: by default of any wait; health: where
        each batch is noted; encodes_here: whether `encode` may run in a caller's thread, on an event loop,
        too, as what never hangs may.
        """
        self._encode = encode
        self._pool = pool
        self._queue_tokens = queue_tokens
        self._admission = admission
        self._observe = observe
        self._health = EncoderHealth(math.inf) if health is None else health
        self._encodes_here = encodes_here
        self._lock = threading.Lock()  # of all below
        self._queue = TextQueue()
        self._batch_tokens = batch_tokens
        self._pace = Pace(FIRST_TOKENS_PER_SECOND)
        self._running_tokens = 0
        self._running_since = 0.0
        self._again: deque[list[Slice]] = deque()  # parts of a batch that failed for one of them
        self._work: Future[None] | None = None  # of the encoder's thread, until nothing waits
        self._closing = False
        self._thread = Pool("encoder", 1)

    @property
    def pending_tokens(self) -> int:
        """Tokens accepted and not yet encoded."""
        with self._lock:
            return self._pending_tokens()

    def wait_seconds(self, tokens: int) -> float:
        """How long a request of so many tokens would wait for others' texts if it came now."""
        with self._lock:
            return self._wait_seconds(tokens, CLIENT.get())

    def require_room(self, tokens: int, deadline: Deadline) -> None:
        """Raises as `submit` does where a request of so many tokens would wait too long."""
        self._admission.require(self.wait_seconds(tokens), deadline)

    async def submit(
        self,
        tokens: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapter: str | None = None,
        ticket: Ticket | None = None,
    ) -> Representations:
        """Representations of at least one text, in order, all with one adapter or none.

        Raises RequestTooLargeError where the texts exceed the whole queue, OverloadedError where they do
        not fit now or would wait too long, DeadlineExceededError where they still waited when time was over,
        NotReadyError while closing, and whatever the encoder raised for their batch.
        """
        ticket = Ticket() if ticket is None else ticket
        with self._lock:
            if self._closing:
                raise NotReadyError("the server is shutting down; send the request again in a moment")
            self._admit(len(tokens.token_ids), ticket)
            queued = time.monotonic()
            here = self._work is None and self._is_for_here(tokens, adapter, ticket)
            if here:
                self._work = Future()
                self._begin(len(tokens.token_ids))
            else:
                call = QueuedCall(tokens, outputs, adapter, ticket)
                self._queue.add(call)
                self._work = self._work or self._thread.submit(self._encode_all)
        if here:
            return self._encode_here(tokens, outputs, queued)
        try:
            with expiring(ticket.deadline, partial(self._expire, call)):
                parts = await Awaited(call.answer)
        finally:
            record("queue", queued, call.began)
            if call.began is not None:
                record("encode", call.began)
            with self._lock:
                self._queue.remove(call)  # of use only where its client left, or a batch of it failed
        return await self._pool.run(call.join) if len(parts) > 1 else call.join()

    async def close(self) -> None:
        """Finishes what was accepted, then ends."""
        with self._lock:
            self._closing = True
            work = self._work
        if work is not None:
            await Awaited(work, shared=True)
        self._thread.close()

    def _admit(self, tokens: int, ticket: Ticket) -> None:
        if tokens > self._queue_tokens:
            raise RequestTooLargeError(
                f"the request has {tokens} tokens and this server takes at most {self._queue_tokens} at once "
                "(setting queue_tokens): split the request, or shorten its texts with max_length"
            )
        if ticket.admitted:
            return
        pending_tokens = self._pending_tokens()
        excess_tokens = pending_tokens + tokens - self._queue_tokens
        own_tokens = self._queue.tokens_of(ticket.client)
        if excess_tokens > 0 or own_tokens > SHARE * (self._queue_tokens - pending_tokens):
            seconds = max(1, math.ceil(self._pace.seconds(excess_tokens if excess_tokens > 0 else tokens)))
            raise OverloadedError(
                f"{pending_tokens} tokens wait already, {own_tokens} of them this client's, the request has "
                f"{tokens} and the limit is {self._queue_tokens}, of which one client may have {SHARE} times "
                f"what is left: try again in {seconds} s",
                seconds,
                "queue",
            )
        wait_seconds = self._wait_seconds(tokens + ticket.later_tokens, ticket.client)
        self._admission.require(wait_seconds, ticket.deadline)
        ticket.admitted = True

    def _pending_tokens(self) -> int:
        return self._queue.tokens + self._running_tokens

    def _wait_seconds(self, tokens: int, client: str) -> float:
        ahead = self._queue.tokens_ahead(tokens, self._budget(), client)
        return self._seconds_left() + self._pace.seconds(ahead)

    def _expire(self, call: QueuedCall) -> None:
        """Drops a call whose time is over, unless all its texts are in work."""
        if call.left:
            call.fail(too_late(self.wait_seconds(call.request_tokens)))

    def _budget(self) -> int:
        """Tokens of the next batch; few of a slow encoder, since who comes waits for the one in work."""
        promised_seconds = self._admission.max_wait_seconds * BATCH_SHARE
        if promised_seconds == math.inf:
            return self._batch_tokens
        return min(self._batch_tokens, max(LEAST_BATCH_TOKENS, int(self._pace.units(promised_seconds))))

    def _seconds_left(self) -> float:
        """What the batch in work still takes. One that takes longer than expected may take as long again."""
        if not self._running_tokens:
            return 0.0
        elapsed, expected = time.monotonic() - self._running_since, self._pace.seconds(self._running_tokens)
        return expected - elapsed if elapsed < expected else elapsed

    def _encode_all(self) -> None:
        """Encodes batch after batch in the encoder's thread, until nothing waits."""
        while batch := self._next_batch():
            self._encode_batch(batch)

    def _is_for_here(self, tokens: TokenBatch, adapter: str | None, ticket: Ticket) -> bool:
        """Whether texts are encoded in their caller's thread: one batch, of little time, without others."""
        size = len(tokens.token_ids)
        return (
            self._encodes_here
            and ticket.alone
            and adapter is None  # its graph may have to be opened
            and size <= self._budget()
            and self._pace.seconds(size) <= ALONE_SECONDS
        )

    def _encode_here(self, tokens: TokenBatch, outputs: Sequence[Output], queued: float) -> Representations:
        """Encodes texts in this thread; what gathers meanwhile is left to the encoder's."""
        began = self._running_since
        record("queue", queued, began)
        try:
            encoded = self._encode(tokens, outputs, [None] * len(tokens))
            self._count(len(tokens))
            return encoded
        except BaseException as error:  # noqa: BLE001 - a panic of compiled code is no Exception
            self._health.ended(succeeded=False)
            raise _failure(error) from None
        finally:
            record("encode", began)
            with self._lock:
                self._running_tokens = 0
                work, self._work = self._work, None
                if len(self._queue):
                    self._work = self._thread.submit(self._encode_all)
            if work is not None:
                work.set_result(None)

    def _encode_batch(self, batch: list[Slice]) -> None:
        try:
            self._answer(batch, self._encode_slices(batch))
        except BaseException as error:  # noqa: BLE001 - a panic of compiled code is no Exception
            self._fail(batch, error)

    def _next_batch(self) -> list[Slice]:
        with self._lock:
            batch = self._again.popleft() if self._again else self._queue.next_batch(self._budget())
            if not batch:
                self._work = None
                return batch
            self._begin(sum(part.tokens for part in batch))
            for part in batch:
                part.call.began = part.call.began or self._running_since
        return batch

    def _begin(self, tokens: int) -> None:
        self._running_tokens = tokens
        self._running_since = time.monotonic()
        self._health.begun()

    def _answer(self, batch: list[Slice], encoded: list[Representations]) -> None:
        """Answers the calls whose last texts the batch held."""
        self._count(sum(part.stop - part.start for part in batch))
        for part, representations in zip(batch, encoded, strict=True):
            part.call.add(representations)

    def _count(self, texts: int) -> None:
        """Notes that what is in work has been encoded."""
        self._health.ended(succeeded=True)
        with self._lock:
            tokens, seconds = self._running_tokens, time.monotonic() - self._running_since
            self._pace.observe(tokens, seconds)
            self._running_tokens = 0
        if self._observe is not None:
            self._observe(texts, tokens, seconds)

    def _fail(self, batch: list[Slice], error: BaseException) -> None:
        """Answers everyone in the batch, unless it may have failed for one of them alone."""
        self._health.ended(succeeded=False)
        with self._lock:
            self._running_tokens = 0
            if isinstance(error, EncoderMemoryError | UnsoundRepresentationsError) and len(batch) > 1:
                self._again.extend([part] for part in batch)
                return
        failure = _failure(error)
        for part in batch:
            part.call.fail(failure)

    def _encode_slices(self, batch: list[Slice]) -> list[Representations]:
        """One encoder pass over all texts, cut back into the batch's slices."""
        if len(batch) == 1 and batch[0].whole:  # most often a query
            call = batch[0].call
            return [self._encode(call.tokens, call.outputs, [call.adapter] * len(call.tokens))]
        rows = [np.arange(part.start, part.stop) for part in batch]
        tokens = [part.call.tokens.take(row) for part, row in zip(batch, rows, strict=True)]
        outputs = [output for output in OUTPUTS if any(output in part.call.outputs for part in batch)]
        adapters = [part.call.adapter for part, row in zip(batch, rows, strict=True) for _ in row]
        encoded = self._encode(TokenBatch.concatenate(tokens), outputs, adapters)
        starts = np.cumsum([0, *map(len, rows)])
        return [
            encoded.take(np.arange(start, start + len(row))).keep(part.call.outputs)
            for part, row, start in zip(batch, rows, starts, strict=False)
        ]


def _failure(error: BaseException) -> Exception:
    """What is no Exception would end whoever awaits it."""
    return error if isinstance(error, Exception) else RuntimeError(f"the encoder failed: {error!r}")
