"""nDCG@10 of the held-out pairs: chooses the checkpoint, so that no test set does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from tercet.models.batching import plan_batches
from tercet.models.representations import Bool, Float32, Int64
from tercet.training.data.pair_table import PairTable
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import ALONE, Ranks, gather_array
from tercet.training.m3.document_frequencies import SourceIdf
from tercet.training.m3.encoded_texts import SIDES, EncodedTexts
from tercet.training.m3.scores import side_scores
from tercet.training.m3.shares import share_of
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.run import Stage
from tercet.training.step import Figures

CUTOFF = 10


def development_figures(
    encoder: TextEncoder,
    table: PairTable,
    sides: Sequence[str] = SIDES,
    idf: SourceIdf | None = None,
    ranks: Ranks = ALONE,
) -> dict[str, float]:
    """Mean nDCG@10 of these sides and, of several, their plain sum over a source's development queries.

    Each query ranks the table's pool; its own positives are relevant. idf: of the source, if scores take it.
    """
    encoder.choose(table.settings)
    relevant = np.zeros((len(table.development), len(table.pool)), np.bool_)
    for row, pair in enumerate(table.development):
        relevant[row, np.searchsorted(table.pool, table.positives.of(pair))] = True
    scored = all_scores(encoder, table, sides, idf, ranks)
    figures = {side: ndcg(scores, relevant, CUTOFF) for side, scores in zip(sides, scored, strict=True)}
    return figures if len(sides) == 1 else {**figures, "sum": ndcg(scored.sum(axis=0), relevant, CUTOFF)}


def judged_sides(stage: Stage) -> tuple[str, ...]:
    """The sides that a stage trains, and so reports."""
    return ("dense",) if stage == "contrastive" else SIDES


def judged_side(stage: Stage) -> str:
    """The side by which a checkpoint is judged: the plain sum, or dense where nothing else trains."""
    sides = judged_sides(stage)
    return sides[0] if len(sides) == 1 else "sum"


def mean_of(figures: Figures, side: str) -> float:
    """nDCG@10 of a side, averaged over the sources."""
    return float(np.mean([sides[side] for sides in figures.values()]))


def all_scores(
    encoder: TextEncoder,
    table: PairTable,
    sides: Sequence[str] = SIDES,
    idf: SourceIdf | None = None,
    ranks: Ranks = ALONE,
) -> Float32:
    """Scores float32[sides, B, N] of development queries and pool, in sub-batches.

    Each process scores its share of the pool.
    """
    pool = share_of(table.pool, ranks)
    scores = np.zeros((len(sides), len(table.development), len(pool)), np.float32)
    query_blocks = [
        (rows, queries if idf is None else idf.weighted(queries))
        for rows, queries in encoded_blocks(encoder, table.queries, table.development)
    ]
    for columns, passages in encoded_blocks(encoder, table.passages, pool):
        for rows, queries in query_blocks:
            block = side_scores(queries, passages, sides)
            for number, side in enumerate(sides):
                scores[number][np.ix_(rows, columns)] = block[side].cpu().numpy()
    by_passage = gather_array(np.ascontiguousarray(scores.transpose(2, 0, 1)), ranks)
    return by_passage.transpose(1, 2, 0)


def encoded_blocks(
    encoder: TextEncoder, store: TokenStore, rows: Int64
) -> Iterator[tuple[Int64, EncodedTexts]]:
    """Places in `rows` and their texts' representations, a sub-batch at a time, without graphs."""
    for columns in plan_batches(store.lengths[rows], encoder.sub_batch_tokens):
        with torch.no_grad():
            encoded = encoder.encode(store.take(rows[columns]))
        yield columns, encoded


def ndcg(scores: npt.NDArray[np.floating], relevant: Bool, cutoff: int) -> float:
    """Mean nDCG at the cutoff of B queries over N passages: scores float32[B, N], relevant bool[B, N].

    Each query has a relevant passage; all count the same.
    """
    cutoff = min(cutoff, scores.shape[1])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :cutoff]
    discounts = 1 / np.log2(np.arange(2, cutoff + 2))
    gains = np.take_along_axis(relevant, order, axis=1) @ discounts
    ideal = np.cumsum(discounts)[np.minimum(relevant.sum(axis=1), cutoff) - 1]
    return float((gains / ideal).mean())
