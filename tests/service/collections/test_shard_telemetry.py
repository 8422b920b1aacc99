"""Metrics of a router's shards are bounded, and tell failures of shards from those of requests."""

import pytest
from prometheus_client import CollectorRegistry

from tercet.index.errors import CollectionNotFoundError
from tercet.service.collections.shard_telemetry import OTHER_SERVERS, SERVER_LABELS, ShardTelemetry, reason_of
from tercet.service.exceptions import (
    DeadlineExceededError,
    OverloadedError,
    RelayedError,
    ShardFailedError,
    ShardTimeoutError,
    ShardUnavailableError,
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ShardUnavailableError("", "a", sent=True), "unavailable"),
        (ShardUnavailableError("", "a", sent=False, paused=True), "paused"),
        (ShardTimeoutError("", "a"), "silent"),
        (ShardFailedError("", "a"), "failed"),
        (OverloadedError("", 1, "shard"), "overloaded"),
        (DeadlineExceededError("", 1), "deadline"),
        (RelayedError("", 500, "internal", None, shard="a"), "error"),
        (RelayedError("", 422, "invalid_query", None), None),
        (CollectionNotFoundError(""), None),
    ],
)
def test_a_failure_has_its_reason(error: Exception, reason: str | None) -> None:
    assert reason_of(error) == reason
    registry = CollectorRegistry()
    telemetry = ShardTelemetry(registry)
    telemetry.known("a", ["a"])
    telemetry.failed("a", error)
    counts = {
        sample.labels["reason"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "tercet_shard_failures_total"
    }
    assert sum(counts.values()) == (reason is not None)
    assert reason is None or counts[reason] == 1
    assert registry.get_sample_value("tercet_shard_up", {"url": "a"}) == (reason != "paused")
    telemetry.answered("a", 0.003, 10, 20)
    assert registry.get_sample_value("tercet_shard_up", {"url": "a"}) == 1


def test_a_router_that_has_seen_very_many_servers_counts_the_others_together() -> None:
    registry = CollectorRegistry()
    telemetry = ShardTelemetry(registry)
    for number in range(SERVER_LABELS + 2):
        telemetry.answered(f"http://{number}", 0.001, 1, 2)
        telemetry.failed(f"http://{number}", ShardTimeoutError("", ""))
    seconds = "tercet_shard_seconds_count"
    assert registry.get_sample_value(seconds, {"url": "http://0"}) == 1
    assert registry.get_sample_value(seconds, {"url": OTHER_SERVERS}) == 2
    assert registry.get_sample_value(seconds, {"url": f"http://{SERVER_LABELS}"}) is None
