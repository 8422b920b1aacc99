"""Settings that a stage does not read: giving them would change nothing, so they are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType

MORE_THAN_DENSE = tuple(
    f"losses.{name}"
    for name in (
        *("form", "distill", "anchor_colbert", "prior", "prior_scale"),
        *("sum_dense", "sum_sparse", "sum_colbert"),
        *("dense", "sparse", "colbert", "sum"),
        *("distill_dense", "distill_sparse", "distill_colbert"),
    )
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


def given(settings: object, names: tuple[str, ...]) -> Iterator[str]:
    """Those of the names, dotted or not, whose value is not the default."""
    for name in names:
        owner, last = settings, name
        if "." in name:
            table, last = name.split(".")
            owner = getattr(settings, table)
        if getattr(owner, last) != default(owner, last):
            yield name


def default(settings: object, name: str) -> object:
    """The default of a field of a frozen dataclass."""
    (definition,) = (f for f in fields(settings) if f.name == name)  # type: ignore[arg-type]  # a dataclass
    made = definition.default_factory
    return definition.default if made is MISSING else made()
