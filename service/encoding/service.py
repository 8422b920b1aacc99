"""What the service asks for representations: an encoder of this process, or workers elsewhere."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from tercet.models.encoder import (
    STATIC,
    AdapterDescription,
    Encoder,
    EncoderInfo,
    encode_tokens,
    with_adapter,
)
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.service.encoding.batcher import Batcher, Observe
from tercet.service.encoding.health import EncoderHealth
from tercet.service.encoding.options import DOCUMENTS, TextOptions
from tercet.service.encoding.query_cache import QueryCache
from tercet.service.exceptions import NotReadyError
from tercet.service.load.admission import ANY_WAIT, Admission, Ticket
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import text_pool
from tercet.service.settings.settings import Settings
from tercet.service.tracing.request import recorded

# Tokenized in half a millisecond; a busy server takes longer to begin work in a thread.
SHORT_CHARACTERS = 2000
BATCH_TOKENS = 2048  # by default of a batch; a query waits for the one in work
SLICE_BATCHES = 4  # enough texts at a time that those of a batch are of like length
PROBE_TEXT = "probe"
PROBE_SECONDS = 1.0
# Of kernels of our own, and of look-ups: no device and no other thread can stop them.
SURE_ENGINES = ("native", STATIC)
BYTES_PER_TOKEN = 4  # of UTF-8, about; English has more, other languages have about as many


def local_encoder(settings: Settings, checkpoint: str | None = None) -> Encoder:
    """The encoder of this process that the settings describe, or the encoder of another checkpoint.

    Raises CheckpointError and other ModelError.
    """
    return load_encoder(
        settings.checkpoint if checkpoint is None else checkpoint,
        settings.engine,
        revision=settings.revision if checkpoint is None else None,
        heads=settings.heads if checkpoint is None else None,
        mcls_every=settings.mcls_every if checkpoint is None else None,
        device=settings.device,
        threads=settings.threads,
        limit_tokens=settings.batch_tokens,
        precision=settings.precision,
        adapters=settings.adapters_folder,
        adapter_sessions=settings.adapter_sessions,
        export_cache=settings.export_cache_folder,
    )


class EncodingService(Protocol):
    """Encodes texts for many callers at once. Use from one event loop; `encode` also in a relay."""

    @property
    def info(self) -> EncoderInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def pending_tokens(self) -> int:
        """Tokens accepted here and not yet encoded."""
        ...

    @property
    def slice_tokens(self) -> int:
        """Tokens of one call that keep the encoder busy; more would only take memory."""
        ...

    async def info_of(self, adapter: str | None, collection: str | None = None) -> EncoderInfo:
        """What identifies the encoder with an adapter or router, or without one.

        Its `adapter` is the one that the name stands for, as a fixed router stands for its choice.
        collection: the one that is made or searched, if any, as a fixed router may choose by it.
        Raises AdapterNotFoundError, AdapterUnusableError or AdapterNotServedError.
        """
        ...

    async def adapters(self) -> list[AdapterDescription]:
        """All adapters and routers there are."""
        ...

    async def encode(
        self,
        texts: Sequence[str],
        options: TextOptions = DOCUMENTS,
        *,
        ticket: Ticket | None = None,
        tokens: TokenBatch | None = None,
    ) -> Representations:
        """Representations of at least one text, in order.

        ticket: of the request that this is for, by default a new one without a deadline. tokens: of these
        texts, by its tokenizer and so as the options say, where the caller has them.
        Raises TextTooLongError, OverloadedError, DeadlineExceededError, RequestTooLargeError,
        EncoderUnavailableError, and what `info_of` raises.
        """
        ...

    def wait_seconds(self, tokens: int) -> float:
        """How long texts of so many tokens would wait here if they came now."""
        ...

    def require_room(self, tokens: int, deadline: Deadline) -> None:
        """Raises what `encode` would where texts of so many tokens would wait too long here."""
        ...

    async def check(self) -> None:
        """Raises EncoderUnavailableError or NotReadyError where nothing is there that could encode now.

        Takes a moment at most.
        """
        ...

    async def close(self) -> None:
        """Finishes what was accepted and lets go of all resources."""
        ...


class LocalEncoding:
    """An encoder of this process behind a batcher."""

    def __init__(
        self,
        encoder: Encoder,
        *,
        batch_tokens: int | None = None,
        queue_tokens: int,
        admission: Admission = ANY_WAIT,
        observe: Observe | None = None,
        stall_seconds: float = math.inf,
        cache: QueryCache | None = None,
    ) -> None:
        """batch_tokens: by default BATCH_TOKENS, or what a pass of the encoder takes where that is more;
        stall_seconds: how long a batch may be in work before `check` says so. cache: of queries, shared by
        several encoders; by default none is kept.
        """
        self._encoder = encoder
        self._cache = cache
        self._health = EncoderHealth(stall_seconds)
        self._probe: asyncio.Task[Representations] | None = None
        self._pool = text_pool()
        batch_tokens = batch_tokens or max(BATCH_TOKENS, encoder.pass_tokens)
        self.slice_tokens = min(SLICE_BATCHES * batch_tokens, queue_tokens)
        self._batcher = Batcher(
            partial(encode_tokens, encoder),
            self._pool,
            batch_tokens=batch_tokens,
            queue_tokens=queue_tokens,
            admission=admission,
            observe=observe,
            health=self._health,
            encodes_here=encoder.info.engine in SURE_ENGINES,
        )

    @property
    def info(self) -> EncoderInfo:
        return self._encoder.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoder.tokenizer

    @property
    def pending_tokens(self) -> int:
        return self._batcher.pending_tokens

    async def info_of(self, adapter: str | None, collection: str | None = None) -> EncoderInfo:
        """What identifies the encoder with an adapter, which is read at its first use."""
        if adapter is None:
            return self._encoder.info
        return (await self._pool.run(with_adapter, self._encoder, adapter, collection)).info

    async def adapters(self) -> list[AdapterDescription]:
        """All adapters and routers there are."""
        return await self._pool.run(self._encoder.describe_adapters)

    async def encode(
        self,
        texts: Sequence[str],
        options: TextOptions = DOCUMENTS,
        *,
        ticket: Ticket | None = None,
        tokens: TokenBatch | None = None,
    ) -> Representations:
        """Representations of at least one text, in order; a query that is kept is not encoded again."""
        ticket = Ticket() if ticket is None else ticket
        # An adapter that cannot be used should fail no batch but its own.
        info = await self.info_of(options.adapter)
        encode = partial(self._encode, options, info, ticket)
        if self._cache is None or options.input_type != "query":
            return await encode(texts, tokens)
        return await self._cache.encode(texts, options, info, tokens, encode)

    async def _encode(
        self,
        options: TextOptions,
        info: EncoderInfo,
        ticket: Ticket,
        texts: Sequence[str],
        tokens: TokenBatch | None,
    ) -> Representations:
        """Representations by the encoder. info: with its adapter; tokens: where they are known."""
        tokenize = partial(options.tokenize, self._encoder.tokenizer, texts)
        if tokens is not None:
            pass
        elif sum(map(len, texts)) <= SHORT_CHARACTERS:
            with recorded("tokenize"):
                tokens = tokenize()
        else:
            if not ticket.admitted:  # before the work of tokenizing
                self.require_room(estimated_tokens(texts), ticket.deadline)
            with recorded("tokenize"):
                tokens = await self._pool.run(tokenize)
        return await self._batcher.submit(tokens, options.outputs, info.adapter, ticket)

    def wait_seconds(self, tokens: int) -> float:
        """How long texts of so many tokens would wait for the encoder if they came now."""
        return self._batcher.wait_seconds(tokens)

    def require_room(self, tokens: int, deadline: Deadline) -> None:
        """Raises OverloadedError or DeadlineExceededError where they would wait too long."""
        self._batcher.require_room(tokens, deadline)

    async def check(self) -> None:
        """Raises NotReadyError where batch after batch fails, or one does not end."""
        if self._health.failing:
            await self._try_again()
        if self._health.problem is not None:
            raise NotReadyError(self._health.problem)

    async def _try_again(self) -> None:
        """Encodes a short text: where no requests come, nothing else shows that the encoder works again.

        What takes longer than a moment is left to the next check.
        """
        if self._probe is None or self._probe.done():
            encoded = self._encode(TextOptions("query"), self.info, Ticket(), [PROBE_TEXT], None)  # not kept
            self._probe = asyncio.create_task(encoded, name="probe")
        done, _ = await asyncio.wait([self._probe], timeout=PROBE_SECONDS)
        for probe in done:
            probe.exception()  # it is in the encoder's record

    async def close(self) -> None:
        await self._batcher.close()
        self._pool.close()


def estimated_tokens(texts: Sequence[str]) -> int:
    """About how many tokens the texts have, without tokenizing them."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // BYTES_PER_TOKEN + len(texts)
