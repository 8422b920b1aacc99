"""Hard negatives among the passages themselves, ranked by the encoder as trained so far (ANCE).

By the sum, an index of the passages ranks them; by the dense side alone, every passage is scored on the
device that trains, which on a GPU takes seconds for 100,000. Each process encodes its share of the passages
and ranks for its share of the queries.

Source: Xiong et al. 2020, arXiv 2007.00808.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import In
from tercet.index.snapshot import Snapshot
from tercet.models.batching import PaddedOutputs, pack, plan_batches
from tercet.models.representations import Float32, Int64, Representations
from tercet.training.data.pair_table import PairTable, RaggedRows
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import ALONE, Ranks, gather, gather_array, wait_for_all
from tercet.training.m3.shares import representations_of_all, share_of
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.objective import MiningSettings

TEXTS_AT_ONCE = 1024
# Each has a score for every passage.
QUERIES_AT_ONCE = 256
SCRATCH = "mining-"
ROW = "row"


def mine_negatives(
    encoder: TextEncoder,
    table: PairTable,
    settings: MiningSettings,
    side: str,
    folder: Path,
    ranks: Ranks = ALONE,
) -> RaggedRows:
    """For every training pair the rows of passages that rank high and are no positives; none for others.

    They are passages of training pairs: those held out stay unseen. side: what ranks them, `dense` alone or
    the plain `sum`. An index lies in a temporary folder below `folder`, which all processes share.
    """
    if side == "dense":
        mined = dict(by_dense(encoder, table, settings, ranks))
    else:
        mined = dict(by_sum(encoder, table, settings, folder, ranks))
    own = [mined[pair] for pair in share_of(table.training, ranks).tolist()]
    counts = gather_array(np.array([len(rows) for rows in own], np.int64), ranks)
    rows = gather_array(np.concatenate([np.zeros(0, np.int64), *own]), ranks)
    negatives: list[Int64] = [np.zeros(0, np.int64)] * len(table.queries)
    for pair, part in zip(table.training.tolist(), np.split(rows, np.cumsum(counts)[:-1]), strict=True):
        negatives[pair] = part
    return RaggedRows.pack(negatives)


def by_sum(
    encoder: TextEncoder, table: PairTable, settings: MiningSettings, folder: Path, ranks: Ranks
) -> Iterator[tuple[int, Int64]]:
    """This process's training pairs with what an index finds for their query by the plain sum."""
    limits = CandidateLimits(2 * settings.last, 2 * settings.last)
    training = share_of(table.training, ranks)
    with shared_scratch(folder, ranks) as scratch:
        snapshot = indexed_passages(encoder, table, scratch, ranks)
        ranked = partial(snapshot.search, weights=Weights(), candidates=limits)
        for start in range(0, len(training), TEXTS_AT_ONCE):
            pairs = training[start : start + TEXTS_AT_ONCE]
            queries = represent(encoder, table.queries, pairs)
            for row, pair in enumerate(pairs.tolist()):
                query, own = queries.take(np.array([row], np.int64)), table.positives.of(pair)
                hits = ranked(query, top_k=settings.last).hits
                # A positive may score too low to be among the hits, and yet sets the ceiling.
                best = ranked(query, top_k=1, filter=In(ROW, tuple(own.tolist()))).hits[0].score
                rows = np.array([int(hit.document.id) for hit in hits], np.int64)
                scores = np.array([hit.score for hit in hits], np.float32)
                yield pair, hard_negatives(rows, scores, own, best, settings)
        snapshot.close()


