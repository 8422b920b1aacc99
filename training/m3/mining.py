"""Hard negatives among the passages themselves, ranked by the encoder as trained so far (ANCE), or by BM25.

By the dense side alone, every passage is scored on the device that trains, which on a GPU takes seconds for
100,000; else an index of the passages ranks them. Each process encodes its share of the passages and ranks
for its share of the queries, part by part. Parts are kept on disk until the round is done, so that a run
that was killed within it goes on with the next part.

Sources: Xiong et al. 2020, arXiv 2007.00808; BM25's negatives: Karpukhin et al. 2020, arXiv 2004.04906.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tercet.models.batching import plan_batches
from tercet.models.representations import Float32, Int64
from tercet.training.data.pair_table import PairTable, RaggedRows
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import ALONE, Ranks, gather, gather_array
from tercet.training.files import replacing
from tercet.training.m3.passage_index import PassageIndex
from tercet.training.m3.shares import share_of
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.objective import MinedBy, MiningSettings

# By the dense side each has a score for every passage.
QUERIES_AT_ONCE = 256
VECTORS_AT_ONCE = 16_384
Arrays = Mapping[str, npt.NDArray[np.generic]]


def mine_negatives(
    encoder: TextEncoder,
    table: PairTable,
    settings: MiningSettings,
    by: MinedBy,
    folder: Path,
    ranks: Ranks = ALONE,
) -> RaggedRows:
    """For every training pair the rows of passages that rank high and are no positives; none for others.

    They are passages of training pairs: those held out stay unseen. by: what ranks them; `sum` is the plain
    one. folder: of this source in this round, which all processes share; whoever calls removes it.
    """
    encoder.choose(table.settings)
    folder.mkdir(parents=True, exist_ok=True)
    own = share_of(table.training, ranks)
    parts = np.split(own, range(QUERIES_AT_ONCE, len(own), QUERIES_AT_ONCE))
    if by == "dense":
        passages = table.training_passages()
        vectors = vectors_of_all(encoder, table.passages, passages, folder, ranks)
        found = [
            kept(
                folder / f"found-{ranks.rank}-{n}.npz",
                partial(by_dense, encoder, table, settings, passages, vectors, part),
            )
            for n, part in enumerate(parts)
        ]
    else:
        index = PassageIndex(encoder, table, by, folder, ranks)
        found = [
            kept(folder / f"found-{ranks.rank}-{n}.npz", partial(by_index, index, table, settings, part))
            for n, part in enumerate(parts)
        ]
        index.close()
    counts = gather_array(np.concatenate([part["counts"] for part in found]).astype(np.int64), ranks)
    rows = gather_array(np.concatenate([part["rows"] for part in found]).astype(np.int64), ranks)
    negatives: list[Int64] = [np.zeros(0, np.int64)] * len(table.queries)
    for pair, mined in zip(table.training.tolist(), np.split(rows, np.cumsum(counts)[:-1]), strict=True):
        negatives[pair] = mined
    return RaggedRows.pack(negatives)


def kept(path: Path, compute: Callable[[], Arrays]) -> Arrays:
    """Arrays that a killed run left in a file, or else computed now and written there as a whole."""
    if path.is_file():
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    computed = compute()
    with replacing(path) as file:
        np.savez(file, **computed)  # type: ignore[arg-type]  # typed as if a name could be allow_pickle
    return computed


def by_index(index: PassageIndex, table: PairTable, settings: MiningSettings, pairs: Int64) -> Arrays:
    """The negatives of some training pairs that an index finds, one pair's rows after another's."""
    return packed(
        [
            hard_negatives(rows, scores, table.positives.of(pair), best, settings)
            for pair, (rows, scores, best) in zip(
                pairs.tolist(), index.ranked(pairs, settings.last), strict=True
            )
        ]
    )


def by_dense(
    encoder: TextEncoder,
    table: PairTable,
    settings: MiningSettings,
    passages: Int64,
    vectors: Tensor,
    pairs: Int64,
) -> Arrays:
    """The negatives of some training pairs among the passages whose vectors are nearest to their query's.

    passages: rows of all training passages, int64[N]; vectors: theirs, float32[N, D].
    """
    found = []
    scores = dense_vectors(encoder, table.queries, pairs) @ vectors.T
    top = scores.topk(min(settings.last, len(passages)), dim=1)
    values, columns = top.values.cpu().numpy(), top.indices.cpu().numpy()
    for row, pair in enumerate(pairs.tolist()):
        own = table.positives.of(pair)
        own_columns = torch.from_numpy(np.searchsorted(passages, own)).to(scores.device)
        best = float(scores[row, own_columns].max())
        found.append(hard_negatives(passages[columns[row]], values[row], own, best, settings))
    return packed(found)


def packed(found: list[Int64]) -> Arrays:
    """Rows of several pairs, with how many each has."""
    counts = np.array([len(rows) for rows in found], np.int64)
    return {"counts": counts, "rows": np.concatenate([np.zeros(0, np.int64), *found])}


def vectors_of_all(
    encoder: TextEncoder, store: TokenStore, rows: Int64, folder: Path, ranks: Ranks
) -> Tensor:
    """The dense vectors of passages, float32[len(rows), D], of which each process encodes its share."""
    own = share_of(rows, ranks)
    device = next(encoder.model.parameters()).device

    def vectors(part: Int64) -> Arrays:
        return {"vectors": dense_vectors(encoder, store, part).cpu().numpy()}

    parts = [
        kept(folder / f"vectors-{ranks.rank}-{n}.npz", partial(vectors, part))["vectors"]
        for n, part in enumerate(np.split(own, range(VECTORS_AT_ONCE, len(own), VECTORS_AT_ONCE)))
    ]
    return gather(torch.from_numpy(np.concatenate(parts)).to(device), ranks)


def random_negatives(
    table: PairTable, settings: MiningSettings, generator: np.random.Generator
) -> RaggedRows:
    """For every training pair as many random passages as `hard_negatives` may find; none for others.

    They are passages of training pairs, and no positives of their own.
    """
    negatives: list[Int64] = [np.zeros(0, np.int64)] * len(table.queries)
    passages = table.training_passages()
    count = settings.last - settings.first + 1
    for pair in table.training.tolist():
        own = table.positives.of(pair)
        drawn = generator.choice(passages, min(len(passages), count + len(own)), replace=False)
        negatives[pair] = drawn[~np.isin(drawn, own)][:count]
    return RaggedRows.pack(negatives)


def hard_negatives(
    rows: Int64, scores: Float32, positives: Int64, best: float, settings: MiningSettings
) -> Int64:
    """Of ranked rows those from rank `first` on, less positives and likely unlabelled ones.

    rows and scores: best first; best: the score of the best positive, whether or not it is among them.
    """
    others = ~np.isin(rows, positives)
    rows, scores = rows[others][settings.first - 1 :], scores[others][settings.first - 1 :]
    return rows[scores <= settings.ceiling * best]


def dense_vectors(encoder: TextEncoder, store: TokenStore, rows: Int64) -> Tensor:
    """Unit vectors float32[len(rows), D] of texts, in the given order, on the encoder's device."""
    if not len(rows):  # of one text, to know their width
        return dense_vectors(encoder, store, np.zeros(1, np.int64))[:0]
    plan = plan_batches(store.lengths[rows], encoder.sub_batch_tokens)
    parts = []
    for chosen in plan:
        with torch.inference_mode():
            states, mask = encoder.hidden(store.take(rows[chosen]))
            parts.append(encoder.model.heads.dense(states, mask))
    order = torch.from_numpy(np.argsort(np.concatenate(plan), kind="stable"))
    return torch.cat(parts).index_select(0, order.to(parts[0].device))
