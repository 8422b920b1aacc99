"""Measures an encoder and the index on a judged data set: each side, their sums, and BM25."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby, islice
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict, Unpack

import numpy as np

from tercet.evaluation.bm25 import Bm25
from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.metrics import ranks_seen
from tercet.evaluation.rankings import Ranking, RankingPlan, query_rankings, weightings
from tercet.evaluation.results import Measuring, Rankings, SetReport, measured
from tercet.evaluation.runs import check_run_ids, write_runs
from tercet.index.bm25.languages import Bm25Language
from tercet.index.candidates import DEFAULT_CANDIDATES, CandidateLimits, Weights
from tercet.index.collection import Collection
from tercet.index.errors import InvalidQueryError
from tercet.index.files.directory import make_folder
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import best
from tercet.index.snapshot import Snapshot
from tercet.index.token_codecs import TokenCodec
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.progress import BuildProgress
from tercet.ingest.target import RequestedSettings
from tercet.models.encoder import Encoder, encode
from tercet.models.representations import LexicalKind, TokenBatch

COLLECTION = "evaluation"
BM25 = "bm25"
NO_ROWS: Mapping[str, Weights] = MappingProxyType({})
PLAIN_MEASURING = Measuring()
TOKENIZED_DOCUMENTS = 1024  # at a time
DEFAULT_CODEC: TokenCodec = "int8"  # what a checkpoint can do, whatever the collection's size


class EvaluationReport(SetReport):
    """What `tercet eval --json` prints; times in seconds.

    bm25_language: None without the BM25 side. weights: of the ranking called `sum`, by side. rows: those of
    the rankings that were asked for, by name. depth: documents kept of each query. candidates: of each
    retriever, None where every document was scored.
    """

    documents: int
    checkpoint: str
    adapter: str | None
    lexical: LexicalKind
    bm25_language: Bm25Language | None
    window: dict[str, int] | None
    weights: dict[str, float]
    rows: dict[str, dict[str, float]]
    depth: int
    candidates: int | None
    exhaustive: bool
    index_seconds: float
    search_seconds: float


class SuiteReport(TypedDict):
    """What `tercet eval --suite NAME --json` prints. mean: over the sets, by ranking and measure."""

    suite: str
    sets: list[EvaluationReport]
    mean: dict[str, dict[str, float]]


def evaluate(
    datasets: Sequence[Dataset],
    encoder: Encoder,
    *,
    exhaustive: bool,
    work_dir: Path | None = None,
    measuring: Measuring = PLAIN_MEASURING,
    weights: Weights | None = None,
    rows: Mapping[str, Weights] = NO_ROWS,
    candidates: int | None = None,
    runs: Path | None = None,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    **settings: Unpack[RequestedSettings],
) -> Iterator[EvaluationReport]:
    """Measures each side and sum on data sets, one after the other, by default with nDCG@10, R@100 and RR@10.

    The documents go into a temporary collection below `work_dir`, by default where the system keeps
    temporary files; data sets of one corpus that follow each other share it. exhaustive: score every document
    instead of the candidates; weights: of the ranking called `sum`, by default those usual for the
    languages of the corpus; rows: weights of further rankings by
    name, one of which may take another's place; candidates: of each retriever, by default 200, or as many as
    are ranked; runs: a folder that gets a run file of each ranking, in folders by data set where there are
    several; progress: told how far a build is; settings: of the collection, which by default stores token
    vectors nearly as they are; with a bm25_language it has the BM25 side.
    Raises InvalidQueryError for weights that do not suit, MeasureError for a depth that does not,
    DatasetError or SourceError for a bad line, and what encoder and index raise.
    """
    # What does not suit is told before anything is encoded.
    bm25_language = settings.get("bm25_language")
    for wanted in (weights, *rows.values()):
        if wanted is not None and wanted.bm25 and bm25_language is None:
            raise InvalidQueryError(
                f"weights.bm25 is {wanted.bm25}, but bm25_language is None, so BM25 is no side; "
                "give both, or none"
            )
    settings["bm25"] = bm25_language is not None
    sides = encoder.info.sides
    depth = measuring.ranks
    count = max(DEFAULT_CANDIDATES, depth) if candidates is None else candidates
    # Of many thousand queries, ranks that no measure looks at and no file gets would fill the memory.
    kept = depth if runs is not None else ranks_seen(measuring.measures) or depth

    def planned(total: Weights) -> RankingPlan:
        return RankingPlan(
            weightings(sides, total, bm25=bm25_language is not None)
            | {name: row.of(sides) for name, row in rows.items()},
            None if exhaustive else CandidateLimits(count, count, count),
            kept,
        )

    codec = settings.get("token_codec") or DEFAULT_CODEC
    settings["token_codec"] = codec if "colbert" in sides else None
    measuring.check_compared([*planned(weights or Weights()).weights, BM25])
    if runs is not None:
        for dataset in datasets:
            check_run_ids(dataset.queries)
        for corpus, _ in groupby(datasets, lambda dataset: dataset.corpus):
            check_run_ids(document.id for document in corpus)
    for corpus, group in groupby(datasets, lambda dataset: dataset.corpus):
        with tempfile.TemporaryDirectory(dir=work_dir, prefix="tercet-eval-") as scratch:
            root = Path(scratch)
            built = build_collection(
                LocalDocuments(encoder),
                root,
                COLLECTION,
                corpus.files,
                reading=corpus.reading,
                progress=progress,
                **settings,
            )
            snapshot = Collection.open(root, COLLECTION).snapshot()
            total = snapshot.languages().usual_weights() if weights is None else weights
            plan = planned(total)
            baseline = WordPieces(corpus, encoder)
            for dataset in group:
                started = time.monotonic()
                rankings = rank_queries(dataset, encoder, snapshot, plan)
                search_seconds = time.monotonic() - started
                rankings[BM25] = baseline.rankings(dataset.queries, kept)
                if runs is not None:
                    folder = runs if len(datasets) == 1 else runs / dataset.name
                    make_folder(folder)
                    write_runs(folder, rankings)
                yield EvaluationReport(
                    dataset=dataset.name,
                    split=dataset.split,
                    documents=built.documents,
                    queries=len(dataset.queries),
                    unjudged_queries=dataset.unjudged_queries,
                    checkpoint=encoder.info.name,
                    adapter=encoder.info.adapter,
                    lexical=snapshot.settings.lexical,
                    bm25_language=bm25_language,
                    window=None if snapshot.settings.window is None else asdict(snapshot.settings.window),
                    weights=_weights_record(total, bm25_language),
                    rows={name: _weights_record(row, bm25_language) for name, row in rows.items()},
                    depth=depth,
                    candidates=None if exhaustive else count,
                    exhaustive=exhaustive,
                    **measured(dataset, rankings, measuring),
                    index_seconds=built.seconds,
                    search_seconds=search_seconds,
                )
            snapshot.close()


def _weights_record(weights: Weights, bm25_language: Bm25Language | None) -> dict[str, float]:
    record = asdict(weights)
    if bm25_language is None:  # then it is no side
        del record["bm25"]
    return record


def rank_queries(dataset: Dataset, encoder: Encoder, snapshot: Snapshot, plan: RankingPlan) -> Rankings:
    """The rankings of every query."""
    queries = encode(encoder, list(dataset.queries.values()), "query")
    rankings: Rankings = {name: {} for name in plan.weights}
    for row, (query_id, text) in enumerate(dataset.queries.items()):
        query = queries.take(np.array([row], np.int64))
        for name, ranking in query_rankings(snapshot, query, text, plan).items():
            rankings[name][query_id] = ranking
    return rankings


class WordPieces:
    """BM25 over the encoder's word pieces, of whole texts: what the encoder cuts off counts here.

    Of the corpus, ids and token ids are held, and texts only while they are cut into tokens.
    """

    def __init__(self, corpus: Corpus, encoder: Encoder) -> None:
        self._corpus = corpus
        self._tokenizer = encoder.tokenizer
        self._ids: list[str] = []
        self._index = Bm25(self._tokenized(), self._tokenizer.special_ids)
        self._encoded_ids = PackedBytes.of([id.encode() for id in self._ids])

    def _tokenized(self) -> Iterator[TokenBatch]:
        documents = iter(self._corpus)
        while batch := list(islice(documents, TOKENIZED_DOCUMENTS)):
            self._ids += [document.id for document in batch]
            yield self._tokenizer.tokenize_whole([document.encoded_text for document in batch])

    def rankings(self, queries: Mapping[str, str], depth: int) -> dict[str, Ranking]:
        """The best documents of queries, given as text by id."""
        tokens = self._tokenizer.tokenize_whole(list(queries.values()))
        rankings = {}
        for row, query_id in enumerate(queries):
            span = slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))
            scores = self._index.scores(tokens.token_ids[span]).astype(np.float64)
            rows = best(scores, depth, self._encoded_ids.gather).tolist()
            rankings[query_id] = {
                self._ids[best_row]: float(scores[best_row]) for best_row in rows if scores[best_row] > 0
            }
        return rankings
