"""RetroMAE: an encoder is trained by a decoder so weak that it needs the text's embedding.

Xiao et al. 2022, arXiv 2205.12035. Letters in shapes: B texts, L tokens, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tercet.models.checkpoint import EncodingSettings
from tercet.models.heads import pool
from tercet.training.pretraining.body_states import (
    last_states,
    position_embeddings,
    require_supported,
    token_embeddings,
    word_embeddings,
)
from tercet.training.pretraining.masking import MaskedText, PaddedTexts, content_predicted, mask_tokens
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary
from tercet.training.pretraining.mlm_head import MlmHead
from tercet.training.pretraining.outputs import PretrainingOutputs
from tercet.training.pretraining.sampled_attention import SampledAttention
from tercet.training.pretraining.transformer_layer import TransformerLayer
from tercet.training.pretraining.vocabulary_gradient import VocabularyGradient

Decoding = Literal["basic", "enhanced"]


@dataclass(frozen=True, slots=True)
class RetroMaeInputs:
    """All that was drawn at random for a batch, so that it can be cut up or run again.

    encoder, decoder: what either reads and predicts; sample: which tokens each position attends to in
    enhanced decoding, or None for basic decoding.
    """

    encoder: MaskedText
    decoder: MaskedText
    sample: SampledAttention | None

    @property
    def predicted(self) -> dict[str, int]:
        """Predicted tokens by name of the loss."""
        return {"encoder_mlm": self.encoder.predicted, "decoder": self.decoder.predicted}

    def rows(self, rows: slice) -> RetroMaeInputs:
        """Some of the texts, for a sub-batch."""
        sample = None if self.sample is None else self.sample.rows(rows)
        return RetroMaeInputs(self.encoder.rows(rows), self.decoder.rows(rows), sample)


def draw_retromae_inputs(
    texts: PaddedTexts,
    vocabulary: MaskingVocabulary,
    seeds: tuple[int, int],
    *,
    decoding: Decoding = "enhanced",
    encoder_ratio: float = 0.3,
    decoder_ratio: float = 0.5,
) -> RetroMaeInputs:
    """Masks of encoder and decoder for a padded batch. seeds: of the encoder's draws and of the decoder's.

    The paper's ratios are 0.15 to 0.3 and 0.5 to 0.7. Basic decoding hides words behind the mask token alone:
    random and unchanged tokens prepare a model for text without masks, and the decoder is thrown away.
    Enhanced decoding reads the text as it is and predicts all tokens, but for special ones, which carry
    nothing; its attention hides them.

    Raises ValueError for a ratio out of range.
    """
    encoder = mask_tokens(texts, ratio=encoder_ratio, vocabulary=vocabulary, seed=seeds[0])
    if decoding == "basic":
        decoder = mask_tokens(
            texts, ratio=decoder_ratio, vocabulary=vocabulary, seed=seeds[1], random=0.0, kept=0.0
        )
        return RetroMaeInputs(encoder, decoder, None)
    sample = SampledAttention.of(texts, decoder_ratio, seeds[1])
    return RetroMaeInputs(encoder, content_predicted(texts, vocabulary), sample)


class RetroMae(nn.Module):
    """A body with its RetroMAE decoder; after pre-training only `body` is kept.

    The text's embedding is the pooled last hidden state, by the checkpoint's own pooling (the paper's is
    CLS). Encoder and decoder share the prediction head, as in the released code.
    """

    vocabulary_losses = 2

    def __init__(
        self, body: nn.Module, head: MlmHead, settings: EncodingSettings, *, decoder_layers: int = 1
    ) -> None:
        """settings: of the checkpoint. Raises UnsupportedError for a body of another family."""
        super().__init__()
        require_supported(body)
        self.body = body
        self.head = head
        self.decoder = nn.ModuleList(TransformerLayer(body.config) for _ in range(decoder_layers))
        self.settings = settings

    def forward(
        self,
        inputs: RetroMaeInputs,
        batch_predicted: Mapping[str, int] | None = None,
        gradient: VocabularyGradient | None = None,
    ) -> PretrainingOutputs:
        """Losses `encoder_mlm` and `decoder`, each a mean over the predicted tokens.

        batch_predicted: `predicted` of the whole batch where `inputs` are some of its rows; the losses of
        all its parts, and their gradients, then add up to those of the whole. gradient: gathers that of the
        word embeddings.
        """
        tokens = batch_predicted or inputs.predicted
        words = word_embeddings(self.body)
        encoder, decoder = inputs.encoder, inputs.decoder
        hidden = last_states(self.body, encoder)
        embeddings = pool(hidden, encoder.mask, self.settings)
        decoded = self.decode(embeddings, inputs)
        losses = {
            "encoder_mlm": self.head.loss(hidden, encoder, words, tokens["encoder_mlm"], gradient),
            "decoder": self.head.loss(decoded, decoder, words, tokens["decoder"], gradient),
        }
        return PretrainingOutputs(embeddings, losses)

    def decode(self, embeddings: Tensor, inputs: RetroMaeInputs) -> Tensor:
        """States float[B, L, D] of the decoder from embeddings float[B, D].

        Context: the embedding h in place of the first token, then the tokens with their positions (as the
        body embeds them, normalization included). Queries: the same in basic decoding; in enhanced decoding
        h + p_i, with the raw position embeddings, as in the released code.

        In basic decoding each further layer reads the states below it, as in BERT. In enhanced decoding it
        reads the same context by the same sample, and takes the states below it as queries alone. States as
        context would show a token to its own prediction: those of other positions have seen it.
        """
        first = embeddings.unsqueeze(1)
        context = torch.cat([first, token_embeddings(self.body, inputs.decoder.ids)[:, 1:]], dim=1)
        if inputs.sample is None:
            present = inputs.decoder.mask.bool().unsqueeze(1)
            for layer in self.decoder:
                context = layer(context, context, present)
            return context
        states = first + position_embeddings(self.body, context.shape[1])
        for layer in self.decoder:
            states = layer(states, context, inputs.sample)
        return states
