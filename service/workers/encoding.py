"""Encoding by workers over HTTP: balanced by load; what one worker cannot answer, another is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from tercet.models.adapters.library import unknown_adapter
from tercet.models.adapters.routers import FixedSettings, resolve, router_settings
from tercet.models.encoder import AdapterDescription, EncoderInfo
from tercet.models.errors import (
    AdapterNotFoundError,
    AdapterNotServedError,
    AdapterUnusableError,
    EncoderFailedError,
    EncoderMemoryError,
    EncoderUnavailableError,
)
from tercet.models.representations import Representations, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.service.encoding.options import DOCUMENTS, TextOptions
from tercet.service.encoding.query_cache import QueryCache
from tercet.service.exceptions import CallFailedError, OverloadedError
from tercet.service.load.admission import Ticket
from tercet.service.load.concurrency import all_of
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool, text_pool
from tercet.service.load.relay import on_loop
from tercet.service.remote.circuit import ServerState
from tercet.service.remote.http import HttpConnections, HttpTransport
from tercet.service.remote.transport import Transport
from tercet.service.settings.settings import WorkerAccess
from tercet.service.workers.telemetry import WorkerObserver
from tercet.service.workers.worker import RemoteWorker

PIECE_TEXTS = 256  # a large request travels in pieces, so that all workers share it
PIECE_CHARACTERS = 1_000_000
SLICE_TOKENS = 16_384  # of each worker

# What one worker may answer and another not, with the one to tell first where several were answered.
REFUSALS = (
    OverloadedError,
    AdapterNotFoundError,
    AdapterUnusableError,
    EncoderMemoryError,
    EncoderFailedError,
)


class RemoteEncoding:
    """Several workers with one checkpoint, used as one encoder. Use from one event loop."""

    def __init__(
        self,
        workers: list[RemoteWorker],
        connections: HttpConnections,
        info: EncoderInfo,
        tokenizer: Tokenizer,
        adapters: Sequence[AdapterDescription],
        pool: Pool,
        observer: WorkerObserver,
        cache: QueryCache | None,
    ) -> None:
        self._workers = workers
        self._observer = observer
        self._connections = connections
        self._info = info
        self._tokenizer = tokenizer
        self._adapters = {adapter.name: adapter for adapter in adapters}
        self._turn = count()
        self._pool = pool
        self._cache = cache
        self.slice_tokens = SLICE_TOKENS * len(workers)
        for worker in workers:
            worker.server.begin_probes()

    @classmethod
    async def connect(
        cls,
        urls: Sequence[str],
        access: WorkerAccess,
        observer: WorkerObserver | None = None,
        transport: Transport | None = None,
        cache: QueryCache | None = None,
    ) -> RemoteEncoding:
        """Asks the workers, in order, what they are; the first that answers says what all must be.

        observer: is told how each fares; transport: the way to all of them, by default HTTP to each; cache:
        of queries, by default none is kept.
        Raises EncoderUnavailableError where none gives an answer that can be used.
        """
        connections, pool = HttpConnections(access.key), text_pool()
        transports = [transport] if transport else [HttpTransport(url, connections) for url in urls]
        workers = [RemoteWorker(way, access, pool, connections.probes) for way in transports]
        observer = observer or WorkerObserver()
        for worker in workers:
            observer.known(worker.url)
        try:
            return await cls._of_first(workers, connections, pool, observer, cache)
        except BaseException:
            await connections.close()
            pool.close()
            raise

    @classmethod
    async def _of_first(
        cls,
        workers: list[RemoteWorker],
        connections: HttpConnections,
        pool: Pool,
        observer: WorkerObserver,
        cache: QueryCache | None,
    ) -> RemoteEncoding:
        for worker in workers:
            try:
                description = await worker.describe()
                tokenizer = await worker.tokenizer(description)
            except (EncoderUnavailableError, CallFailedError) as error:
                worker.server.circuit.fault = str(error)
                continue
            for other in workers:
                other.require(description.info.fingerprint)
            await asyncio.gather(*(other.server.probe() for other in workers))
            return cls(
                workers, connections, description.info, tokenizer, description.adapters, pool, observer, cache
            )
        raise _none_left(workers)

    @property
    def info(self) -> EncoderInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """As `Encoder.resolve_adapter`, by what the first worker told of its fixed routers."""

        def fixed(plain: str) -> FixedSettings | None:
            described = self._adapters.get(plain)
            if described is None or described.kind != FixedSettings.kind:
                return None
            settings = router_settings(described.kind, described.router or {})
            return settings if isinstance(settings, FixedSettings) else None

        return resolve(name, collection, fixed)

    async def info_of(self, adapter: str | None, collection: str | None = None) -> EncoderInfo:
        """What identifies the encoder with an adapter, as the first worker told when this connected."""
        adapter = None if adapter is None else self.resolve_adapter(adapter, collection)
        if adapter is None:
            return self._info
        if adapter not in self._adapters:
            raise unknown_adapter(adapter, tuple(self._adapters))
        described = self._adapters[adapter]
        if described.fingerprint is None:
            raise AdapterNotServedError(f"adapter {adapter!r} cannot be used: {described.problem}")
        return replace(self._info, fingerprint=described.fingerprint, adapter=adapter)

    async def adapters(self) -> list[AdapterDescription]:
        """The adapters of the first worker that answered when this connected."""
        return list(self._adapters.values())

    @property
    def pending_tokens(self) -> int:
        """Always 0: the workers hold the queues."""
        return 0

    def wait_seconds(self, tokens: int) -> float:
        """Always 0: the workers hold the queues, and refuse what would wait too long."""
        return 0.0

    def require_room(self, tokens: int, deadline: Deadline) -> None:
        """Always: the workers refuse what would wait too long."""

    @property
    def in_flight(self) -> dict[str, int]:
        """Requests that wait for each worker's answer, by its address."""
        return {worker.url: worker.server.in_flight for worker in self._workers}

    @property
    def states(self) -> dict[str, bool]:
        """Whether each worker, by its address, is used now."""
        return {worker.url: worker.server.circuit.state is not ServerState.DOWN for worker in self._workers}

    async def encode(
        self,
        texts: Sequence[str],
        options: TextOptions = DOCUMENTS,
        *,
        ticket: Ticket | None = None,
        tokens: TokenBatch | None = None,
    ) -> Representations:
        """Representations of at least one text, in order; a query that is kept is not encoded again."""
        info = await self.info_of(options.adapter)
        encode = partial(self._encode, options, info, NO_DEADLINE if ticket is None else ticket.deadline)
        if self._cache is None or options.input_type != "query":
            return await encode(texts, tokens)
        return await self._cache.encode(texts, options, info, tokens, encode)

    async def _encode(
        self,
        options: TextOptions,
        info: EncoderInfo,
        deadline: Deadline,
        texts: Sequence[str],
        _tokens: TokenBatch | None,
    ) -> Representations:
        """Representations by the workers, which take texts, and no tokens."""
        # Here, since a worker's 422 could not be told from one for what was made of the request.
        self._tokenizer.length_limit(options.max_length, options.input_type)
        if not options.truncate:  # here, because a worker sees pieces and cannot say which text it is
            await self._pool.run(options.tokenize, self._tokenizer, texts)
        # No worker gets two pieces of one text list at once: they could fill its queue by themselves.
        free = asyncio.Semaphore(len(self._workers))

        async def encoded(piece: Sequence[str]) -> Representations:
            async with free:
                return await self._encode_piece(piece, options, info, deadline)

        parts = await on_loop(all_of(encoded(piece) for piece in _pieces(texts)))
        if len(parts) == 1:
            return parts[0]
        return await self._pool.run(Representations.concatenate, parts)

    async def check(self) -> None:
        """Raises EncoderUnavailableError where no worker is used now."""
        if not any(self.states.values()):
            raise _none_left(self._workers)

    async def close(self) -> None:
        await self._connections.close()
        self._pool.close()

    async def _encode_piece(
        self, texts: Sequence[str], options: TextOptions, info: EncoderInfo, deadline: Deadline
    ) -> Representations:
        """Asks one worker after another, each at most once, until one answers with representations.

        info: the encoder, with its adapter, that the texts are for; deadline: for it to begin.
        """
        tried: list[RemoteWorker] = []
        refusals: list[Exception] = []
        while worker := self._next_worker(tried):
            tried.append(worker)
            began = time.monotonic()
            try:
                representations = await worker.encode(texts, options, info, deadline)
            except Exception as error:
                self._observer.refused(worker.url, error)
                if isinstance(error, REFUSALS):
                    refusals.append(error)
                elif not isinstance(error, EncoderUnavailableError | CallFailedError):
                    raise
            else:
                self._observer.answered(worker.url, time.monotonic() - began)
                return representations
        # What will pass soonest comes before what another try may not help.
        raise min(refusals, key=_patience, default=_none_left(self._workers))

    def _next_worker(self, tried: Sequence[RemoteWorker]) -> RemoteWorker | None:
        """Of the workers not asked yet one that is up, or else one that may be; the least busy of these.

        Equally busy ones take turns.
        """
        used = [worker for worker in self._workers if worker.server.circuit.state is not ServerState.DOWN]
        turn = next(self._turn) % max(1, len(used))
        return min(
            (worker for worker in used[turn:] + used[:turn] if worker not in tried),
            key=lambda worker: (worker.server.circuit.state is not ServerState.UP, worker.server.in_flight),
            default=None,
        )


def _pieces(texts: Sequence[str]) -> list[Sequence[str]]:
    """Consecutive texts in pieces of bounded count and size; a longer text is a piece of its own."""
    pieces: list[Sequence[str]] = []
    start = characters = 0
    for position, text in enumerate(texts):
        full = position - start == PIECE_TEXTS or characters + len(text) > PIECE_CHARACTERS
        if full and position > start:
            pieces.append(texts[start:position])
            start, characters = position, 0
        characters += len(text)
    pieces.append(texts[start:])
    return pieces


def _patience(refusal: Exception) -> tuple[int, float]:
    """Orders refusals as REFUSALS, those of overload by how soon there should be room."""
    kind = next(rank for rank, kind in enumerate(REFUSALS) if isinstance(refusal, kind))
    return kind, refusal.retry_after_seconds if isinstance(refusal, OverloadedError) else 0


def _none_left(workers: Sequence[RemoteWorker]) -> EncoderUnavailableError:
    faults = "; ".join(
        f"{worker.url}: {worker.server.circuit.fault or 'it failed a moment ago'}" for worker in workers
    )
    return EncoderUnavailableError(f"no encoder worker answers ({faults})")
