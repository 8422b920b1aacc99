"""Metrics of writes to live collections, and of what these do in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

from tercet.index.live.records import LiveObserver, WriteStage
from tercet.index.live.statistics import CollectionCounts

WriteKind = Literal["put", "delete", "patch"]

WRITE_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
UPKEEP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)


class WriteTelemetry(LiveObserver):
    """Counts and times what all collections do. Safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._writes = Counter(
            "tercet_writes", "Writes to collections: put, delete, patch.", ["kind"], registry=registry
        )
        self._written = Counter("tercet_documents_written", "Documents put or patched.", registry=registry)
        self._deleted = Counter("tercet_documents_deleted", "Documents deleted.", registry=registry)
        self._write_seconds = Histogram(
            "tercet_write_seconds",
            "Time of each stage of writes: encode, log, apply.",
            ["stage"],
            buckets=WRITE_SECONDS,
            registry=registry,
        )
        self._flush_seconds = Histogram(
            "tercet_flush_seconds", "Time of a flush.", buckets=UPKEEP_SECONDS, registry=registry
        )
        self._merge_seconds = Histogram(
            "tercet_merge_seconds", "Time of a merge.", buckets=UPKEEP_SECONDS, registry=registry
        )
        self._flushed = Counter("tercet_documents_flushed", "Documents flushed.", registry=registry)
        self._merged = Counter("tercet_documents_merged", "Documents merged.", registry=registry)
        self._failures = Counter(
            "tercet_upkeep_failures", "Flushes and merges that failed and are tried again.", registry=registry
        )

    def watch(self, counts: Callable[[], Iterable[tuple[str, CollectionCounts]]]) -> None:
        """Shows what each collection holds, asked at each scrape."""
        self._registry.register(_Collections(counts))

    def acknowledged(self, kind: WriteKind, documents: int) -> None:
        """A write of so many documents is on the disk."""
        self._writes.labels(kind).inc()
        (self._deleted if kind == "delete" else self._written).inc(documents)

    def encoded(self, seconds: float) -> None:
        """The documents of a write were encoded, after waiting for their turn."""
        self._write_seconds.labels("encode").observe(seconds)

    def wrote(self, stage: WriteStage, seconds: float) -> None:
        """A group of writes was forced to the disk, or made searchable."""
        self._write_seconds.labels(stage).observe(seconds)

    def flushed(self, documents: int, seconds: float) -> None:
        """A segment of so many documents was published."""
        self._flush_seconds.observe(seconds)
        self._flushed.inc(documents)

    def merged(self, documents: int, seconds: float) -> None:
        """Segments were joined into one of so many documents."""
        self._merge_seconds.observe(seconds)
        self._merged.inc(documents)

    def failed(self, error: Exception) -> None:
        """A flush or merge failed; the collection logs why."""
        self._failures.inc()


class _Collections:
    """Gauges whose collections are known only at the scrape."""

    def __init__(self, counts: Callable[[], Iterable[tuple[str, CollectionCounts]]]) -> None:
        self._counts = counts

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Names the gauges without asking for their values."""
        return _gauges()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauges with their values of now."""
        documents, entries, segments, deleted = gauges = _gauges()
        for name, counts in self._counts():
            rows = counts.documents - counts.memory_documents + counts.deleted
            documents.add_metric([name], counts.documents)
            entries.add_metric([name], counts.ledger_entries)
            segments.add_metric([name], counts.segments)
            deleted.add_metric([name], counts.deleted / max(1, rows))
        return gauges


def _gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    labels = ["collection"]
    return (
        GaugeMetricFamily("tercet_documents", "Documents searched.", labels=labels),
        GaugeMetricFamily("tercet_ledger_entries", "Writes that are not published yet.", labels=labels),
        GaugeMetricFamily("tercet_segments", "Published segments.", labels=labels),
        GaugeMetricFamily(
            "tercet_deleted_share", "Deleted documents in segments, of all there.", labels=labels
        ),
    )