def by_dense(
    encoder: TextEncoder, table: PairTable, settings: MiningSettings, ranks: Ranks
) -> Iterator[tuple[int, Int64]]:
    """This process's training pairs with the passages whose dense vectors are nearest to their query's."""
    passages, training = table.training_passages(), share_of(table.training, ranks)
    vectors = gather(dense_vectors(encoder, table.passages, share_of(passages, ranks)), ranks)
    for start in range(0, len(training), QUERIES_AT_ONCE):
        pairs = training[start : start + QUERIES_AT_ONCE]
        scores = dense_vectors(encoder, table.queries, pairs) @ vectors.T
        top = scores.topk(min(settings.last, len(passages)), dim=1)
        values, columns = top.values.cpu().numpy(), top.indices.cpu().numpy()
        for row, pair in enumerate(pairs.tolist()):
            own = table.positives.of(pair)
            own_columns = torch.from_numpy(np.searchsorted(passages, own)).to(scores.device)
            best = float(scores[row, own_columns].max())
            yield pair, hard_negatives(passages[columns[row]], values[row], own, best, settings)


@contextmanager
def shared_scratch(folder: Path, ranks: Ranks) -> Iterator[Path]:
    """A folder that the first process makes for all, and removes once all have left it."""
    scratch = folder / f"{SCRATCH}index"
    if ranks.rank == 0:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
    try:
        yield scratch
        wait_for_all(ranks)
    finally:
        if ranks.rank == 0:
            shutil.rmtree(scratch)


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


def discard_unfinished(folder: Path) -> None:
    """Removes the indexes of a run that was killed while it mined."""
    for scratch in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch)


def hard_negatives(
    rows: Int64, scores: Float32, positives: Int64, best: float, settings: MiningSettings
) -> Int64:
    """Of ranked rows those from rank `first` on, less positives and likely unlabelled ones.

    rows and scores: best first; best: the score of the best positive, whether or not it is among them.
    """
    others = ~np.isin(rows, positives)
    rows, scores = rows[others][settings.first - 1 :], scores[others][settings.first - 1 :]
    return rows[scores <= settings.ceiling * best]


def indexed_passages(encoder: TextEncoder, table: PairTable, root: Path, ranks: Ranks = ALONE) -> Snapshot:
    """A snapshot with every passage of the training pairs, its row as its id. The first process writes it."""
    rows = table.training_passages()
    lexical, projection = encoder.model.heads.weights().both()
    settings = CollectionSettings(
        "mining",
        encoder="in training",
        fingerprint="in training",
        dense_dimension=lexical.weight.shape[1],
        colbert_dimension=len(projection.bias),
        vocabulary_size=encoder.tokenizer.vocabulary_size,
        lexical=encoder.lexical,
        fields={ROW: "integer"},
    )
    with ExitStack() as stack:
        writer = None
        if ranks.rank == 0:
            writer = stack.enter_context(Collection.create(root, "mining", settings).writer())
        for start in range(0, len(rows), TEXTS_AT_ONCE):
            part = rows[start : start + TEXTS_AT_ONCE]
            own = represent(encoder, table.passages, share_of(part, ranks))
            encoded = representations_of_all(own, ranks)
            if writer is not None:
                documents = [Document(str(row), str(row), metadata={ROW: row}) for row in part.tolist()]
                writer.add(documents, encoded)
        if writer is not None:
            writer.publish()
    wait_for_all(ranks)
    return Collection.open(root, "mining").snapshot()


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


def represent(encoder: TextEncoder, store: TokenStore, rows: Int64) -> Representations:
    """The packed representations of texts, in the given order."""
    if not len(rows):
        return represent(encoder, store, np.zeros(1, np.int64)).take(rows)
    plan = plan_batches(store.lengths[rows], encoder.sub_batch_tokens)
    heads = encoder.model.heads
    parts = []
    for chosen in plan:
        batch = store.take(rows[chosen])
        with torch.inference_mode():
            states, mask = encoder.hidden(batch)
            outputs = heads(states, mask)
        padded = PaddedOutputs(*(output.cpu().numpy() for output in outputs))
        parts.append(pack(batch, padded, encoder.tokenizer))
    order = np.argsort(np.concatenate(plan), kind="stable")
    return Representations.concatenate(parts).take(order)
