"""Processor time of a router for one search."""

from tercet.cluster.capacity.measured import ASKING_MS, ROUTER_MS


def router_ms(shards: int) -> float:
    """Milliseconds before so many shards: each one more than two takes two requests more."""
    return ROUTER_MS.value + ASKING_MS.value * (shards - 2)
