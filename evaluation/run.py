"""Measures an encoder and the index on a judged data set: each side, their sums, and BM25."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from tercet.evaluation.beir import Dataset, read_dataset
from tercet.evaluation.bm25 import Bm25
from tercet.evaluation.metrics import measure
from tercet.evaluation.rankings import DEPTH, exhaustive_rankings, indexed_rankings
from tercet.evaluation.runs import check_run_ids, write_runs
from tercet.index.bm25.languages import Bm25Language
from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.collection import Collection
from tercet.index.errors import InvalidQueryError
from tercet.index.files.directory import make_folder
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import best
from tercet.index.search.query import check_bm25
from tercet.index.snapshot import Snapshot
from tercet.index.token_codecs import TokenCodec
from tercet.ingest.build import BuildProgress, build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.target import RequestedSettings
from tercet.models.encoder import Encoder, encode
from tercet.models.representations import LexicalKind

COLLECTION = "evaluation"
BM25 = "bm25"
PLAIN_SUM = Weights()
DEFAULT_LIMITS = CandidateLimits()
DEFAULT_CODEC: TokenCodec = "int8"  # what a checkpoint can do, whatever the collection's size
Rankings = dict[str, dict[str, list[str]]]
"""Document ids, best first, by ranking, then by query id."""


class EvaluationReport(TypedDict):
    """What `tercet eval --json` prints. results: measure by name, by ranking; times in seconds;
    bm25_language: None without the BM25 side; weights: of the ranking called `sum`, by side.
    """

    dataset: str
    documents: int
    queries: int
    unjudged_queries: int
    checkpoint: str
    adapter: str | None
    lexical: LexicalKind
    bm25_language: Bm25Language | None
    window: dict[str, int] | None
    weights: dict[str, float]
    exhaustive: bool
    results: dict[str, dict[str, float]]
    index_seconds: float
    search_seconds: float


def evaluate(
    folder: Path,
    encoder: Encoder,
    *,
    exhaustive: bool,
    work_dir: Path | None = None,
    weights: Weights = PLAIN_SUM,
    candidates: CandidateLimits = DEFAULT_LIMITS,
    runs: Path | None = None,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    **settings: Unpack[RequestedSettings],
) -> EvaluationReport:
    """nDCG@10, recall@100 and reciprocal rank@10 of a BEIR folder.

    The documents go into a temporary collection below `work_dir`, by default where the system keeps
    temporary files. exhaustive: score every document instead of the candidates; weights: of the ranking
    called `sum`; runs: a folder that gets a run file of each ranking; progress: told how far the build is;
    settings: of the collection, which by default stores token vectors nearly as they are; with a
    bm25_language it has the BM25 side.
    Queries without a judged relevant document are left out and counted.
    Raises InvalidQueryError for weights that do not suit, DatasetError or SourceError for a bad line, and
    what encoder and index raise.
    """
    bm25_language = settings.get("bm25_language")
    if weights.bm25 and bm25_language is None:  # told before anything is encoded
        raise InvalidQueryError(
            f"weights.bm25 is {weights.bm25}, but bm25_language is None, so BM25 is no side; give both, or "
            "none"
        )
    settings["bm25"] = bm25_language is not None
    codec = settings.get("token_codec") or DEFAULT_CODEC
    settings["token_codec"] = codec if "colbert" in encoder.info.sides else None
    dataset = read_dataset(folder)
    if runs is not None:
        check_run_ids([*dataset.queries, *(document.id for document in dataset.documents)])
        make_folder(runs)
    with tempfile.TemporaryDirectory(dir=work_dir, prefix="tercet-eval-") as scratch:
        documents = LocalDocuments(encoder)
        built = build_collection(documents, Path(scratch), COLLECTION, folder, progress=progress, **settings)
        snapshot = Collection.open(Path(scratch), COLLECTION).snapshot()
        started = time.monotonic()
        rankings = rank_queries(dataset, encoder, snapshot, weights, None if exhaustive else candidates)
        search_seconds = time.monotonic() - started
        snapshot.close()
    rankings[BM25] = bm25_rankings(dataset, encoder)
    if runs is not None:
        write_runs(runs, rankings)
    return EvaluationReport(
        dataset=dataset.name,
        documents=len(dataset.documents),
        queries=len(dataset.queries),
        unjudged_queries=dataset.unjudged_queries,
        checkpoint=encoder.info.name,
        adapter=encoder.info.adapter,
        lexical=snapshot.settings.lexical,
        bm25_language=bm25_language,
        window=None if snapshot.settings.window is None else asdict(snapshot.settings.window),
        weights=_weights_record(weights, bm25_language),
        exhaustive=exhaustive,
        results={name: measure(dataset.qrels, ranking) for name, ranking in rankings.items()},
        index_seconds=built.seconds,
        search_seconds=search_seconds,
    )


def _weights_record(weights: Weights, bm25_language: Bm25Language | None) -> dict[str, float]:
    record = asdict(weights)
    if bm25_language is None:  # then it is no side
        del record["bm25"]
    return record


def rank_queries(
    dataset: Dataset, encoder: Encoder, snapshot: Snapshot, weights: Weights, limits: CandidateLimits | None
) -> Rankings:
    """Rankings of every query by every side and sum; without limits, of all documents.

    Raises InvalidQueryError where the weights are not for this collection.
    """
    check_bm25("weights.bm25", weights.bm25, snapshot.settings)
    queries = encode(encoder, list(dataset.queries.values()), "query")
    rankings: Rankings = {}
    for row, (query_id, text) in enumerate(dataset.queries.items()):
        query = queries.take(np.array([row], np.int64))
        ranked = (
            exhaustive_rankings(snapshot, query, text, weights)
            if limits is None
            else indexed_rankings(snapshot, query, text, weights, limits)
        )
        for name, ranking in ranked.items():
            rankings.setdefault(name, {})[query_id] = ranking
    return rankings


def bm25_rankings(dataset: Dataset, encoder: Encoder) -> dict[str, list[str]]:
    """BM25 over the encoder's word pieces, of whole texts: what the encoder cuts off counts here."""
    tokenizer = encoder.tokenizer
    ids = [document.id for document in dataset.documents]
    encoded = PackedBytes.of([id.encode() for id in ids])
    texts = tokenizer.tokenize_whole([document.encoded_text for document in dataset.documents])
    queries = tokenizer.tokenize_whole(list(dataset.queries.values()))
    index = Bm25(texts, tokenizer.special_ids)
    rankings = {}
    for row, query_id in enumerate(dataset.queries):
        span = slice(int(queries.offsets[row]), int(queries.offsets[row + 1]))
        scores = index.scores(queries.token_ids[span]).astype(np.float64)
        rows = best(scores, DEPTH, encoded.gather)
        rankings[query_id] = [ids[best_row] for best_row in rows if scores[best_row] > 0]
    return rankings
