"""Metrics of encoder workers: how long each takes, and why it did not answer."""

from __future__ import annotations

from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from tercet.models.errors import (
    AdapterNotFoundError,
    AdapterUnusableError,
    EncoderMemoryError,
    EncoderUnavailableError,
    UnsoundRepresentationsError,
)
from tercet.service.exceptions import CallFailedError, OverloadedError

Refusal = Literal["overloaded", "silent", "unsound", "memory", "adapter", "failed", "limit"]
"""limit: of the worker's own, such as the size of a body."""

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)

# The first that fits; some are of a kind that comes later.
KINDS: tuple[tuple[type[Exception], Refusal], ...] = (
    (OverloadedError, "overloaded"),
    (CallFailedError, "silent"),
    (UnsoundRepresentationsError, "unsound"),
    (EncoderMemoryError, "memory"),
    (AdapterNotFoundError, "adapter"),
    (AdapterUnusableError, "adapter"),
    (EncoderUnavailableError, "failed"),
)


class WorkerObserver:
    """Is told how workers fare, and does nothing, as in builds, of which nobody asks."""

    def known(self, url: str) -> None:
        """There is such a worker."""

    def answered(self, url: str, seconds: float) -> None:
        """It gave representations that can be used."""

    def refused(self, url: str, error: Exception) -> None:
        """It gave none."""


class WorkerTelemetry(WorkerObserver):
    """One that counts. Safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "tercet_encoder_worker_seconds",
            "Time of a worker's answer.",
            ["url"],
            buckets=SECONDS,
            registry=registry,
        )
        self._refusals = Counter(
            "tercet_encoder_worker_refusals",
            f"Requests that a worker did not answer: {', '.join(get_args(Refusal))}.",
            ["url", "reason"],
            registry=registry,
        )

    def known(self, url: str) -> None:
        """Shows all its counters at 0: without that, the first refusal would not be a rise."""
        self._seconds.labels(url)
        for reason in get_args(Refusal):
            self._refusals.labels(url, reason)

    def answered(self, url: str, seconds: float) -> None:
        """Counts an answer."""
        self._seconds.labels(url).observe(seconds)

    def refused(self, url: str, error: Exception) -> None:
        """Counts a refusal by its reason."""
        reason = next((name for kind, name in KINDS if isinstance(error, kind)), "limit")
        self._refusals.labels(url, reason).inc()
