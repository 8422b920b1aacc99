"""How many encoders there are to be: by the tokens that wait in all of them, not by requests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

QUEUED_TOKENS = "queued_tokens"  # what each replica tells


class ByQueuedTokens:
    """A policy of Ray Serve's autoscaler, which applies delays and bounds to what it says."""

    def __init__(self, replica_tokens: int) -> None:
        """replica_tokens: that may wait in one encoder before there is to be another."""
        self._replica_tokens = replica_tokens

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """The number of replicas, and no state. context: Ray Serve's `AutoscalingContext`."""
        told: Mapping[Any, float] = context.aggregated_metrics.get(QUEUED_TOKENS, {})
        if not told:  # none has said anything yet
            return context.target_num_replicas, {}
        return replicas_for(sum(told.values()), self._replica_tokens), {}


def replicas_for(queued_tokens: float, replica_tokens: int) -> int:
    """At least one."""
    return max(1, math.ceil(queued_tokens / replica_tokens))
