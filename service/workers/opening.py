"""The encoder of a server as its settings describe it: here, or workers elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tercet.models.encoder import Encoder
from tercet.service.encoding.query_cache import QueryCache
from tercet.service.encoding.service import EncodingService, LocalEncoding, local_encoder
from tercet.service.encoding.shelf import Opening
from tercet.service.load.admission import Admission
from tercet.service.load.pools import Pool
from tercet.service.load.repeating import patiently
from tercet.service.remote.transport import Transport
from tercet.service.settings.settings import Settings
from tercet.service.workers.telemetry import WorkerTelemetry

if TYPE_CHECKING:
    from tercet.service.workers.encoding import RemoteEncoding

ObserveBatch = Callable[[str, int, int, float], None]
"""Takes an encoder's name, and the texts, tokens and seconds of a batch."""


class EncoderOpening:
    """Opens encoders with what all of them share.

    workers: those elsewhere, once they answer; abandoned: whether the server ended while a thread loaded the
    encoder, and still does.
    """

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        cache: QueryCache | None,
        observe: ObserveBatch,
        worker_telemetry: WorkerTelemetry,
        pool: Pool,
        transport: Transport | None,
    ) -> None:
        """cache: of queries, None where none are to be kept; pool: where encoders are loaded; transport: how
        workers are reached, by default by HTTP.
        """
        self.workers: RemoteEncoding | None = None
        self.abandoned = False
        self._settings = settings
        self._admission = admission
        self._cache = cache
        self._observe = observe
        self._worker_telemetry = worker_telemetry
        self._pool = pool
        self._transport = transport

    async def own(self, encoder: Encoder | None) -> EncodingService:
        """The server's own encoder. Waits for workers that are not up yet. encoder: one that is loaded.

        Raises CheckpointError and other ModelError where a local encoder cannot be loaded.
        """
        settings = self._settings
        if encoder is not None:
            return self._local(encoder)
        if not settings.encoder_urls:
            try:
                return self._local(await self._pool.run(local_encoder, settings))
            except asyncio.CancelledError:
                self.abandoned = True
                raise
        # Imported only where encoders are elsewhere: its HTTP client loads much.
        from tercet.service.workers.encoding import RemoteEncoding

        self.workers = await patiently(
            lambda: RemoteEncoding.connect(
                settings.encoder_urls,
                settings.worker_access,
                self._worker_telemetry,
                self._transport,
                self._cache,
            )
        )
        return self.workers

    def others(self, checkpoints: Callable[[], Mapping[str, str]]) -> Opening | None:
        """How others than its own are opened; None where the encoder is elsewhere.

        checkpoints: those that collections need.
        """
        settings = self._settings
        if settings.encoder_urls:
            return None
        return Opening(
            lambda checkpoint: self._local(local_encoder(settings, checkpoint)),
            checkpoints,
            self._pool,
            settings.max_checkpoints,
        )

    def _local(self, encoder: Encoder) -> LocalEncoding:
        settings = self._settings
        return LocalEncoding(
            encoder,
            batch_tokens=settings.batch_tokens,
            queue_tokens=settings.queue_tokens,
            admission=self._admission,
            observe=partial(self._observe, encoder.info.name),
            stall_seconds=settings.stall_seconds,
            cache=self._cache,
        )
