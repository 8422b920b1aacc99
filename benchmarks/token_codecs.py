"""What do small token vectors lose, and what does a first look at centroids?

Six collections are encoded once and stored by each codec. nDCG@10 of late interaction and of the sum over
every document is compared with that of float32, also with tokens pooled by two and four. The default codec
is learned from several samples, drawn as
a build draws them, since one tells little: with 35 to 300 queries a change of one percent is chance. The bars
are on the mean over collections. Searches with the default candidates are compared with the same
candidates, all of them scored exactly.

Run: python -m benchmarks.token_codecs [--sets NAME …] [--samples 3] [--queries 300]
"""

import argparse
import itertools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.recording import DATA, ROOT, dated, write
from tercet.evaluation.beir import read_dataset
from tercet.evaluation.dataset import Dataset
from tercet.evaluation.metrics import measure
from tercet.evaluation.rankings import ranking
from tercet.evaluation.results import Rankings
from tercet.index.candidates import Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.codebook import Codebook, sign_codebook
from tercet.index.collection import Collection
from tercet.index.fusion import weighted_sum
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import MOST_VECTORS, train_codebook
from tercet.index.token_vectors.pooling import pooled
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.ingest.codebook import ENOUGH_VECTORS, SHARE
from tercet.ingest.target import settings_for
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations, TokenVectors

SETS = ("cranfield", "cacm", "lisa", "npl", "scifact", "xquad-en")
CODECS: tuple[tuple[TokenCodec, int], ...] = (  # and how many tokens share a vector
    ("int8", 1),
    ("residual4", 1),
    ("residual2", 1),
    ("residual1", 1),
    ("sign", 1),
    ("int8", 2),
    ("residual1", 2),
    ("residual1", 4),
)
STUDIED: TokenCodec = "residual1"  # by several samples
BARS = {"colbert": 0.01, "sum": 0.006}  # of that codec, mean over the collections
MEASURE = "nDCG@10"
TOKENS_AT_ONCE = 20_000
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Encoded:
    """A collection: its documents and its first queries, encoded; others: float32[Q, N], the dense and the
    lexical score of every query and document.
    """

    dataset: Dataset
    documents: Representations
    queries: Representations
    ids: list[str]
    others: Scores

    @property
    def tokens(self) -> TokenVectors:
        assert self.documents.colbert is not None
        return self.documents.colbert

    def query(self, row: int) -> Representations:
        return self.queries.take(np.array([row]))


def encoded(name: str, encoder: Any, most_queries: int) -> Encoded:
    dataset = read_dataset(DATA / name)
    documents = encode(encoder, [each.encoded_text for each in dataset.corpus], "document")
    queries = encode(encoder, list(dataset.queries.values())[:most_queries], "query")
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(name, encoder.info, {"token_codec": "none", "dense_kind": "flat"})
        collection = filled(Path(folder), settings, dataset, documents)
        snapshot, others = collection.snapshot(), []
        ids: list[str] = []
        for row in range(len(queries)):
            ids, scores = snapshot.score_all(queries.take(np.array([row])))
            others.append(scores.sum(axis=1))
    assert ids == [document.id for document in dataset.corpus]
    return Encoded(dataset, documents, queries, ids, np.stack(others))


def filled(
    root: Path, settings: CollectionSettings, dataset: Dataset, documents: Representations
) -> Collection:
    collection = Collection.create(root, settings.name, settings)
    with collection.writer() as writer:
        writer.add(list(dataset.corpus), documents)
        writer.publish()
    return collection


def late_interaction(tokens: TokenVectors, found: Encoded) -> Scores:
    """Of every query and document, whose token vectors these are, float32[Q, N]."""
    vectors, offsets = tokens.vectors, tokens.offsets
    texts, scores = len(offsets) - 1, np.zeros((len(found.queries), len(offsets) - 1), np.float32)
    filled_texts = np.diff(offsets) > 0
    assert filled_texts.all()
    for row in range(len(found.queries)):
        colbert = found.query(row).colbert
        assert colbert is not None
        first = 0
        while first < texts:
            last = int(np.searchsorted(offsets, offsets[first] + TOKENS_AT_ONCE, "right")) - 1
            last = max(last, first + 1)
            products = colbert.vectors @ vectors[offsets[first] : offsets[last]].T
            best = np.maximum.reduceat(products, offsets[first:last] - offsets[first], axis=1)
            scores[row, first:last] = best.mean(axis=0)
            first = last
    return scores


def figures(found: Encoded, late: Scores) -> dict[str, float]:
    """nDCG@10 of late interaction alone and of the sum."""
    rankings: Rankings = {"colbert": {}, "sum": {}}
    query_ids = list(found.dataset.queries)[: len(late)]
    for row, query_id in enumerate(query_ids):
        parts = np.stack([late[row], found.others[row]], axis=1)
        rankings["colbert"][query_id] = ranking(found.ids, parts, Weights(1, 0, 0))
        rankings["sum"][query_id] = ranking(found.ids, parts, Weights(1, 1, 0))
    qrels = {query_id: found.dataset.qrels[query_id] for query_id in query_ids}
    return {side: measure(qrels, each)[MEASURE] for side, each in rankings.items()}


