"""Batches of training pairs: each of one source and one length group, in an order that the seed fixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.models.representations import Bool, Int64
from tercet.training.data.pair_table import PairTable, RaggedRows, shuffled_groups
from tercet.training.distributed import Ranks
from tercet.training.errors import TrainingDataError
from tercet.training.settings.data import LengthGroup, QueryBatches


@dataclass(frozen=True, slots=True)
class PairBatch:
    """B pairs on this device. table: number of their source; pairs: int64[B].

    passages: int64[N], rows of the source's passages: first one positive of each pair, then all negatives.
    """

    table: int
    pairs: Int64
    passages: Int64


SourceBatch = tuple[int, Int64]
"""The number of a source and the numbers of its pairs or documents, those of all devices together."""


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The batches of one epoch, in order."""

    batches: tuple[SourceBatch, ...]

    def __len__(self) -> int:
        return len(self.batches)


def plan_epoch(
    tables: Sequence[PairTable], settings: QueryBatches, devices: int, seed: int, epoch: int
) -> EpochPlan:
    """Every training pair once, but for what does not fill a last batch of its source and group."""
    generator = np.random.default_rng([seed, epoch])
    batches: list[SourceBatch] = []

    def shuffled(pairs: Int64) -> Int64:
        return pairs[shuffled_groups(len(pairs), settings.neighbours, generator)]

    for number, table in enumerate(tables):
        tokens = table.passage_tokens(table.training)
        batches += length_batches(number, table.training, tokens, settings.groups, devices, shuffled)
    return shuffled_plan(batches, generator)


def length_batches(
    source: int,
    members: Int64,
    tokens: Int64,
    groups: Sequence[LengthGroup],
    devices: int,
    shuffled: Callable[[Int64], Int64],
) -> list[SourceBatch]:
    """Whole batches of a source, each of one length group; members and their tokens, int64[M] each."""
    batches = []
    shortest = 0
    for group in groups:
        order = shuffled(members[(tokens > shortest) & (tokens <= group.tokens)])
        shortest = group.tokens
        size = group.batch * devices
        batches += [(source, order[start : start + size]) for start in range(0, len(order) - size + 1, size)]
    return batches


def shuffled_plan(batches: Sequence[SourceBatch], generator: np.random.Generator) -> EpochPlan:
    """The batches of all sources in random order."""
    return EpochPlan(tuple(batches[number] for number in generator.permutation(len(batches))))


def require_batches(plan: EpochPlan, paths: Mapping[int, str]) -> None:
    """Raises TrainingDataError where a source that trains fills no batch; paths: the files, by number."""
    filled = {source for source, _ in plan.batches}
    for number, path in paths.items():
        if number not in filled:
            raise TrainingDataError(
                f"{path}: fills no whole batch; lower batches.groups.batch, or add to this source"
            )


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
    """bool[B, N]: the columns that count for each pair, whose own positive is in column `own` int64[B].

    False for the pair's other positives, and for a passage that was in a column before, as that of another
    pair or another device: so each passage counts once.
    """
    first = np.zeros(len(passages), np.bool_)
    first[np.unique(passages, return_index=True)[1]] = True
    allowed = np.stack([first & ~np.isin(passages, positives.of(pair)) for pair in pairs])
    allowed[np.arange(len(pairs)), own] = True
    return allowed
