"""Batches of training pairs: each of one source, so that the negatives in it are of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.representations import Bool, Int64
from training.frozen.sources import PreparedSource


@dataclass(frozen=True, slots=True)
class PairBatch:
    """B pairs of a source as rows of its hidden states.

    queries: int64[B]; passages: int64[N], first each pair's own positive, then all given negatives;
    allowed: bool[B, N], false where a passage is another positive of the query and thus no negative.
    """

    source: PreparedSource
    queries: Int64
    passages: Int64
    allowed: Bool


def epoch_batches(
    sources: Sequence[PreparedSource], batch_pairs: int, generator: np.random.Generator
) -> list[PairBatch]:
    """All training pairs once, in random order; what does not fill a last batch of a source is left out."""
    batches = []
    for source in sources:
        order = neighbours_together(source.training, source.settings.neighbours, generator)
        starts = range(0, len(order) - batch_pairs + 1, batch_pairs)
        batches += [pair_batch(source, order[start : start + batch_pairs], generator) for start in starts]
    return [batches[place] for place in generator.permutation(len(batches))]


def neighbours_together(pairs: Int64, count: int, generator: np.random.Generator) -> Int64:
    """The pairs in random order, but for runs of `count` neighbours; where runs begin is random, too."""
    first = generator.integers(count) + 1
    runs = np.split(pairs, range(first, len(pairs), count))
    return np.concatenate([runs[place] for place in generator.permutation(len(runs))])


def batches_per_epoch(sources: Sequence[PreparedSource], batch_pairs: int) -> int:
    """How many batches `epoch_batches` gives."""
    return sum(len(source.training) // batch_pairs for source in sources)


def pair_batch(source: PreparedSource, pairs: Int64, generator: np.random.Generator) -> PairBatch:
    """One batch of the given pairs, with a random positive of each."""
    own = np.array([generator.choice(source.positives[pair]) for pair in pairs], np.int64)
    negatives = np.unique(np.concatenate([source.negatives[pair] for pair in pairs]))
    passages = np.concatenate([own, negatives])
    allowed = np.stack([~np.isin(passages, source.positives[pair]) for pair in pairs])
    allowed[np.arange(len(pairs)), np.arange(len(pairs))] = True
    return PairBatch(source, pairs, passages, allowed)
