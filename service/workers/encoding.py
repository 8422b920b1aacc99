"""Encoding by workers over HTTP: balanced by load, a dead one skipped and tried again after a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count

import httpx

from models.adapters.library import unknown_adapter
from models.adapters.routers import FixedSettings, resolve, router_settings
from models.checkpoint import EncodingSettings
from models.encoder import AdapterDescription, EncoderInfo
from models.errors import (
    AdapterNotFoundError,
    AdapterNotServedError,
    AdapterUnusableError,
    EncoderUnavailableError,
    ModelError,
)
from models.representations import OUTPUTS, InputType, Output, Representations
from models.tokenizer import Tokenizer
from service.concurrency import all_of
from service.exceptions import OverloadedError, ServiceError
from service.pools import text_pool
from service.workers.worker import RemoteWorker

PIECE_TEXTS = 256  # a large request travels in pieces, so that all workers share it
PIECE_CHARACTERS = 1_000_000
WINDOW_TOKENS = 16_384  # of each worker


class RemoteEncoding:
    """Several workers with one checkpoint, used as one encoder. Use from one event loop."""

    def __init__(
        self,
        workers: list[RemoteWorker],
        client: httpx.AsyncClient,
        info: EncoderInfo,
        tokenizer: Tokenizer,
        adapters: Sequence[AdapterDescription],
    ) -> None:
        self._workers = workers
        self._client = client
        self._info = info
        self._tokenizer = tokenizer
        self._adapters = {adapter.name: adapter for adapter in adapters}
        self._turn = count()
        self._pool = text_pool()
        self.window_tokens = WINDOW_TOKENS * len(workers)

    @classmethod
    async def connect(
        cls,
        urls: Sequence[str],
        *,
        key: str | None = None,
        timeout_seconds: float = 60,
        retry_seconds: float = 5,
    ) -> RemoteEncoding:
        """Asks the workers, in order, what they are; the first that answers says what all must be.

        Raises EncoderUnavailableError where none gives an answer that can be used.
        """
        client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, 5)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,
        )
        workers = [RemoteWorker(url, client, retry_seconds) for url in urls]
        for worker in workers:
            try:
                answer = await worker.describe()
                settings = EncodingSettings.from_json(answer["encoding_settings"])
                tokenizer = Tokenizer.from_bytes(await worker.tokenizer_json(), settings)
                adapters = [AdapterDescription(**each) for each in answer.get("adapters", ())]
            except EncoderUnavailableError:
                continue
            except (KeyError, TypeError, ModelError, ServiceError) as error:
                worker.fail(f"it cannot be used ({type(error).__name__}: {error})")
                continue
            except BaseException:
                await client.aclose()
                raise
            return cls(workers, client, EncoderInfo(**answer["encoder"]), tokenizer, adapters)
        await client.aclose()
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

    @property
    def states(self) -> dict[str, bool]:
        """Whether each worker, by its address, is used now rather than left alone after a failure."""
        return {worker.url: not worker.down for worker in self._workers}

    async def encode(
        self,
        texts: Sequence[str],
        input_type: InputType = "document",
        outputs: Sequence[Output] = OUTPUTS,
        *,
        max_length: int | None = None,
        truncate: bool = True,
        adapter: str | None = None,
    ) -> Representations:
        """Representations of at least one text, in order."""
        info = await self.info_of(adapter)
        if not truncate:  # here, because a worker sees pieces and cannot say which text it is
            await self._pool.run(
                self._tokenizer.tokenize, texts, input_type, max_length=max_length, truncate=False
            )
        # No worker gets two pieces of one text list at once: they could fill its queue by themselves.
        free = asyncio.Semaphore(len(self._workers))

        async def encoded(piece: Sequence[str]) -> Representations:
            async with free:
                return await self._encode_piece(piece, input_type, outputs, max_length, truncate, info)

        parts = await all_of(encoded(piece) for piece in _pieces(texts))
        if len(parts) == 1:
            return parts[0]
        return await self._pool.run(Representations.concatenate, parts)

    async def check(self) -> None:
        """Asks one worker after another until one of our encoder answers. Raises EncoderUnavailableError."""
        for worker in self._by_load():
            with suppress(EncoderUnavailableError, ServiceError):
                answer = await worker.describe()
                worker.require_fingerprint(answer["encoder"]["fingerprint"], self._info.fingerprint)
                return
        raise _none_left(self._workers)

    async def close(self) -> None:
        await self._client.aclose()
        self._pool.close()

    async def _encode_piece(
        self,
        texts: Sequence[str],
        input_type: InputType,
        outputs: Sequence[Output],
        max_length: int | None,
        truncate: bool,
        info: EncoderInfo,
    ) -> Representations:
        """Asks one worker after another, each at most once, until one answers.

        info: the encoder, with its adapter, that the texts are for.
        """
        refusal: OverloadedError | AdapterNotFoundError | AdapterUnusableError | None = None
        for worker in self._by_load():
            try:
                return await worker.encode(texts, input_type, outputs, max_length, truncate, info)
            except EncoderUnavailableError:
                continue
            except (AdapterNotFoundError, AdapterUnusableError) as error:
                refusal = refusal or error
            except OverloadedError as error:  # what will pass comes before what will not
                refusal = error
        raise refusal or _none_left(self._workers)

    def _by_load(self) -> list[RemoteWorker]:
        """Workers that are up, least busy first; equally busy ones take turns."""
        up = [worker for worker in self._workers if not worker.down]
        turn = next(self._turn) % max(1, len(up))
        return sorted(up[turn:] + up[:turn], key=lambda worker: worker.in_flight)


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


def _none_left(workers: Sequence[RemoteWorker]) -> EncoderUnavailableError:
    faults = "; ".join(f"{worker.url}: {worker.fault or 'not asked yet'}" for worker in workers)
    return EncoderUnavailableError(f"no encoder worker answers ({faults})")
