"""Settings of `tercet train` about what pre-training hides and predicts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tercet.training.settings.table import AtLeast1, Factor, Positive, Share, Table


class RetroMaeSettings(Table):
    """Of RetroMAE: see `tercet.training.pretraining.retromae`. decoder_layers: transformer layers of the
    decoder.
    """

    decoding: Literal["basic", "enhanced"] = "enhanced"
    encoder_ratio: Share = 0.3
    decoder_ratio: Share = 0.5
    decoder_layers: Annotated[int, Field(ge=1, le=3)] = 1


class MlmSettings(Table):
    """Of masked language modelling. ratio: of the tokens that are hidden."""

    ratio: Share = 0.15


class CondenserSettings(MlmSettings):
    """Of Condenser: see `tercet.training.pretraining.condenser`. early_layers: by default half of the
    body's.
    """

    early_layers: int | None = None
    head_layers: AtLeast1 = 2


class CoCondenserSettings(CondenserSettings):
    """Of coCondenser: what Condenser has, and a contrast of spans: see
    `tercet.training.pretraining.span_contrast`.

    span_tokens: of each span; span_weight: factor of the contrast; normalize_spans: whether embeddings are.
    """

    span_tokens: Annotated[int, Field(ge=3)] = 128
    span_weight: Factor = 1.0
    span_temperature: Positive = 1.0
    normalize_spans: bool = False
