"""Metrics of a router's shards: how long their servers take, what is exchanged with them, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tercet.service.exceptions import (
    DeadlineExceededError,
    OverloadedError,
    RelayedError,
    ShardFailedError,
    ShardTimeoutError,
    ShardUnavailableError,
)

FailureReason = Literal["unavailable", "paused", "silent", "failed", "overloaded", "deadline", "error"]
"""paused: it was not asked, since it failed again and again; error: it answered 5xx."""

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SERVER_LABELS = 500
OTHER_SERVERS = "other"

KINDS: Sequence[tuple[type[Exception], FailureReason]] = (
    (ShardUnavailableError, "unavailable"),
    (ShardTimeoutError, "silent"),
    (ShardFailedError, "failed"),
    (DeadlineExceededError, "deadline"),
    (OverloadedError, "overloaded"),
)


class ShardObserver:
    """Hears how shards fare, and does nothing. shard: as its writing server is called."""

    def known(self, shard: str, servers: Sequence[str]) -> None:
        """Hears that there is a shard, and of its servers."""

    def answered(self, server: str, seconds: float, sent_bytes: int, received_bytes: int) -> None:
        """A server answered, whatever it says, to a body of so many bytes with one of so many."""

    def failed(self, server: str, error: Exception) -> None:
        """A request has this error."""

    def hedged(self, shard: str) -> None:
        """A second server was asked, since the first took long."""

    def hedge_won(self, shard: str) -> None:
        """The second one answered first."""

    def failed_over(self, shard: str) -> None:
        """Another server was asked, since one failed or was silent."""


class ShardTelemetry(ShardObserver):
    """One that counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "tercet_shard_seconds",
            "Time of a shard's server to answer.",
            ["url"],
            buckets=SECONDS,
            registry=registry,
        )
        self._bytes = Counter(
            "tercet_shard_bytes",
            "Bytes of bodies that were sent to a shard's server, and received from it.",
            ["url", "direction"],
            registry=registry,
        )
        self._failures = Counter(
            "tercet_shard_failures",
            f"Requests that a shard's server did not answer: {', '.join(get_args(FailureReason))}.",
            ["url", "reason"],
            registry=registry,
        )
        self._up = Gauge(
            "tercet_shard_up",
            "0: a shard's server failed again and again, and is not asked for a moment.",
            ["url"],
            registry=registry,
        )
        self._hedges = Counter(
            "tercet_shard_hedges",
            "Reads for which a second server of a shard was asked, since the first took long.",
            ["shard", "result"],
            registry=registry,
        )
        self._failovers = Counter(
            "tercet_shard_failovers",
            "Reads that went on at another server of a shard, since one failed or was silent.",
            ["shard"],
            registry=registry,
        )
        self._servers: set[str] = set()
        self._children_of = cache(
            lambda url: (
                self._seconds.labels(url),
                self._bytes.labels(url, "sent"),
                self._bytes.labels(url, "received"),
                self._up.labels(url),
            )
        )

    def known(self, shard: str, servers: Sequence[str]) -> None:
        """Shows all its counters at 0: without that, the first would not be a rise."""
        for server in servers:
            url = self._label(server)
            *_, up = self._children_of(url)
            up.set(1)
            for reason in get_args(FailureReason):
                self._failures.labels(url, reason)
        if len(servers) > 1:
            self._failovers.labels(self._label(shard))
            for result in ("asked", "won"):
                self._hedges.labels(self._label(shard), result)

    def answered(self, server: str, seconds: float, sent_bytes: int, received_bytes: int) -> None:
        """Counts an answer."""
        in_seconds, sent, received, up = self._children_of(self._label(server))
        in_seconds.observe(seconds)
        sent.inc(sent_bytes)
        received.inc(received_bytes)
        up.set(1)

    def failed(self, server: str, error: Exception) -> None:
        """Counts a failure by its reason; what is wrong with the request itself is none."""
        reason = reason_of(error)
        if reason is None:
            return
        url = self._label(server)
        self._failures.labels(url, reason).inc()
        if reason == "paused":
            self._up.labels(url).set(0)

    def hedged(self, shard: str) -> None:
        """Counts a second server."""
        self._hedges.labels(self._label(shard), "asked").inc()

    def hedge_won(self, shard: str) -> None:
        """Counts its answer."""
        self._hedges.labels(self._label(shard), "won").inc()

    def failed_over(self, shard: str) -> None:
        """Counts another server."""
        self._failovers.labels(self._label(shard)).inc()

    def _label(self, server: str) -> str:
        """A server's own, unless a router whose map changes again and again has seen very many."""
        if server not in self._servers and len(self._servers) >= SERVER_LABELS:
            return OTHER_SERVERS
        self._servers.add(server)
        return server


def reason_of(error: Exception) -> FailureReason | None:
    """Why a shard's server did not answer; None where it did, and the request is to blame."""
    if isinstance(error, RelayedError):
        return None if error.shard is None else "error"
    if isinstance(error, ShardUnavailableError) and error.paused:
        return "paused"
    return next((reason for kind, reason in KINDS if isinstance(error, kind)), None)
