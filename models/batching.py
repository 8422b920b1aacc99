"""Length-sorted batches under a token budget, and from a padded batch to packed representations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tercet.models.encoder import EncoderInfo
from tercet.models.errors import EncoderMemoryError
from tercet.models.lexical.reduction import reduce_sparse
from tercet.models.representations import (
    Bool,
    Float32,
    Int64,
    Output,
    Representations,
    Route,
    SparseRows,
    TokenBatch,
    TokenVectors,
    offsets_of,
)
from tercet.models.tokenizer import Tokenizer
from tercet.models.workers import Workers

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class PaddedOutputs:
    """What an engine gives for one padded batch; None where not asked for. Rows of padding are undefined.

    dense: float32[B, D]; sparse: float32[B, L], weight of each token, or ready rows with SPLADE; colbert:
    float32[B, L, C]. An engine without padding gives float32[ΣL] and float32[ΣL, C].
    """

    dense: Float32 | None
    sparse: Float32 | SparseRows | None
    colbert: Float32 | None


Key = TypeVar("Key", bound=Hashable)
Adapters = Sequence[str | Route | None]
"""The adapter of each text, or several by weight; None for the base alone."""
Forward = Callable[[Int64, Int64, Sequence[Output], Adapters], PaddedOutputs]


def plan_batches(lengths: Int64, budget_tokens: int) -> list[Int64]:
    """Rows of each batch: longest texts first, padded tokens (texts × longest) within the budget.

    A text longer than the budget makes a batch of its own.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = start + max(1, budget_tokens // longest)
        batches.append(order[start:end])
        start = end
    return batches


def plan_passes(offsets: Int64, budget_tokens: int) -> list[tuple[int, int]]:
    """First and last text, exclusive, of each pass: texts in their order, as many as the budget takes.

    offsets: int64[B+1]. A text longer than the budget goes alone.
    """
    spans = []
    start, texts = 0, len(offsets) - 1
    while start < texts:
        fitting = int(np.searchsorted(offsets, offsets[start] + budget_tokens, side="right")) - 1
        end = max(start + 1, min(fitting, texts))
        spans.append((start, end))
        start = end
    return spans


def encode_in_batches(
    batch: TokenBatch,
    outputs: Sequence[Output],
    budget_tokens: int,
    tokenizer: Tokenizer,
    info: EncoderInfo,
    forward: Forward,
    pool: Workers | ThreadPoolExecutor | None = None,
    adapters: Adapters | None = None,
    *,
    mixes_adapters: bool = False,
    pads: bool = True,
    release: Callable[[], None] = lambda: None,
) -> Representations:
    """Runs `forward` over token ids and mask, int64[B, L] each, batch by batch; results in input order.

    Outputs that the encoder lacks are left out. pool: its threads work on batches side by side. adapters: of
    each text, by default none; mixes_adapters: whether a batch may hold texts of several; pads: whether those
    of like length go together, as with adapters they always do. A batch for which memory does not suffice is
    encoded in halves, after `release` gave back what the engine keeps.
    Raises EncoderMemoryError where it does not suffice for one text by itself.
    """
    outputs = info.given(outputs)
    if len(batch) == 0:
        return _nothing(outputs, info)
    chosen: Adapters = [None] * len(batch) if adapters is None else adapters
    adapted = any(chosen)

    def encode_rows(rows: Int64) -> Representations:
        part = batch.take(rows)
        ids, mask = part.padded(tokenizer.pad_id)
        own = [chosen[row] for row in rows.tolist()] if adapted else chosen[: len(rows)]
        return pack(part, forward(ids, mask, outputs, own), tokenizer)

    def encode_what_fits(rows: Int64) -> Representations:
        try:
            return encode_rows(rows)
        except (EncoderMemoryError, MemoryError) as error:
            reason = str(error)
        # Only now, since the exception kept alive what the failed pass had allocated.
        warn_of_halves(batch.lengths[rows], reason)
        release()
        return Representations.concatenate([encode_what_fits(half) for half in np.array_split(rows, 2)])

    if len(batch) == 1:  # a query: nothing to plan
        return encode_what_fits(np.zeros(1, np.int64))
    mixed = mixes_adapters or not adapted
    if pads or adapted:
        groups = [np.arange(len(batch))] if mixed else list(rows_by_adapter(chosen).values())
        plan = [group[rows] for group in groups for rows in plan_batches(batch.lengths[group], budget_tokens)]
    else:
        plan = [np.arange(*span) for span in plan_passes(batch.offsets, budget_tokens)]
    side_by_side = map if pool is None or len(plan) == 1 else pool.map
    parts = list(side_by_side(encode_what_fits, plan))
    return Representations.concatenate(parts).in_order(np.concatenate(plan))


def warn_of_halves(lengths: Int64, reason: str) -> None:
    """Says that a batch of texts with these lengths int64[N] is tried again in halves.

    Raises EncoderMemoryError where it is one text.
    """
    tokens = int(lengths.max())
    if len(lengths) == 1:
        raise EncoderMemoryError(
            f"a text of {tokens} tokens does not fit into the encoder's memory: shorten it with "
            "max_length, or give the encoder more memory"
        )
    log.warning(
        "a batch of %d texts of at most %d tokens does not fit into memory and is encoded in halves; "
        "a smaller batch_tokens avoids that (%s)",
        *(len(lengths), tokens, reason),
    )


def rows_by_adapter(adapters: Sequence[Key]) -> dict[Key, Int64]:
    """The rows int64[R] of each adapter, in order of first appearance."""
    rows: dict[Key, list[int]] = {}
    for row, adapter in enumerate(adapters):
        rows.setdefault(adapter, []).append(row)
    return {adapter: np.array(members, np.int64) for adapter, members in rows.items()}


def pack(batch: TokenBatch, padded: PaddedOutputs, tokenizer: Tokenizer) -> Representations:
    """Representations of one batch, without padding; special tokens and instructions have no weights."""
    lengths = batch.lengths
    present: Bool = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
    sparse = colbert = None
    if isinstance(padded.sparse, SparseRows):
        sparse = padded.sparse
    elif padded.sparse is not None:
        values = padded.sparse if padded.sparse.ndim == 1 else padded.sparse[present]
        weights = np.where(tokenizer.is_instruction(batch), 0, values)
        sparse = reduce_sparse(batch.token_ids, weights, batch.offsets, tokenizer.special_ids)
    if padded.colbert is not None:
        kept = present.copy()
        kept[present] = having = tokenizer.has_vector(batch)
        vectors = padded.colbert[having if padded.colbert.ndim == 2 else kept]
        colbert = TokenVectors(vectors, offsets_of(kept.sum(1)))
    return Representations(lengths, batch.truncated, padded.dense, sparse, colbert)


def _nothing(outputs: Sequence[Output], info: EncoderInfo) -> Representations:
    """Representations of no texts at all."""
    start = np.zeros(1, np.int64)
    return Representations(
        np.zeros(0, np.int64),
        np.zeros(0, np.bool_),
        np.zeros((0, info.dense_dimension), np.float32),
        SparseRows(start, np.zeros(0, np.int32), np.zeros(0, np.float32)),
        TokenVectors(np.zeros((0, info.colbert_dimension), np.float32), start),
    ).keep(outputs)
