"""Which documents a step of pre-training reads on this device, and the random numbers it draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tercet.models.batching import plan_batches
from tercet.models.representations import Int64, TokenBatch
from tercet.training.data.batch_plan import EpochPlan, require_batches
from tercet.training.data.text_table import plan_texts
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks
from tercet.training.settings.run import PretrainingSettings


class DocumentBatches:
    """The batches of a run, by step; what a step draws depends on the seed, the step and the device alone."""

    def __init__(
        self, stores: Sequence[TokenStore], settings: PretrainingSettings, ranks: Ranks, least_tokens: int
    ) -> None:
        """least_tokens: shorter documents are left out.

        Raises TrainingDataError for a source that fills no batch.
        """
        self._stores = stores
        self._settings = settings
        self._ranks = ranks
        self._least_tokens = least_tokens
        self._planned: tuple[int, EpochPlan] = (0, self._plan(0))
        require_batches(self._planned[1], {n: s.path for n, s in enumerate(settings.data.sources)})
        self.steps_per_epoch = len(self._planned[1])
        """Batches of one epoch; all epochs have as many."""

    def documents(self, step: int) -> TokenBatch:
        """This device's share of a step's documents."""
        epoch, number = divmod(step, self.steps_per_epoch)
        if self._planned[0] != epoch:
            self._planned = (epoch, self._plan(epoch))
        source, rows = self._planned[1].batches[number]
        return self._stores[source].take(np.array_split(rows, self._ranks.size)[self._ranks.rank])

    def seed(self, step: int, stream: int = 0) -> int:
        """Of what a step draws on this device, below 2^63; each of several streams has its own."""
        seeds = np.random.SeedSequence([self._settings.seed, step, self._ranks.rank, stream])
        return int(seeds.generate_state(1, np.uint64)[0] >> 1)

    def sub_batches(self, texts: TokenBatch) -> list[tuple[Int64, TokenBatch]]:
        """Texts of like length, as many as one pass may hold, each with their numbers in the step."""
        plan = plan_batches(texts.lengths, self._settings.batches.sub_batch_tokens)
        return [(rows, texts.take(rows)) for rows in plan]

    def _plan(self, epoch: int) -> EpochPlan:
        settings = self._settings
        groups, devices = settings.batches.groups, self._ranks.size
        return plan_texts(self._stores, groups, devices, self._least_tokens, settings.seed, epoch)
