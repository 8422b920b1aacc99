"""What a server has at a moment, as metrics: each is asked of its owner when they are read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from tercet.service.collections.data_root import DataRoot
from tercet.service.edge.ledger import Ledger
from tercet.service.exceptions import NotReadyError
from tercet.service.keys.key_file import KeyFile
from tercet.service.runtime import Runtime
from tercet.service.telemetry.metrics import threads

SHORT_QUERY_TOKENS = 16


def watch(runtime: Runtime, key_file: KeyFile | None, ledger: Ledger) -> None:
    """Has the metrics of a server ask for these whenever they are read."""
    telemetry, served, data_root = runtime.telemetry, runtime.served, runtime.data_root
    following, publishing = runtime.following, runtime.publishing
    telemetry.watch_number("tercet_queue_tokens", "Tokens accepted, not yet encoded.", runtime.pending_tokens)
    telemetry.watch(
        "tercet_encoder_queue_tokens", "The same of each open encoder.", "model", runtime.encoder_queues
    )
    cache = runtime.query_cache
    telemetry.watch_counts(
        "tercet_query_cache_lookups",
        "Queries that were asked of the cache of encoded queries.",
        "result",
        lambda: [("hit", cache.hits), ("miss", cache.misses)],
    )
    telemetry.watch_number("tercet_query_cache_bytes", "Memory of that cache.", lambda: cache.size_bytes)
    telemetry.watch(
        "tercet_followed_snapshot_age_seconds",
        "Since the snapshot of a followed collection was published.",
        "collection",
        lambda: [] if following is None else following.ages(),
    )
    telemetry.watch_number(
        "tercet_follow_silence_seconds",
        "Since it was last known that nothing newer is published.",
        lambda: math.nan if following is None else following.silence_seconds,
    )
    telemetry.watch(
        "tercet_publish_silence_seconds",
        "Since all that was written of a collection was last known to be published.",
        "collection",
        lambda: [] if publishing is None else publishing.silences(),
    )
    telemetry.watch_counts(
        "tercet_publish_failures",
        "Attempts to publish a collection that failed.",
        "collection",
        lambda: [] if publishing is None else publishing.failures(),
    )
    schedule = runtime.backup_schedule
    telemetry.watch_counts(
        "tercet_backup_failures",
        "Scheduled backups of a collection that failed.",
        "collection",
        lambda: [] if schedule is None else schedule.failures(),
    )
    telemetry.watch_number(
        "tercet_requests_let_in", "Requests whose answers have not begun.", lambda: runtime.gate.in_work
    )
    telemetry.watch(
        "tercet_predicted_wait_seconds",
        "Wait of a request that came now.",
        "kind",
        partial(_predicted_waits, runtime),
    )
    telemetry.writes.watch(runtime.collections.all_statistics)
    telemetry.watch("tercet_jobs", "Index-build jobs.", "state", partial(_job_counts, runtime))
    telemetry.watch("tercet_encoder_worker_up", "Workers in use.", "url", partial(_worker_states, runtime))
    telemetry.watch(
        "tercet_encoder_worker_in_flight",
        "Requests that wait for a worker.",
        "url",
        partial(_worker_loads, runtime),
    )
    telemetry.watch(
        "tercet_ready", "What /ready says: reads, writes.", "operation", lambda: runtime.readiness.items()
    )
    telemetry.watch(
        "tercet_open_collections", "Open collections.", "kind", lambda: runtime.collections.open_counts
    )
    telemetry.watch(
        "tercet_backup_age_seconds",
        "Since the last backup.",
        "collection",
        lambda: [] if served.backups is None else served.backups.ages(),
    )
    shards = served.shards
    telemetry.watch_number(
        "tercet_shard_map_version",
        "Of the map of shards in use.",
        lambda: 0 if shards is None else shards.map_version,
    )
    telemetry.watch_number(
        "tercet_data_free_bytes", "Of the data root's disk.", partial(_free_bytes, data_root)
    )
    telemetry.watch_number("tercet_threads", "Threads of the process.", threads)
    telemetry.watch_number(
        "tercet_keys_file_sound",
        "0: the file of keys is broken, and those of before are in use.",
        lambda: key_file is None or key_file.sound,
    )
    telemetry.watch_number(
        "tercet_bodies_bytes", "Bytes of bodies that are arriving or in work.", lambda: ledger.body_bytes
    )


def _job_counts(runtime: Runtime) -> Iterable[tuple[str, float]]:
    """Jobs by state."""
    services = runtime.services
    return [] if services is None else Counter(job.state for job in services.jobs.list()).items()


def _worker_states(runtime: Runtime) -> Iterable[tuple[str, float]]:
    """1 for each encoder worker that is used now, 0 for one that is down; none with an encoder here."""
    workers = runtime.workers
    return [] if workers is None else [(url, float(used)) for url, used in workers.states.items()]


def _worker_loads(runtime: Runtime) -> Iterable[tuple[str, float]]:
    """Requests that wait for each encoder worker; none with an encoder here."""
    return [] if runtime.workers is None else runtime.workers.in_flight.items()


def _free_bytes(data_root: DataRoot) -> float:
    """The free bytes of the data root's disk, by the last look at it."""
    free = data_root.last.free_bytes
    return math.nan if free is None else free


def _predicted_waits(runtime: Runtime) -> Iterable[tuple[str, float]]:
    """How long a short query, and a request of very many texts, would wait for their work to begin."""
    with suppress(NotReadyError):
        yield "documents", runtime.encoding.wait_seconds(runtime.settings.queue_tokens)
    if runtime.services is not None:
        waits = runtime.services.pipeline.wait_seconds(SHORT_QUERY_TOKENS), runtime.gate.search_seconds
        yield "query", max(waits)
    yield "loop", runtime.loop_delay.wait_seconds
