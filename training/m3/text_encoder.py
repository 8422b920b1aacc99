"""From token ids to the three representations with gradients, in sub-batches of like length."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tercet.models.adapters.parts import Hypernetwork
from tercet.models.batching import plan_batches
from tercet.models.encoder_model import EncoderModel
from tercet.models.representations import Bool, Int64, LexicalKind, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.modules import RoutedModules
from tercet.training.passes import states
from tercet.training.precision import autocast
from tercet.training.settings.data import PairSource
from tercet.training.settings.optimization import Precision
from tercet.training.transfer import on_device


class TextEncoder:
    """A model that trains, with what its passes need. The heads always work in float32.

    modules: of the body, each text going through those that their router chooses; hypernetwork: of the body,
    with bottlenecks by source; None without.
    """

    def __init__(
        self,
        model: EncoderModel,
        tokenizer: Tokenizer,
        sub_batch_tokens: int,
        precision: Precision,
        device: str,
        modules: RoutedModules | None = None,
        hypernetwork: Hypernetwork | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.sub_batch_tokens = sub_batch_tokens
        self.precision = precision
        self.device = device
        self.modules = modules
        self._hypernetwork = hypernetwork
        self._special_ids = np.array(sorted(tokenizer.special_ids))

    @property
    def lexical(self) -> LexicalKind:
        """Whether scores multiply a query's lexical weights by idf, as the checkpoint's collections do."""
        return self.model.heads.settings.lexical

    def choose(self, source: PairSource) -> None:
        """Texts from now on are of this source."""
        if self._hypernetwork is not None and source.tags is not None:
            self._hypernetwork.choose(source.tags.language, source.tags.task)

    def hidden(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Last hidden states float32[B, L, d] and mask int64[B, L], through the modules if any."""
        hidden, mask, _ = self._routed(batch)
        return hidden, mask

    def _routed(self, batch: TokenBatch) -> tuple[Tensor, Tensor, Tensor | None]:
        """As `hidden`, with the scores float32[B, N] of the modules where there are any."""
        if self.modules is None:
            return *self._pass(batch), None
        scores = self.modules(self._base_dense(batch))
        with self.modules.acting(scores):
            return *self._pass(batch), scores

    @torch.no_grad()
    def _base_dense(self, batch: TokenBatch) -> Tensor:
        """Dense vectors float32[B, D] by the base as it is served, without dropout."""
        body = self.model.body
        training = body.training
        body.eval()
        try:
            return self.model.heads.dense(*self._pass(batch))
        finally:
            body.train(training)

    def _pass(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        ids, mask = (on_device(array, self.device) for array in batch.padded(self.tokenizer.pad_id))
        with autocast(self.device, self.precision):
            last = states(self.model.body, ids, mask, batch.lengths)
        return last.float(), mask

    def encode(self, batch: TokenBatch) -> EncodedTexts:
        """The three outputs as `tercet.models.heads` defines them."""
        hidden, mask, scores = self._routed(batch)
        heads = self.model.heads
        ids, present = batch.padded(self.tokenizer.pad_id)
        words = present.astype(np.bool_)
        words[words] = ~self.tokenizer.is_instruction(batch)
        words &= ~np.isin(ids, self._special_ids)
        return EncodedTexts(
            dense=heads.dense(hidden, mask),
            lexical=heads.token_weights(hidden) * on_device(words, self.device),
            token_ids=ids,
            is_term=words,
            vectors=heads.token_vectors(hidden[:, 1:]),
            vector_mask=self._has_vector(batch.lengths),
            module_scores=scores,
        )

    def _has_vector(self, lengths: Int64) -> Bool:
        """Which tokens after the first have a vector, bool[B, L−1]: none that MCLS inserted, but the last."""
        position = np.arange(1, int(lengths.max(initial=1)))
        present: Bool = position < lengths[:, None]
        every = self.model.heads.settings.mcls_every
        if every is None:
            return present
        kept: Bool = present & ((position % every != 0) | (position == lengths[:, None] - 1))
        return kept

    def parts(self, batch: TokenBatch) -> tuple[list[TokenBatch], Int64]:
        """The texts in sub-batches of like length, and the order int64[B] that brings them back."""
        plan = plan_batches(batch.lengths, self.sub_batch_tokens)
        order = np.argsort(np.concatenate(plan), kind="stable")
        return [batch.take(rows) for rows in plan], order

    def encode_all(self, batch: TokenBatch) -> EncodedTexts:
        """All texts, in as many passes as their tokens need, in their order."""
        parts, order = self.parts(batch)
        return EncodedTexts.concatenate([self.encode(part) for part in parts], order)
