"""Training of a cross-encoder: of a query's passages it has to find the one that answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from tercet.models.cross_encoder import CrossEncoder
from tercet.models.representations import Int32, Int64, TokenBatch
from tercet.training.data.batch_plan import EpochPlan, plan_epoch, require_batches
from tercet.training.data.pair_table import PairTable
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks
from tercet.training.settings.run import ScoreRun
from tercet.training.step import Figures, Scaled, StepReport, nothing

# Those of a sequence classifier that a body which was no cross-encoder lacks, and begins with random weights.
NEW_PARTS = ("classifier", "score", "pooler", "head")
Group = TokenBatch
"""A query with each of its passages, the positive first."""


class CrossScoring:
    """Batches of groups: a query with one positive and some negatives, the positive first."""

    def __init__(
        self, encoder: CrossEncoder, tables: Sequence[PairTable], settings: ScoreRun, ranks: Ranks
    ) -> None:
        """Raises TrainingDataError for a source that fills no batch."""
        self._encoder = encoder
        self._tables = tables
        self._settings = settings
        self._ranks = ranks
        self._planned: tuple[int, EpochPlan] = (0, self._plan(0))
        trained = {n: table.settings.path for n, table in enumerate(tables) if table.settings.train}
        require_batches(self._planned[1], trained)
        self.steps_per_epoch = len(self._planned[1])

    def accumulate(self, step: int, scaled: Scaled, before_last: Callable[[], None] = nothing) -> StepReport:
        """As `Stage`. The loss is −log softmax of the logits at the positive, averaged over queries.

        Source: the reranker of FlagEmbedding; localized contrastive estimation (Gao et al. 2021,
        arXiv 2101.08751).
        """
        epoch, number = divmod(step, self.steps_per_epoch)
        if self._planned[0] != epoch:
            self._planned = (epoch, self._plan(epoch))
        source, pairs = self._planned[1].batches[number]
        share = np.array_split(pairs, self._ranks.size)[self._ranks.rank]
        generator = np.random.default_rng([self._settings.seed, step, self._ranks.rank])
        groups = [self._group(self._tables[source], int(pair), generator) for pair in share]
        losses: list[Tensor] = []
        parts = list(parts_of(groups, self._settings.batches.sub_batch_tokens))
        for part in parts:
            logits = self._encoder.logits(TokenBatch.concatenate(part)).view(len(part), -1)
            positive = torch.zeros(len(part), dtype=torch.int64, device=logits.device)
            loss = torch.nn.functional.cross_entropy(logits, positive, reduction="sum") / len(groups)
            losses.append(loss.detach())
            if part is parts[-1]:
                before_last()
            scaled(loss / self._ranks.size).backward()  # type: ignore[no-untyped-call]  # untyped library
        tokens = sum(len(group.token_ids) for group in groups)
        return StepReport({"loss": torch.stack(losses).sum()}, tokens)

    def evaluate(self) -> Figures:
        """Nothing is held out."""
        return {}

    def _group(self, table: PairTable, pair: int, generator: np.random.Generator) -> Group:
        """A positive and as many negatives as the settings say; where the line has fewer, random passages."""
        count = self._settings.batches.negatives
        positives = table.positives.of(pair)
        chosen = generator.permutation(table.negatives.of(pair))[:count]
        drawn = generator.permutation(len(table.passages))[: count + len(positives) + len(chosen)]
        others = drawn[~np.isin(drawn, [*positives, *chosen])][: count - len(chosen)]
        rows = np.array([generator.choice(positives), *chosen, *others], np.int64)
        return self._encoder.pairs(ids_of(table.queries, pair), table.passages.take(rows))

    def _plan(self, epoch: int) -> EpochPlan:
        settings = self._settings
        return plan_epoch(self._tables, settings.batches, self._ranks.size, settings.seed, epoch)


def ids_of(store: TokenStore, row: int) -> Int32:
    """Token ids of a text."""
    rows: Int64 = np.array([row], np.int64)
    return store.take(rows).token_ids


def parts_of(groups: Sequence[Group], sub_batch_tokens: int) -> Iterator[list[Group]]:
    """Groups of one size that go through the model together: in order, of so many padded tokens or alone."""
    part: list[Group] = []
    longest = 0
    for group in groups:
        own = int(group.lengths.max())
        texts = sum(map(len, part)) + len(group)
        if part and (texts * max(longest, own) > sub_batch_tokens or len(group) != len(part[0])):
            yield part
            part, longest = [], 0
        part.append(group)
        longest = max(longest, own)
    if part:
        yield part