def codebook_of(found: Encoded, bits: int, seed: int) -> Codebook:
    """As a build learns it: from a tenth of the documents, and more where that has too few vectors."""
    tokens = found.tokens
    rows = np.random.default_rng(seed).permutation(len(found.ids))
    vectors = np.cumsum(np.diff(tokens.offsets)[rows])
    wanted = max(len(rows) // SHARE, int(np.searchsorted(vectors, ENOUGH_VECTORS)) + 1)
    wanted = min(wanted, int(np.searchsorted(vectors, MOST_VECTORS)) + 1)
    return train_codebook(tokens.take(rows[:wanted]).vectors, bits, seed)


def first_look(found: Encoded, codebook: Codebook, encoder: Any) -> float:
    """Of the ten best of the candidates by exact sums, the share that a search misses."""
    settings = settings_for(
        "coded", encoder.info, {"token_codec": STUDIED, "codebook": codebook, "dense_kind": "flat"}
    )
    missed = wanted = 0
    with tempfile.TemporaryDirectory() as folder:
        snapshot = filled(Path(folder), settings, found.dataset, found.documents).snapshot()
        for row in range(len(found.queries)):
            query = found.query(row)
            ids, scores = snapshot.score(query, snapshot.retrieve(query))
            sums = weighted_sum(scores, Weights())
            best = sorted(range(len(ids)), key=lambda place: (-sums[place], ids[place]))[:10]
            hits = {hit.document.id for hit in snapshot.search(query, contents=False).hits}
            missed += len({ids[place] for place in best} - hits)
            wanted += len(best)
    return missed / wanted


def measured(found: Encoded, encoder: Any, samples: int) -> dict[str, Any]:
    base = figures(found, late_interaction(found.tokens, found))
    result: dict[str, Any] = {"documents": len(found.ids), "queries": len(found.queries), "float32": base}
    for codec, pooling in CODECS:
        runs, tokens = [], pooled(found.tokens, pooling)
        for seed in range(samples if (codec, pooling) == (STUDIED, 1) else 1):
            codebook = sign_codebook(tokens.vectors.shape[1]) if codec == "sign" else None
            if codec in RESIDUAL_BITS:
                codebook = codebook_of(found, RESIDUAL_BITS[codec], seed)
            store = TokenVectorStore.encode(tokens, codec, codebook)
            decoded = TokenVectors(store.vectors(np.arange(len(store.codes))), tokens.offsets)
            got = figures(found, late_interaction(decoded, found))
            runs.append({side: got[side] / base[side] - 1 for side in base})
            if (codec, pooling) == (STUDIED, 1) and codebook is not None and seed == 0:
                result["missed_by_first_look"] = first_look(found, codebook, encoder)
        size = sum(part.nbytes for part in (store.codes, store.scales) if part is not None)
        if codebook is not None and codebook.several and store.centroids is not None:
            size += store.centroids.nbytes
        result[name_of(codec, pooling)] = {
            "bytes_per_token": size / found.tokens.offsets[-1],
            "changes": runs,
        }
    return result


def name_of(codec: TokenCodec, pooling: int) -> str:
    return codec if pooling == 1 else f"{codec}/{pooling}"


def mean_change(results: dict[str, Any], codec: str, side: str) -> float:
    """Over collections, of the mean over samples."""
    return float(
        np.mean([np.mean([run[side] for run in each[codec]["changes"]]) for each in results.values()])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--queries", type=int, default=300)
    arguments = parser.parse_args()
    encoder = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0]))
    results: dict[str, Any] = {}
    print(f"{'':>12} {'codec':>10} {'bytes':>6} {'colbert':>9} {'sum':>9}  changes of nDCG@10, by sample")
    for name in arguments.sets:
        found = encoded(name, encoder, arguments.queries)
        results[name] = measured(found, encoder, arguments.samples)
        for codec in itertools.starmap(name_of, CODECS):
            each = results[name][codec]
            colbert, total = (
                " ".join(f"{100 * run[side]:+.2f}" for run in each["changes"]) for side in ("colbert", "sum")
            )
            print(f"{name:>12} {codec:>10} {each['bytes_per_token']:>6.1f}  {colbert} | {total}", flush=True)
        print(f"{name:>12} missed by the first look: {results[name]['missed_by_first_look']:.5f}", flush=True)
    means = {
        codec: {side: mean_change(results, codec, side) for side in ("colbert", "sum")}
        for codec in itertools.starmap(name_of, CODECS)
    }
    for codec, each in means.items():
        print(f"{'mean':>12} {codec:>10} {100 * each['colbert']:+.2f} % | {100 * each['sum']:+.2f} %")
    within_bars = all(-means[STUDIED][side] <= bar for side, bar in BARS.items())
    print(f"{STUDIED} loses at most {BARS}: {'yes' if within_bars else 'NO'}")
    record = {
        "samples": arguments.samples,
        "bars": BARS,
        "mean_changes": means,
        "sets": results,
    }
    write("token_codecs", dated(record))


if __name__ == "__main__":
    with threadpool_limits(os.cpu_count() or 1):
        main()
