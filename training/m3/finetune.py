"""Fine-tuning of all three sides: InfoNCE for each, and distillation from their sum (M3).

With the terms of the dense side alone this is the unsupervised contrastive stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tercet.models.representations import Bool, Int64, TokenBatch
from tercet.training.data.batch_plan import (
    EpochPlan,
    PairBatch,
    allowed_passages,
    pair_batch,
    plan_epoch,
    require_batches,
)
from tercet.training.data.pair_table import PairTable, ScoredRows
from tercet.training.distributed import Ranks, gather, gather_array
from tercet.training.gradient_cache import cached_backward
from tercet.training.m3.development import development_figures, judged_sides
from tercet.training.m3.document_frequencies import SourceIdf
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.m3.lexical_prior import LexicalPrior
from tercet.training.m3.losses import (
    TeacherScores,
    anchor_losses,
    distillation_loss,
    summed_scores,
    total_loss,
    trained_sides,
)
from tercet.training.m3.miner import Miner
from tercet.training.m3.scores import side_scores
from tercet.training.m3.teacher import Teacher
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.modules import balance_loss
from tercet.training.settings.objective import LossSettings
from tercet.training.settings.run import PairSettings
from tercet.training.step import Figures, Scaled, StepReport, nothing
from tercet.training.transfer import on_device


class Finetune:
    """Batches of pairs and what is learned from them. `negatives`: of each table, given or mined."""

    def __init__(
        self,
        encoder: TextEncoder,
        tables: Sequence[PairTable],
        settings: PairSettings,
        folder: Path,
        ranks: Ranks,
        anchor: TextEncoder | None = None,
        prior: LexicalPrior | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        """folder: where mined negatives are kept; anchor (the base), prior, teacher: where asked for.

        Raises TrainingDataError for a source that fills no batch.
        """
        self.encoder = encoder
        self.tables = tables
        self.negatives = [table.negatives for table in tables]
        self._settings = settings
        self._miner = None
        if settings.mining is not None:
            by = settings.mining.by
            if settings.stage == "contrastive" and by != "bm25":
                by = "dense"
            self._miner = Miner(encoder, tables, settings.mining, by, folder, ranks, settings.seed)
        self._ranks = ranks
        self._anchor = anchor
        self._prior = prior
        self._teacher = teacher
        self._idf = [
            SourceIdf.of(table.passages, encoder.tokenizer) if encoder.lexical == "idf" else None
            for table in tables
        ]
        self._planned: tuple[int, EpochPlan] = (0, self._plan(0))
        trained = {n: table.settings.path for n, table in enumerate(tables) if table.settings.train}
        require_batches(self._planned[1], trained)
        self.steps_per_epoch = len(self._planned[1])
        """Batches of one epoch; all epochs have as many."""

    def batch(self, step: int) -> PairBatch:
        """This device's share of a step's pairs, with their passages."""
        if self._miner is not None:
            self.negatives = self._miner.negatives(step)
        epoch, number = divmod(step, self.steps_per_epoch)
        table, pairs = self._plan_of(epoch).batches[number]
        generator = np.random.default_rng([self._settings.seed, step, self._ranks.rank])
        count = self._settings.batches.negatives
        positives, negatives = self.tables[table].positives, self.negatives[table]
        return pair_batch(table, pairs, positives, negatives, count, self._ranks, generator)

    def accumulate(self, step: int, scaled: Scaled, before_last: Callable[[], None] = nothing) -> StepReport:
        """As `Stage`."""
        batch = self.batch(step)
        table = self.tables[batch.table]
        self.encoder.choose(table.settings)
        queries, passages = table.queries.take(batch.pairs), table.passages.take(batch.passages)
        terms: dict[str, Tensor] = {}
        anchors = [self._anchored(texts) for texts in (queries, passages)]
        objective = self._settings.objective.at(step)
        taught = None
        if self._teacher is not None and table.taught is not None:
            taught = self._teacher.scores(table.taught, batch, self._ranks)

        def loss(*encoded: EncodedTexts) -> Tensor:
            total, losses = self._loss(encoded[0], encoded[1], batch, objective, taught)
            total = table.settings.weight * total
            for texts, base, queries in zip(encoded, anchors, (True, False), strict=True):
                for name, term in self._regularization(texts, base, queries=queries).items():
                    total = total + getattr(objective, name) * term / len(encoded)
                    losses[name] = losses.get(name, torch.zeros_like(term)) + term.detach() / len(encoded)
            modules = self.encoder.modules
            if modules is not None:
                scores = [texts.module_scores for texts in encoded if texts.module_scores is not None]
                term = balance_loss(gather(torch.cat(scores), self._ranks), modules.top)
                total = total + modules.balance * term
                losses["balance"] = term.detach()
            terms.update({"loss": total.detach(), **losses})
            return scaled(total / self._ranks.size)

        query_parts, query_order = self.encoder.parts(queries)
        passage_parts, passage_order = self.encoder.parts(passages)
        parts = [*query_parts, *passage_parts]

        def loss_of_parts(encoded: Sequence[EncodedTexts]) -> Tensor:
            split = len(query_parts)
            return loss(
                EncodedTexts.concatenate(encoded[:split], query_order),
                EncodedTexts.concatenate(encoded[split:], passage_order),
            )

        if self._caches(parts):
            cached_backward(parts, self.encoder.encode, loss_of_parts, before_last=before_last)
        else:
            total = loss_of_parts([self.encoder.encode(part) for part in parts])
            before_last()
            total.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return StepReport(terms, int(queries.offsets[-1] + passages.offsets[-1]))

    def evaluate(self) -> Figures:
        """Development figures of every source that holds pairs out."""
        return {
            table.settings.title: development_figures(
                self.encoder, table, judged_sides(self._settings.stage), idf, self._ranks
            )
            for table, idf in zip(self.tables, self._idf, strict=True)
            if len(table.development)
        }

    def _caches(self, parts: Sequence[TokenBatch]) -> bool:
        """Whether gradients are cached for these sub-batches; a frozen body has no graph to save.

        All processes decide alike, or else they would not wait for each other the same number of times.
        """
        settings = self._settings.batches
        if settings.gradient_cache is not None:
            return settings.gradient_cache
        if self._settings.body_is_frozen:
            return False
        padded = sum(len(part) * int(part.lengths.max()) for part in parts)
        largest = int(gather_array(np.array([padded]), self._ranks).max())
        return largest > settings.sub_batch_tokens

    def _regularization(
        self, texts: EncodedTexts, base: EncodedTexts | None, *, queries: bool
    ) -> dict[str, Tensor]:
        """Terms that need no pairs, by their name in `LossSettings`."""
        terms = {} if base is None else anchor_losses(texts, base)
        return terms if self._prior is None else {**terms, "prior": self._prior.loss(texts, queries=queries)}

    def _anchored(self, texts: TokenBatch) -> EncodedTexts | None:
        """What the base makes of texts, where the losses ask for it."""
        if self._anchor is None:
            return None
        with torch.no_grad():
            return self._anchor.encode_all(texts)

    def _loss(
        self,
        queries: EncodedTexts,
        passages: EncodedTexts,
        batch: PairBatch,
        losses: LossSettings,
        taught: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss of this device's queries against the passages of all devices, and its terms.

        losses: of this step. taught: the scores that another checkpoint gives the same queries and passages.
        """
        device = queries.dense.device
        rows = gather_array(batch.passages, self._ranks)
        counts = gather_array(np.array([len(batch.passages)]), self._ranks)
        own = np.arange(len(batch.pairs)) + int(counts[: self._ranks.rank].sum())
        table = self.tables[batch.table]
        allowed = allowed_passages(table.positives, batch.pairs, rows, own)
        sides = trained_sides(losses)
        idf = self._idf[batch.table]
        weighted = queries if idf is None else idf.weighted(queries)
        scores = side_scores(weighted, passages.of_all(self._ranks, sides), sides)
        columns, mask = (on_device(array, device) for array in (own, allowed))
        scored = None
        if losses.teacher_scores:
            scored = teacher_scores(table.scored, batch.pairs, rows, own, allowed, device)
        total, terms = total_loss(scores, columns, mask, losses, scored)
        teaching = self._settings.teaching
        if taught is None or teaching is None:
            return total, terms
        summed = summed_scores(scores, losses)
        term = distillation_loss(summed, taught, mask, losses.temperature, teaching.temperature)
        return total + teaching.factor * term, {**terms, "teacher": term.detach()}

    def _plan(self, epoch: int) -> EpochPlan:
        settings = self._settings
        return plan_epoch(self.tables, settings.batches, self._ranks.size, settings.seed, epoch)

    def _plan_of(self, epoch: int) -> EpochPlan:
        if self._planned[0] != epoch:
            self._planned = (epoch, self._plan(epoch))
        return self._planned[1]


def teacher_scores(
    scored: ScoredRows, pairs: Int64, passages: Int64, own: Int64, allowed: Bool, device: torch.device
) -> TeacherScores:
    """What the lines of B pairs say of the N passages of a batch, as far as these are allowed for them.

    own int64[B] and allowed bool[B, N], as in `allowed_passages`.
    """
    scores = scored.of_batch(pairs, passages)
    candidates = allowed & ~np.isnan(scores)
    candidates[np.arange(len(pairs)), own] = True
    return TeacherScores(on_device(np.nan_to_num(scores), device), on_device(candidates, device))
