"""Metrics of a router's shards: how long their servers take, and how often another one was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class ShardObserver(Protocol):
    """Is told how shards fare. shard: as its writing server is called."""

    def known(self, shard: str, servers: Sequence[str]) -> None:
        """There is such a shard."""
        ...

    def answered(self, server: str, seconds: float) -> None:
        """A server answered."""
        ...

    def hedged(self, shard: str) -> None:
        """A second server was asked, since the first took long."""
        ...

    def hedge_won(self, shard: str) -> None:
        """The second one answered first."""
        ...

    def failed_over(self, shard: str) -> None:
        """Another server was asked, since one failed or was silent."""
        ...


class ShardTelemetry:
    """A `ShardObserver` that counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "tercet_shard_seconds",
            "Time of a shard's server to answer a read.",
            ["url"],
            buckets=SECONDS,
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

    def known(self, shard: str, servers: Sequence[str]) -> None:
        """Shows all its counters at 0: without that, the first would not be a rise."""
        for server in servers:
            self._seconds.labels(server)
        for result in ("asked", "won"):
            self._hedges.labels(shard, result)
        self._failovers.labels(shard)

    def answered(self, server: str, seconds: float) -> None:
        """Counts an answer."""
        self._seconds.labels(server).observe(seconds)

    def hedged(self, shard: str) -> None:
        """Counts a second server."""
        self._hedges.labels(shard, "asked").inc()

    def hedge_won(self, shard: str) -> None:
        """Counts its answer."""
        self._hedges.labels(shard, "won").inc()

    def failed_over(self, shard: str) -> None:
        """Counts another server."""
        self._failovers.labels(shard).inc()


class Unobserved:
    """A `ShardObserver` for whom nobody asks, as before a server begins."""

    def known(self, shard: str, servers: Sequence[str]) -> None:
        """Nothing."""

    def answered(self, server: str, seconds: float) -> None:
        """Nothing."""

    def hedged(self, shard: str) -> None:
        """Nothing."""

    def hedge_won(self, shard: str) -> None:
        """Nothing."""

    def failed_over(self, shard: str) -> None:
        """Nothing."""
