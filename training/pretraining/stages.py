"""Pre-training on plain documents, as stages of the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from tercet.models.representations import Int64, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.document_batches import DocumentBatches
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks, gather
from tercet.training.gradient_cache import cached_backward
from tercet.training.precision import autocast
from tercet.training.pretraining.condenser import Condenser
from tercet.training.pretraining.masked_lm import MaskedLm
from tercet.training.pretraining.masking import MaskedText, PaddedTexts, mask_tokens
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary
from tercet.training.pretraining.outputs import PretrainingOutputs
from tercet.training.pretraining.retromae import RetroMae, RetroMaeInputs, draw_retromae_inputs
from tercet.training.pretraining.span_contrast import sample_spans, span_contrastive_loss
from tercet.training.pretraining.vocabulary_gradient import VocabularyGradient
from tercet.training.settings.run import CoCondenserRun, CondenserRun, MlmRun, RetroMaeRun
from tercet.training.step import Figures, Scaled, StepReport, nothing

# Two special tokens, one word to hide and one to show.
LEAST_TOKENS = 4


class RetroMaePretraining:
    """Batches of documents, reconstructed from their embeddings."""

    def __init__(
        self,
        model: RetroMae,
        tokenizer: Tokenizer,
        stores: Sequence[TokenStore],
        settings: RetroMaeRun,
        device: str,
        ranks: Ranks,
    ) -> None:
        self._model = model
        self._pad_id = tokenizer.pad_id
        self._vocabulary = MaskingVocabulary.of(tokenizer, device)
        self._settings = settings
        self._device = device
        self._ranks = ranks
        self._batches = DocumentBatches(stores, settings, ranks, LEAST_TOKENS)
        self.steps_per_epoch = self._batches.steps_per_epoch

    def accumulate(self, step: int, scaled: Scaled, before_last: Callable[[], None] = nothing) -> StepReport:
        """As `Stage`."""
        documents = self._batches.documents(step)
        seeds = self._batches.seed(step, 0), self._batches.seed(step, 1)
        parts = [self._draw(*part, seeds) for part in self._batches.sub_batches(documents)]
        predicted = Counter[str]()
        for part in parts:
            predicted.update(part.predicted)
        losses: dict[str, Tensor] = {}
        gradient = VocabularyGradient(len(parts) * self._model.vocabulary_losses)
        for part in parts:
            with autocast(self._device, self._settings.optimization.precision):
                outputs = self._model(part, predicted, gradient)
            if part is parts[-1]:
                before_last()
            scaled(outputs.total() / self._ranks.size).backward()  # type: ignore[no-untyped-call]  # untyped library
            add_losses(losses, outputs)
        return report(losses, documents)

    def evaluate(self) -> Figures:
        """Nothing is held out: what pre-training is worth shows after fine-tuning."""
        return {}

    def _draw(self, numbers: Int64, texts: TokenBatch, seeds: tuple[int, int]) -> RetroMaeInputs:
        settings = self._settings.pretraining
        return draw_retromae_inputs(
            PaddedTexts.of(texts, self._pad_id, self._vocabulary, numbers, self._device),
            self._vocabulary,
            seeds,
            decoding=settings.decoding,
            encoder_ratio=settings.encoder_ratio,
            decoder_ratio=settings.decoder_ratio,
        )


class MaskedPretraining:
    """Batches of documents with tokens hidden, which the model predicts: alone, or as Condenser does."""

    least_tokens = LEAST_TOKENS

    def __init__(
        self,
        model: MaskedLm | Condenser,
        tokenizer: Tokenizer,
        stores: Sequence[TokenStore],
        settings: MlmRun | CondenserRun | CoCondenserRun,
        device: str,
        ranks: Ranks,
    ) -> None:
        self._model = model
        self._pad_id = tokenizer.pad_id
        self._vocabulary = MaskingVocabulary.of(tokenizer, device)
        self._settings = settings
        self._device = device
        self._ranks = ranks
        self._batches = DocumentBatches(stores, settings, ranks, self.least_tokens)
        self.steps_per_epoch = self._batches.steps_per_epoch

    def accumulate(self, step: int, scaled: Scaled, before_last: Callable[[], None] = nothing) -> StepReport:
        """As `Stage`."""
        documents, seed = self._batches.documents(step), self._batches.seed(step)
        parts = [self._draw(*part, seed) for part in self._batches.sub_batches(documents)]
        predicted = sum(part.predicted for part in parts)
        losses: dict[str, Tensor] = {}
        gradient = VocabularyGradient(len(parts) * self._model.vocabulary_losses)
        for part in parts:
            outputs = self._forward(part, predicted, gradient)
            if part is parts[-1]:
                before_last()
            scaled(outputs.total() / self._ranks.size).backward()  # type: ignore[no-untyped-call]  # untyped library
            add_losses(losses, outputs)
        return report(losses, documents)

    def evaluate(self) -> Figures:
        """Nothing is held out: what pre-training is worth shows after fine-tuning."""
        return {}

    def _draw(self, numbers: Int64, texts: TokenBatch, seed: int) -> MaskedText:
        padded = PaddedTexts.of(texts, self._pad_id, self._vocabulary, numbers, self._device)
        ratio = self._settings.pretraining.ratio
        return mask_tokens(padded, ratio=ratio, vocabulary=self._vocabulary, seed=seed)

    def _forward(self, part: MaskedText, predicted: int, gradient: VocabularyGradient) -> PretrainingOutputs:
        with autocast(self._device, self._settings.optimization.precision):
            outputs: PretrainingOutputs = self._model(part, predicted, gradient)
        return PretrainingOutputs(outputs.embeddings.float(), outputs.losses)


class CoCondenserPretraining(MaskedPretraining):
    """Condenser with two spans of each document, which are also told from those of other documents."""

    # Each of two spans needs what a document needs, but they share the special tokens.
    least_tokens = 2 * LEAST_TOKENS - 2

    def __init__(
        self,
        model: Condenser,
        tokenizer: Tokenizer,
        stores: Sequence[TokenStore],
        settings: CoCondenserRun,
        device: str,
        ranks: Ranks,
    ) -> None:
        super().__init__(model, tokenizer, stores, settings, device, ranks)
        self._condenser = model
        self._contrast = settings.pretraining

    def accumulate(self, step: int, scaled: Scaled, before_last: Callable[[], None] = nothing) -> StepReport:
        """As `Stage`."""
        settings, seed = self._contrast, self._batches.seed(step)
        generator = np.random.default_rng(self._batches.seed(step, 1))
        # Of like length first, so that the two spans of a document stay in one sub-batch.
        documents = self._batches.sub_batches(self._batches.documents(step))
        spans = [sample_spans(part, settings.span_tokens, generator) for _, part in documents]
        numbers = [(2 * rows[:, None] + np.arange(2)).ravel() for rows, _ in documents]
        parts = [self._draw(*part, seed) for part in zip(numbers, spans, strict=True)]
        predicted = sum(part.predicted for part in parts)
        losses: dict[str, Tensor] = {}
        gradient = VocabularyGradient(len(parts) * self._model.vocabulary_losses)

        def embed(part: MaskedText) -> PretrainingOutputs:
            with autocast(self._device, self._settings.optimization.precision):
                return PretrainingOutputs(self._condenser.embed(part).float(), {})

        def contrast(encoded: list[PretrainingOutputs]) -> Tensor:
            embeddings = gather(torch.cat([outputs.embeddings for outputs in encoded]), self._ranks)
            loss = span_contrastive_loss(
                embeddings, temperature=settings.span_temperature, normalize=settings.normalize_spans
            )
            losses["spans"] = loss.detach()
            return scaled(settings.span_weight * loss / self._ranks.size)

        def forward(part: MaskedText) -> tuple[PretrainingOutputs, Tensor]:
            outputs = self._forward(part, predicted, gradient)
            add_losses(losses, outputs)
            return outputs, scaled(outputs.total() / self._ranks.size)

        cached_backward(parts, embed, contrast, forward, before_last)
        return report(losses, *spans, factors={"spans": settings.span_weight})


def add_losses(losses: dict[str, Tensor], outputs: PretrainingOutputs) -> None:
    """Adds a sub-batch's losses, of which each is its share of the batch's."""
    for name, loss in outputs.losses.items():
        losses[name] = losses[name] + loss.detach() if name in losses else loss.detach()


def report(
    losses: dict[str, Tensor], *texts: TokenBatch, factors: Mapping[str, float] = MappingProxyType({})
) -> StepReport:
    """The losses by name with their sum, in which some have a factor, and the tokens read."""
    total = torch.stack([factors.get(name, 1.0) * loss for name, loss in losses.items()]).sum()
    return StepReport({"loss": total, **losses}, sum(int(batch.offsets[-1]) for batch in texts))
