"""Settings that a stage does not read: giving them would change nothing, so they are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from training.settings.objective import LossSettings

MORE_THAN_DENSE = tuple(
    f"losses.{f.name}" for f in fields(LossSettings) if f.name not in ("temperature", "anchor_dense")
)
RETROMAE = ("pretraining.decoding", "pretraining.encoder_ratio", "pretraining.decoder_ratio")
CONDENSER = ("pretraining.ratio", "pretraining.early_layers", "pretraining.head_layers")
SPANS = tuple(
    f"pretraining.{name}" for name in ("span_tokens", "span_weight", "span_temperature", "normalize_spans")
)
PAIRS = (
    *("heads", "losses", "mining", "data.query_tokens"),
    *("batches.negatives", "batches.neighbours", "batches.gradient_cache"),
)
UNREAD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "finetune": ("pretraining",),
        "contrastive": ("pretraining", "heads", *MORE_THAN_DENSE),
        "retromae": (*PAIRS, *CONDENSER, *SPANS),
        "condenser": (*PAIRS, *RETROMAE, *SPANS),
        "cocondenser": (*PAIRS, *RETROMAE),
    }
)
"""By stage: whole tables, or keys of a table."""
UNREAD_OF_SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pairs": ("language",),
        "titles": (),
        "spans": (),
        "texts": ("train", "development_pairs", "development_passages", "join_up_to", "mine"),
    }
)
"""By the format of a source."""
