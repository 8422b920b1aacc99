"""Batches of training pairs: each of one source and one length group, in an order that the seed fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.representations import Bool, Int64
from training.config import BatchSettings
from training.distributed import Ranks
from training.pair_table import PairTable, RaggedRows, shuffled_groups


@dataclass(frozen=True, slots=True)
class PairBatch:
    """B pairs on this device. table: number of their source; pairs: int64[B].

    passages: int64[N], rows of the source's passages: first one positive of each pair, then all negatives.
    """

    table: int
    pairs: Int64
    passages: Int64


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The batches of one epoch, each as the number of a source and all its pairs on all devices."""

    batches: tuple[tuple[int, Int64], ...]

    def __len__(self) -> int:
        return len(self.batches)


def plan_epoch(
    tables: Sequence[PairTable], settings: BatchSettings, devices: int, seed: int, epoch: int
) -> EpochPlan:
    """Every training pair once, but for what does not fill a last batch of its source and group."""
    generator = np.random.default_rng([seed, epoch])
    batches: list[tuple[int, Int64]] = []
    for number, table in enumerate(tables):
        tokens = table.passage_tokens(table.training)
        shortest = 0
        for group in settings.groups:
            members = table.training[(tokens > shortest) & (tokens <= group.tokens)]
            shortest = group.tokens
            order = members[shuffled_groups(len(members), settings.neighbours, generator)]
            size = group.batch * devices
            batches += [
                (number, order[start : start + size]) for start in range(0, len(order) - size + 1, size)
            ]
    return EpochPlan(tuple(batches[place] for place in generator.permutation(len(batches))))


def pair_batch(
    table: int,
    pairs: Int64,
    positives: RaggedRows,
    negatives: RaggedRows,
    count: int,
    ranks: Ranks,
    generator: np.random.Generator,
) -> PairBatch:
    """This device's share of a batch: a random positive and up to `count` random negatives of each pair."""
    share = np.array_split(pairs, ranks.size)[ranks.rank]
    own = np.array([generator.choice(positives.of(pair)) for pair in share], np.int64)
    chosen = [
        generator.permutation(negatives.of(pair))[:count] if count else negatives.rows[:0] for pair in share
    ]
    others = np.setdiff1d(np.concatenate([own[:0], *chosen]), own)
    return PairBatch(table, share, np.concatenate([own, others]))


def allowed_passages(positives: RaggedRows, pairs: Int64, passages: Int64, own: Int64) -> Bool:
    """bool[B, N]: false where a passage is a positive of the pair beside the one in column `own` int64[B]."""
    allowed = np.stack([~np.isin(passages, positives.of(pair)) for pair in pairs])
    allowed[np.arange(len(pairs)), own] = True
    return allowed
