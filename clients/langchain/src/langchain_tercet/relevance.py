"""Scores as LangChain's relevance, from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from tercet_client.types import ScoresResponse, WeightsResponse

SIDES = 3  # dense, sparse, ColBERT
MIDDLE, STEEPNESS = 1.0, 4.0  # of the sum with equal weights, as Tercet's routes for Cohere and Jina have it


def relevance(equal_sum: float) -> float:
    """1 / (1 + exp(-4 (s - 1))) of the sum with equal weights. It grows with s, and is no probability."""
    return 1.0 / (1.0 + math.exp(-STEEPNESS * (equal_sum - MIDDLE)))


def relevance_of_sum(score: float, weights: WeightsResponse) -> float:
    """The same of a weighted sum, brought to the scale of equal weights: it keeps the order."""
    total = sum(weight or 0.0 for weight in cast(Mapping[str, float | None], weights).values())
    return relevance(SIDES * score / total if total else 0.0)


def relevance_of_scores(scores: ScoresResponse) -> float:
    """The same of the three scores themselves, whatever their weights."""
    return relevance(sum(score or 0.0 for score in (scores["dense"], scores["sparse"], scores["colbert"])))
