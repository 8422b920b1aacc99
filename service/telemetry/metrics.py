"""Counters and timers for Prometheus; each application has its own registry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tercet.service.collections.shard_telemetry import ShardTelemetry
from tercet.service.documents.write_telemetry import WriteTelemetry
from tercet.service.exceptions import RefusalReason
from tercet.service.jobs.store import ENDED, JobState
from tercet.service.workers.telemetry import WorkerTelemetry

Samples = Callable[[], Iterable[tuple[str, float]]]  # label value and number

KEY_LABELS = 500
OTHER_KEYS = "other"

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


class Telemetry:
    """All metrics of one application."""

    def __init__(self) -> None:
        # Without it each counter and histogram has one more series, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
        self.registry = CollectorRegistry()
        self.writes = WriteTelemetry(self.registry)
        self.workers = WorkerTelemetry(self.registry)
        self.shards = ShardTelemetry(self.registry)
        self.requests = Counter(
            "tercet_requests", "Requests answered.", ["route", "method", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "tercet_request_seconds",
            "Time to answer a request.",
            ["route", "status"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.requests_in_progress = Gauge(
            "tercet_requests_in_progress", "Requests being answered now.", registry=self.registry
        )
        self.connections = Gauge("tercet_connections", "Connections of clients.", registry=self.registry)
        self.connections_allowed = Gauge(
            "tercet_connections_allowed", "The most there may be.", registry=self.registry
        )
        self.stage_seconds = Histogram(
            "tercet_stage_seconds",
            "Time of each stage: encode, retrieve, score, rerank, total.",
            ["stage"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._children_of = cache(
            lambda route, method, status: (
                self.requests.labels(route, method, status),
                self.request_seconds.labels(route, status),
            )
        )
        self._key_requests = Counter(
            "tercet_key_requests",
            f"Requests of each key, by its id; past {KEY_LABELS} ids they count as others.",
            ["key", "status"],
            registry=self.registry,
        )
        self._key_children: dict[tuple[str, int], Counter] = {}
        self._key_labels: set[str] = set()
        self._refused = Counter(
            "tercet_refused",
            "Requests answered 429, by what was over its limit.",
            ["reason"],
            registry=self.registry,
        )
        self._jobs_ended = Counter(
            "tercet_jobs_ended", "Jobs that ended, by state.", ["state"], registry=self.registry
        )
        for state in ENDED:  # a rise from nothing is none
            self._jobs_ended.labels(state)
        self._audit_failures = Counter(
            "tercet_audit_failures", "Audit entries that could not be written.", registry=self.registry
        )
        self._lost_lines = Counter(
            "tercet_log_lines_lost", "Lines of the log that nobody took in time.", registry=self.registry
        )
        self._batch_texts = Histogram(
            "tercet_batch_texts",
            "Texts in an encoded batch.",
            ["model"],
            buckets=TEXTS,
            registry=self.registry,
        )
        self._batch_tokens = Histogram(
            "tercet_batch_tokens",
            "Tokens in an encoded batch.",
            ["model"],
            buckets=TOKENS,
            registry=self.registry,
        )
        self._batch_seconds = Histogram(
            "tercet_batch_seconds",
            "Time to encode a batch.",
            ["model"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._stage_of = cache(self.stage_seconds.labels)
        self._batches_of = cache(
            lambda model: [
                batch.labels(model) for batch in (self._batch_texts, self._batch_tokens, self._batch_seconds)
            ]
        )
        self._loop_lag_seconds = Histogram(
            "tercet_loop_lag_seconds",
            "How late the event loop ran what was due, sampled.",
            buckets=SECONDS,
            registry=self.registry,
        )
        Info("tercet_build", "The program's version.", registry=self.registry).info(
            {"version": version("tercet")}
        )
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def answered(self, route: str, method: str, status: int, seconds: float, key: str | None = None) -> None:
        """Counts an answer. key: the id of its request's key."""
        counter, histogram = self._children_of(route, method, str(status))
        counter.inc()
        histogram.observe(seconds)
        if key is not None:
            (self._key_children.get((key, status)) or self._key_child(key, status)).inc()

    def _key_child(self, key: str, status: int) -> Counter:
        """The counter of key and status. A server whose file of keys changes often sees ever more."""
        if key not in self._key_labels and len(self._key_labels) >= KEY_LABELS:
            return self._key_requests.labels(OTHER_KEYS, status)
        self._key_labels.add(key)
        child = self._key_children[key, status] = self._key_requests.labels(key, status)
        return child

    def observe_loop(self, late_seconds: float) -> None:
        """Counts how late the event loop was once."""
        self._loop_lag_seconds.observe(late_seconds)

    def count_refusal(self, reason: RefusalReason) -> None:
        """Counts a request that was answered 429."""
        self._refused.labels(reason).inc()

    def count_job(self, state: JobState) -> None:
        """Counts a job that has ended."""
        self._jobs_ended.labels(state).inc()

    def count_audit_failures(self, entries: int) -> None:
        """Counts entries that are missing from the audit log."""
        self._audit_failures.inc(entries)

    def count_lost_lines(self, lines: int) -> None:
        """Counts lines that are missing from the log."""
        self._lost_lines.inc(lines)

    def observe_batch(self, model: str, texts: int, tokens: int, seconds: float) -> None:
        """Counts one batch that an encoder made."""
        of_texts, of_tokens, of_seconds = self._batches_of(model)
        of_texts.observe(texts)
        of_tokens.observe(tokens)
        of_seconds.observe(seconds)

    def observe_stage(self, stage: str, seconds: float) -> None:
        """Counts the time of one stage of a request."""
        self._stage_of(stage).observe(seconds)

    @contextmanager
    def stage(self, stage: str) -> Iterator[None]:
        """Times what runs inside as this stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.observe_stage(stage, time.perf_counter() - started)

    def watch_number(self, name: str, description: str, number: Callable[[], float]) -> None:
        """Shows one number, asked at each scrape; NaN is not known."""
        Gauge(name, description, registry=self.registry).set_function(number)

    def watch(self, name: str, description: str, label: str, samples: Samples) -> None:
        """Shows one number for each label value, asked at each scrape."""
        self.registry.register(_Watched(GaugeMetricFamily, name, description, label, samples))

    def watch_counts(self, name: str, description: str, label: str, samples: Samples) -> None:
        """Shows one number that only rises for each label value, asked at each scrape."""
        self.registry.register(_Watched(CounterMetricFamily, name, description, label, samples))

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)


def threads() -> float:
    """Threads of this process, those of compiled libraries among them where the system tells."""
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return threading.active_count()


class _Watched:
    """A gauge or counter whose label values are known only at the scrape."""

    def __init__(
        self,
        family: type[GaugeMetricFamily] | type[CounterMetricFamily],
        name: str,
        description: str,
        label: str,
        samples: Samples,
    ) -> None:
        self._new = partial(family, name, description, labels=[label])
        self._samples = samples

    def describe(self) -> Iterable[Metric]:
        """Names it without asking for its values."""
        yield self._new()

    def collect(self) -> Iterable[Metric]:
        """With its values of now."""
        family = self._new()
        for value, number in self._samples():
            family.add_metric([value], number)
        yield family
