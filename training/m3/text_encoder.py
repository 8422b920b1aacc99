"""From token ids to the three representations with gradients, in sub-batches of like length."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from models.batching import plan_batches
from models.representations import LexicalKind, TokenBatch
from models.tokenizer import Tokenizer
from models.torch_encoder import EncoderModel
from training.m3.encoded_texts import EncodedTexts
from training.precision import autocast
from training.settings.optimization import Precision


class TextEncoder:
    """A model that trains, with what its passes need. The heads always work in float32."""

    def __init__(
        self,
        model: EncoderModel,
        tokenizer: Tokenizer,
        sub_batch_tokens: int,
        precision: Precision,
        device: str,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.sub_batch_tokens = sub_batch_tokens
        self.precision = precision
        self.device = device
        self._special_ids = torch.tensor(sorted(tokenizer.special_ids), device=device)

    @property
    def lexical(self) -> LexicalKind:
        """Whether scores multiply a query's lexical weights by idf, as the checkpoint's collections do."""
        return self.model.heads.settings.lexical

    def hidden(self, batch: TokenBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Last hidden states float32[B, L, d], token ids and mask int64[B, L] of one padded pass."""
        ids, mask = (torch.from_numpy(array).to(self.device) for array in batch.padded(self.tokenizer.pad_id))
        with autocast(self.device, self.precision):
            states = self.model.hidden(ids, mask)
        return states.float(), ids, mask

    def encode(self, batch: TokenBatch) -> EncodedTexts:
        """One padded pass, the three outputs as `models.heads` defines them."""
        states, ids, mask = self.hidden(batch)
        heads = self.model.heads
        words = mask.bool() & ~torch.isin(ids, self._special_ids)
        words[mask.bool()] &= ~torch.from_numpy(self.tokenizer.is_instruction(batch)).to(self.device)
        vector_mask = mask[:, 1:].bool()
        every = heads.settings.mcls_every
        if every is not None:  # the CLS inserted for MCLS have no token vector; the last special token has
            position = torch.arange(1, mask.shape[1], device=mask.device)
            last = position == mask.sum(dim=1, keepdim=True) - 1
            vector_mask = vector_mask & ((position % every != 0) | last)
        return EncodedTexts(
            dense=heads.dense(states, mask),
            lexical=heads.token_weights(states) * words,
            token_ids=ids,
            is_term=words,
            vectors=heads.token_vectors(states[:, 1:]),
            vector_mask=vector_mask,
        )

    def parts(self, batch: TokenBatch) -> tuple[list[TokenBatch], Tensor]:
        """The texts in sub-batches of like length, and the order int64[B] that brings them back."""
        plan = plan_batches(batch.lengths, self.sub_batch_tokens)
        order = np.argsort(np.concatenate(plan), kind="stable")
        return [batch.take(rows) for rows in plan], torch.from_numpy(order).to(self.device)

    def encode_all(self, batch: TokenBatch) -> EncodedTexts:
        """All texts, in as many passes as their tokens need, in their order."""
        parts, order = self.parts(batch)
        return EncodedTexts.concatenate([self.encode(part) for part in parts], order)
