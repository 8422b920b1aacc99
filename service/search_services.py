"""What a server has that searches, and an encoder worker has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tercet.service.collections.registry import CollectionRegistry
from tercet.service.collections.served import Served
from tercet.service.documents.writer import DocumentWriter
from tercet.service.encoding.rerankers import Rerankers
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.jobs.manager import JobManager
from tercet.service.load.admission import Admission, Ticket
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pools
from tercet.service.search.pipeline import SearchPipeline
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.metrics import Telemetry


@dataclass(frozen=True, slots=True)
class SearchServices:
    """They share the encoders and threads of their server. writer: None where nothing is written."""

    pipeline: SearchPipeline
    jobs: JobManager
    writer: DocumentWriter | None
    rerankers: Rerankers

    @staticmethod
    async def open(
        encoders: EncoderShelf,
        served: Served,
        own_collections: CollectionRegistry,
        settings: Settings,
        telemetry: Telemetry,
        pools: Pools,
        admission: Admission,
        ticket: Callable[[Deadline], Ticket],
    ) -> SearchServices:
        """Opens all of them. own_collections: what jobs build; ticket: gives that of a request in work."""
        jobs = JobManager(
            settings.data,
            own_collections,
            encoders,
            settings.encoder_environment | settings.ray_environment,
            pools.operations,
            telemetry.count_job,
            ray=settings.encodes_on_ray,
        )
        await jobs.start()
        rerankers = await pools.operations.run(Rerankers, settings, admission, telemetry.observe_batch)
        writes, tokens = served.writes, settings.max_write_tokens
        return SearchServices(
            SearchPipeline(encoders, rerankers, served.collections, pools.search, admission, ticket),
            jobs,
            None
            if writes is None
            else DocumentWriter(writes, encoders, pools, telemetry.writes, write_tokens=tokens),
            rerankers,
        )
