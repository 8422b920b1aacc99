"""Processor time of a router for one search."""

from cluster.capacity.measured import ASKING_MS

AT_TWO_MS = 4.0  # chosen: the bar of a router before two shards is 5


def router_ms(shards: int) -> float:
    """Milliseconds before so many shards: each one more takes two requests."""
    return AT_TWO_MS + ASKING_MS.value * (shards - 2)
