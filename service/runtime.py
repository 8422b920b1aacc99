"""What one server holds while it runs: encoder, collections, jobs; how it opens and closes them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tercet.models.encoder import Encoder
from tercet.models.errors import EncoderUnavailableError
from tercet.service.collections.data_root import LOOK_SECONDS, DataRoot, WriteState
from tercet.service.collections.live import LiveOptions
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.collections.served import Backups, Served, ServedCollections, Writes
from tercet.service.copies.backups import CollectionBackups
from tercet.service.copies.following import Following
from tercet.service.copies.schedule import BACKUP_LOOK_SECONDS, BackupSchedule
from tercet.service.documents.writer import DocumentWriter
from tercet.service.encoding.query_cache import QueryCache
from tercet.service.encoding.service import EncodingService
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.exceptions import ForbiddenError, NotReadyError
from tercet.service.jobs.manager import JobManager
from tercet.service.load.admission import Admission, Ticket
from tercet.service.load.deadlines import Deadline
from tercet.service.load.gate import Gate
from tercet.service.load.loop import LoopDelay
from tercet.service.load.pools import Pools
from tercet.service.load.repeating import for_ever, patiently
from tercet.service.runtime_parts import RuntimeParts
from tercet.service.search.pipeline import SearchPipeline
from tercet.service.search_services import SearchServices
from tercet.service.settings.settings import Settings
from tercet.service.shard.moves import ShardMoves
from tercet.service.shard.serving import ShardServing
from tercet.service.telemetry.metrics import Telemetry
from tercet.service.tracing.tracing import Tracing
from tercet.service.workers.opening import EncoderOpening

if TYPE_CHECKING:
    from tercet.service.workers.encoding import RemoteEncoding

WARM_UP_TEXT = "warm up"
LEASE_SIGNS = 4  # of life in the time after which a server without one is taken for dead
RELEASE_SECONDS = 10.0  # between two looks for collections that other processes removed

log = logging.getLogger("tercet")


class Runtime:
    """Opens everything in the background, so that `/health` answers while the encoder loads.

    `opened`, where set, is called once when everything is open; `failed` when that cannot be, and `failure`
    says why.
    `takes_over` is true where a server that followed ended as it is to write from now on.
    `abandoned` is true where the server ended while a thread loaded the encoder, or encoded a batch without
    end: it still does.
    """

    def __init__(
        self,
        settings: Settings,
        telemetry: Telemetry,
        *,
        searches: bool,
        encoder: Encoder | None = None,
        tracing: Tracing | None = None,
        **parts: Unpack[RuntimeParts],
    ) -> None:
        """searches: false for an encoder worker; encoder: one that is loaded already; tracing: by default
        none.
        """
        self.settings = settings
        self.telemetry = telemetry
        self.tracing = Tracing() if tracing is None else tracing
        # What one request may ask for. An encoder worker takes texts of any length that a body holds: its
        # search node has checked those of requests, and documents may be longer.
        limits = settings.request_limits
        self.limits = limits if searches else replace(limits, characters=settings.max_body_bytes)
        self.own_collections = CollectionRegistry(
            settings.data / "collections",
            LiveOptions(settings.live_limits, telemetry.writes, settings.dense_device, parts.get("ledgers")),
        )
        self.own_backups = CollectionBackups(self.own_collections, settings.data / "backups")
        own = Served(self.own_collections, self.own_collections, self.own_backups, builds=True)
        self.served = parts.get("served") or own
        self.collections = self.served.collections
        self.opened: Callable[[], None] | None = None
        self.failed: Callable[[], None] | None = None
        self.failure: Exception | None = None
        self.abandoned = False
        self.takes_over = False
        self.lease = parts.get("lease")
        self._searches = searches
        self.data_root = DataRoot(settings.data)
        self._root_was_asked = asyncio.Event()
        self.pools = Pools.open(self.collections.search_threads)
        self.loop_delay = LoopDelay(telemetry.observe_loop)
        self.query_cache = QueryCache(settings.query_cache_bytes)
        self.shard = ShardServing()
        self.moves = ShardMoves(self.own_collections, parts.get("moving"))
        self._admission = Admission(settings.max_wait_seconds, self.loop_delay)
        self.gate = Gate(
            self.loop_delay, settings.max_wait_seconds, self._admission, self._least_encoder_wait_seconds
        )
        self._encoder = encoder
        self._encoders: EncoderShelf | None = None
        self._opening_encoder = EncoderOpening(
            settings,
            self._admission,
            self.query_cache if settings.query_cache_bytes else None,
            telemetry.observe_batch,
            telemetry.workers,
            self.pools.operations,
            parts.get("worker_transport"),
        )
        self.services: SearchServices | None = None
        self._ready = False
        self._draining = False
        self._opening: asyncio.Task[None] | None = None
        self._looks: list[asyncio.Task[None]] = []
        self.following = parts.get("following")
        self._has_followed = asyncio.Event()
        self.publishing = parts.get("publishing")
        self.backup_schedule: BackupSchedule | None = None
        if settings.backup_hours is not None:
            every_seconds = 3600 * settings.backup_hours
            self.backup_schedule = BackupSchedule(self.own_backups, every_seconds, settings.backup_keep)
        self.readiness = {"reads": 0.0, **({"writes": 0.0} if searches else {})}

    @property
    def scratch(self) -> Path | None:
        """Where what takes too much memory may wait: the data root, or None for the system's own folder.

        A container's folder for temporary files is often memory; an encoder worker may have no data root.
        """
        return self.settings.data if os.access(self.settings.data, os.W_OK | os.X_OK) else None

    @property
    def encoders(self) -> EncoderShelf:
        """The server's own encoder and others. Raises NotReadyError while its own loads."""
        if self._encoders is None:
            raise NotReadyError("the encoder is still loading; ask /ready when it is done")
        return self._encoders

    @property
    def encoding(self) -> EncodingService:
        """The server's own encoder. Raises NotReadyError while it loads."""
        return self.encoders.own

    @property
    def workers(self) -> RemoteEncoding | None:
        """The encoder workers that are used; None before they answer, and with an encoder here."""
        return self._opening_encoder.workers

    @property
    def pipeline(self) -> SearchPipeline:
        """The search pipeline. Raises NotReadyError while the encoder loads."""
        return self._search_services().pipeline

    @property
    def jobs(self) -> JobManager:
        """The jobs. Raises NotReadyError while the encoder loads."""
        return self._search_services().jobs

    @property
    def writer(self) -> DocumentWriter:
        """Writes documents. Raises NotReadyError while the encoder loads."""
        return self.served.offered(self._search_services().writer, "writing")

    @property
    def readable(self) -> ServedCollections:
        """The collections with all that was written. Raises NotReadyError until the ledgers are read."""
        self.require_open()
        return self.collections

    def writes(self, what: str = "writing") -> Writes:
        """The collections, to be written to. what: they are wanted for, in words; raises where this kind of
        server does not offer it.
        """
        return self.served.offered(self.served.writes, what)

    def backups(self, what: str) -> Backups:
        """The backups of collections; as `writes`. Raises NotReadyError until the ledgers are read."""
        self.require_open()
        return self.served.offered(self.served.backups, what)

    def require_open(self) -> None:
        """Raises NotReadyError until the encoder is loaded and the ledgers are read."""
        self._search_services()

    def require_writable(self) -> None:
        """Raises ForbiddenError where collections are followed."""
        if self.following is not None:
            raise ForbiddenError(
                "this server follows snapshots that are published elsewhere, and changes nothing: ask the "
                "server that publishes them",
                "read_only_server",
            )

    def ticket(self, deadline: Deadline) -> Ticket:
        """The ticket of a request that is in work from now on."""
        return Ticket(deadline, alone=self.gate.in_work == 1)

    async def start(self) -> None:
        """Begins to open everything; `ready` tells when that is done. It has the data root by then, or has
        failed.
        """
        if self.served.shards is not None:
            await self.served.shards.start()
        self._opening = asyncio.create_task(self._open(), name="opening")
        await self._root_was_asked.wait()  # a server that it is refused does not say that it listens
        self.loop_delay.start()
        self._look_for_ever("a look for removed collections", self._release_superseded, RELEASE_SECONDS)
        if self.lease is not None:
            self._look_for_ever("a look at the lease", self._keep_lease, self.lease.seconds / LEASE_SIGNS)
        self._look_for_ever("a look at readiness", self._note_readiness, LOOK_SECONDS)

    def listens_at(self, url: str) -> None:
        """Tells commands that meet the data root where its server is."""
        if self._searches:
            self.data_root.tell_address(url)

    async def ready(self) -> WriteState | None:
        """What writes have; None where nothing is written here.

        Raises NotReadyError before the encoder is warm, while it fails or hangs, and near the end; the same
        where the data root cannot be read, or where writes are required and it cannot be written to.
        Raises EncoderUnavailableError where the encoder is elsewhere and no worker answers.
        """
        if self._draining:
            raise NotReadyError("this server is about to end; ask another one")
        if self.failure is not None:
            raise NotReadyError("the server cannot start; its log says why")
        if not self._ready:
            raise NotReadyError("the encoder is still loading; ask again in a moment")
        await self.encoding.check()
        if not self._searches:
            return None
        if self.settings.ready_requires == "writes":
            self.data_root.require_writes()
        if self.following is not None or not (self.lease is None or self.lease.is_held):
            return "elsewhere"
        return self.data_root.writes()

    def drain(self) -> None:
        """From now on the server is not ready, since its end is near; it serves as before."""
        self._draining = True

    async def stop(self) -> None:
        """Finishes what was accepted and closes everything."""
        background = [*self._looks, *([] if self._opening is None else [self._opening])]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        if self.services is not None:
            await self.services.jobs.stop()
        self.abandoned |= self._opening_encoder.abandoned
        if self._encoders is not None:
            self.abandoned |= self._encoders.loading
            closing = [self._encoders.close()]
            if self.services is not None:
                self.abandoned |= self.services.rerankers.loading
                closing.append(self.services.rerankers.close())
            try:
                await asyncio.wait_for(asyncio.gather(*closing), self.settings.shutdown_seconds)
            except TimeoutError:
                log.error("the encoder does not end; it is left behind")
                self.abandoned = True
        for snapshots in (self.following, self.publishing):
            if snapshots is not None:
                await self.pools.operations.run(snapshots.close)
        if self.served.shards is not None:
            await self.served.shards.stop()
        await self.pools.operations.run(self.collections.close)
        await self.pools.operations.run(self.tracing.close)
        self.loop_delay.stop()
        self.data_root.release()
        self.pools.close()

    def pending_tokens(self) -> float:
        """Tokens accepted and not yet encoded."""
        return sum(tokens for _, tokens in self.encoder_queues())

    def encoder_queues(self) -> Iterable[tuple[str, float]]:
        """Tokens accepted and not yet encoded, by encoder, of all that are open."""
        return [] if self._encoders is None else self._encoders.pending_tokens()

    def _least_encoder_wait_seconds(self) -> float:
        """How long the shortest text would wait, whichever encoder's it is."""
        return 0.0 if self._encoders is None else self._encoders.wait_seconds(1)

    def _search_services(self) -> SearchServices:
        if self.services is None:
            raise NotReadyError("the encoder is still loading; ask /ready when it is done")
        return self.services

    async def _keep_lease(self) -> None:
        """Gives a sign of life. Has a server that follows end where it is to write."""
        assert self.lease is not None  # noqa: S101 - else nobody calls this
        if self.services is None and self.following is None:
            return  # it cannot write yet
        is_held = await self.pools.lease.run(self.lease.keep)
        if is_held and self.following is not None and not self.takes_over:
            log.warning("the server that wrote gives no sign of life; this one takes over")
            self.takes_over = True
            if self.failed is not None:
                self.failed()

    async def _release_superseded(self) -> None:
        """Nothing is held before all is open."""
        if self.services is not None:
            await self.pools.operations.run(self.collections.release_superseded)

    async def _note_readiness(self) -> None:
        """For metrics, since they cannot wait for it."""
        try:
            writes = await self.ready()
            sound = writes in ("ready", "elsewhere")
            self.readiness = {"reads": 1.0, **({} if writes is None else {"writes": float(sound)})}
        except (NotReadyError, EncoderUnavailableError):
            self.readiness = dict.fromkeys(self.readiness, 0.0)

    async def _follow(self, following: Following) -> None:
        try:
            await self.pools.snapshots.run(following.look, self.own_collections)
        finally:
            if following.ready:
                self._has_followed.set()

    def _look_for_ever(self, name: str, look: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Until the end of the server."""
        self._looks.append(asyncio.create_task(for_ever(name, look, seconds), name=name))

    async def _open(self) -> None:
        try:
            try:
                if self._searches:
                    await self.pools.readiness.run(self.data_root.hold)
            finally:
                self._root_was_asked.set()
            if self._searches:
                if self.following is not None:
                    look = partial(self._follow, self.following)
                    self._look_for_ever("a look for newer snapshots", look, self.settings.follow_seconds)
                look = partial(self.pools.readiness.run, self.data_root.look)
                self._look_for_ever("a look at the data root", look, LOOK_SECONDS)
                written = asyncio.ensure_future(self.pools.operations.run(self.collections.open_written))
            encoding = await self._opening_encoder.own(self._encoder)
            # A worker's search nodes expect one encoder.
            others = self._opening_encoder.others(self.collections.checkpoints) if self._searches else None
            self._encoders = encoders = EncoderShelf(encoding, others)
            await patiently(lambda: encoding.encode([WARM_UP_TEXT]))
            if self._searches:
                await written
                if self.following is not None:
                    await self._has_followed.wait()
                self.services = await SearchServices.open(
                    encoders,
                    self.served,
                    self.own_collections,
                    self.settings,
                    self.telemetry,
                    self.pools,
                    self._admission,
                    self.ticket,
                )
                if self.lease is not None:
                    await self._keep_lease()  # a writer that was replaced says so from the first
                if self.publishing is not None:
                    look = partial(self.pools.snapshots.run, self.publishing.look, self.own_collections)
                    self._look_for_ever("a look for what to publish", look, self.settings.publish_seconds)
                if self.backup_schedule is not None:
                    look = partial(self.pools.snapshots.run, self.backup_schedule.look, self.own_collections)
                    self._look_for_ever("a look for what to back up", look, BACKUP_LOOK_SECONDS)
            if self.opened is not None:
                self.opened()
            self._ready = True
            info = encoding.info
            log.info("ready: encoder %s, engine %s, fingerprint %s", info.name, info.engine, info.fingerprint)
        except Exception as error:  # noqa: BLE001 - whatever it is, the server must not wait for ever
            log.error("cannot start: %s", error)
            self.failure = error
            if self.failed is not None:
                self.failed()
