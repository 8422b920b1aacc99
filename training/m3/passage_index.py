"""The index that hard negatives are searched in: every passage of the training pairs, its row as its id.

It is a row of collections, each of some of the passages, that are searched as one. What a killed run had
published of them is not encoded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import In
from tercet.index.snapshot import Snapshot
from tercet.models.batching import PaddedOutputs, pack, plan_batches
from tercet.models.representations import Float32, Int64, Representations
from tercet.training.data.pair_table import PairTable
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks, gather_array, wait_for_all
from tercet.training.m3.shares import representations_of_all, share_of
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.objective import MinedBy

TEXTS_AT_ONCE = 1024
TEXTS_OF_A_COLLECTION = 64 * TEXTS_AT_ONCE
ROW = "row"
NO_WORDS = "-"  # a document's text is not empty
WEIGHTS: Mapping[MinedBy, Weights] = MappingProxyType(
    {
        "sum": Weights(),
        "dense": Weights(1, 0, 0),
        "sparse": Weights(0, 1, 0),
        "colbert": Weights(0, 0, 1),
        "bm25": Weights(0, 0, 0, 1),
    }
)


class PassageIndex:
    """Ranks the passages of a table for its queries. All processes build it together, below one folder."""

    def __init__(
        self, encoder: TextEncoder, table: PairTable, by: MinedBy, folder: Path, ranks: Ranks
    ) -> None:
        self._encoder = encoder
        self._table = table
        self._by = by
        self._ranks = ranks
        self._snapshot = self._built(folder)

    def close(self) -> None:
        """Lets go of the files."""
        self._snapshot.close()

    def ranked(self, pairs: Int64, most: int) -> list[tuple[Int64, Float32, float]]:
        """For the query of each pair its best `most` rows, their scores, and that of its best positive.

        A positive may score too low to be among the rows; it has 0 where nothing of it is found.
        """
        store = self._table.queries
        words = self._by == "bm25"
        queries = no_representations(len(pairs)) if words else represent(self._encoder, store, pairs)
        texts = self._texts(store, pairs)
        weights, limits = WEIGHTS[self._by], CandidateLimits(2 * most, 2 * most, 2 * most)

        def search(place: int) -> tuple[Int64, Float32, float]:
            query, text = queries.take(np.array([place], np.int64)), texts[place]
            own = In(ROW, tuple(self._table.positives.of(int(pairs[place])).tolist()))
            hits, best = (
                self._snapshot.search(
                    query, text=text, top_k=top_k, weights=weights, candidates=limits, filter=filter
                ).hits
                for top_k, filter in ((most, None), (1, own))
            )
            rows = np.array([int(hit.document.id) for hit in hits], np.int64)
            scores = np.array([hit.score for hit in hits], np.float32)
            return rows, scores, best[0].score if best else 0.0

        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            return list(threads.map(search, range(len(pairs))))

    def _built(self, folder: Path) -> Snapshot:
        rows = self._table.training_passages()
        collections = []
        for start in range(0, len(rows), TEXTS_OF_A_COLLECTION):
            name = f"mining-{start:010d}"
            # As the first process sees it, which writes them.
            if not gather_array(np.array([is_published(folder, name)]), self._ranks)[0]:
                self._write(folder, name, rows[start : start + TEXTS_OF_A_COLLECTION])
            collections.append(name)
        wait_for_all(self._ranks)
        return Snapshot.united("mining", [Collection.open(folder, name).snapshot() for name in collections])

    def _write(self, folder: Path, name: str, rows: Int64) -> None:
        with ExitStack() as stack:
            writer = None
            if self._ranks.rank == 0:
                collection = created(folder, self._settings(name))
                writer = stack.enter_context(collection.writer())
            for start in range(0, len(rows), TEXTS_AT_ONCE):
                part = rows[start : start + TEXTS_AT_ONCE]
                encoded = self._encoded_by_all(part)
                if writer is not None:
                    texts = self._texts(self._table.passages, part)
                    documents = [
                        Document(str(row), text or NO_WORDS, metadata={ROW: row})
                        for row, text in zip(part.tolist(), texts, strict=True)
                    ]
                    writer.add(documents, encoded)
            if writer is not None:
                writer.publish()

    def _settings(self, name: str) -> CollectionSettings:
        heads = self._encoder.model.heads
        weights = heads.weights()
        lexical, projection = weights.both()
        width, pooling = lexical.weight.shape[1], heads.settings.pooling
        encodes = self._by != "bm25"
        return CollectionSettings(
            name,
            encoder="in training",
            fingerprint="in training",
            dense_dimension=weights.dense_dimension(width, pooling) if encodes else 1,
            colbert_dimension=len(projection.bias) if encodes else 0,
            token_codec="int8" if encodes else "none",  # a codec, no secret
            vocabulary_size=self._encoder.tokenizer.vocabulary_size if encodes else 0,
            lexical=self._encoder.lexical if encodes else "plain",
            bm25=not encodes,
            bm25_language="english" if encodes else "none",
            fields={ROW: "integer"},
        )

    def _encoded_by_all(self, rows: Int64) -> Representations:
        """Passages, of which each process encodes its share; BM25 needs nothing of them but their words."""
        if self._by == "bm25":
            return no_representations(len(rows))
        own = represent(self._encoder, self._table.passages, share_of(rows, self._ranks))
        return representations_of_all(own, self._ranks)

    def _texts(self, store: TokenStore, rows: Int64) -> list[str | None]:
        """The words that BM25 counts, the encoder's own word pieces by their ids; None for other sides."""
        if self._by != "bm25":
            return [None] * len(rows)
        special = np.array(sorted(self._encoder.tokenizer.special_ids))
        batch = store.take(rows)
        texts = np.split(batch.token_ids, batch.offsets[1:-1])
        return [" ".join(map(str, ids[~np.isin(ids, special)].tolist())) for ids in texts]


def no_representations(count: int) -> Representations:
    """What documents have beside BM25: a dense vector of one number, since a collection needs some side."""
    tokens, truncated = np.ones(count, np.int64), np.zeros(count, np.bool_)
    return Representations(tokens, truncated, np.ones((count, 1), np.float32))


def is_published(folder: Path, name: str) -> bool:
    """Whether a collection has all its documents, which its one publication gives it."""
    return (folder / name).exists() and Collection.open(folder, name).current() is not None


def created(folder: Path, settings: CollectionSettings) -> Collection:
    """A new collection, or one that a killed run created and did not publish."""
    if (folder / settings.name).exists():
        return Collection.open(folder, settings.name)
    return Collection.create(folder, settings.name, settings)


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
