"""Tunes a collection's default weights and candidates, and how sure its searches are, on judged queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from tercet.evaluation.beir import TEST, read_judged_queries
from tercet.evaluation.collection_confidence import ConfidenceReport, QueryHits, calibrated, query_hits
from tercet.evaluation.errors import TuningError
from tercet.evaluation.judged_scores import judged_scores, ndcg_table
from tercet.evaluation.judgments import JudgedQueries
from tercet.evaluation.weight_search import Choice, Fold, choose, cross_validate, weight_directions
from tercet.index.candidates import DEFAULT_CANDIDATES, CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.ingest.encoder_match import require_encoder
from tercet.models.cores import usable_cores
from tercet.models.encoder import Encoder, encode, with_adapter
from tercet.models.representations import OUTPUTS, Float64, Representations
from tercet.service.search.calibrations import calibration_of_checkpoint

FEWEST_QUERIES = 10
FEWEST_FOLDS = 2
CANDIDATES = (50, 100, DEFAULT_CANDIDATES, 400)  # ascending; for each retriever
USUAL = Choice(CANDIDATES.index(DEFAULT_CANDIDATES), 0)  # the usual weights are the first of the directions
FIGURE_DECIMALS = 6

Progress = Callable[[int, int], None]


class Setting(TypedDict):
    """Weights by side, and the candidates of each retriever."""

    weights: dict[str, float]
    candidates: dict[str, int]


class FoldReport(Setting):
    """What was chosen without a fold's queries, and their mean nDCG@10 with the usual weights and with
    the choice.
    """

    queries: int
    plain: float
    tuned: float


class HeldOut(TypedDict):
    """Mean nDCG@10 over all queries, each held out once; the gain's standard error over queries."""

    plain: float
    tuned: float
    gain: float
    gain_standard_error: float


class TuningReport(TypedDict):
    """What `tercet tune --json` prints. usual: the weights of searches that give none, without stored
    defaults; fitted: the choice for all queries, measured on the same queries.

    missing_documents: documents judged relevant that the collection does not hold. confidence: None where
    the collection lacks a side.
    """

    collection: str
    snapshot: str
    queries: int
    unjudged_queries: int
    missing_documents: int
    seed: int
    usual: dict[str, float]
    folds: list[FoldReport]
    held_out: HeldOut
    fitted: FoldReport
    stored: bool
    confidence: ConfidenceReport | None
    seconds: float


def tune(
    root: Path,
    name: str,
    folder: Path,
    encoder: Encoder,
    *,
    split: str = TEST,
    folds: int = 5,
    seed: int = 0,
    store: bool = True,
    force: bool = False,
    progress: Progress = lambda _done, _total: None,
) -> TuningReport:
    """Chooses weights and candidates on the queries of a BEIR folder, and stores them with the collection.

    They are stored where they beat the usual weights with 200 candidates on held-out queries, or with
    `force`; never without `store`. Likewise how sure searches are is stored where that beats what came with
    the checkpoint.
    progress: told of queries done and their total.
    Raises TuningError for too few queries or none about this collection, DatasetError for a bad line,
    FingerprintMismatchError for another encoder, and what encoder and index raise.
    """
    started = time.monotonic()
    collection = Collection.open(root, name)
    judged = read_judged_queries(folder, split)
    _check_counts(len(judged.queries), folds, folder)
    snapshot = collection.snapshot()
    encoder = with_adapter(encoder, collection.settings.adapter)
    require_encoder(collection.settings, encoder.info)
    missing = _missing_documents(judged, snapshot, folder)
    usual = snapshot.languages().usual_weights().of(collection.settings.sides)
    directions = weight_directions(collection.settings.sides, usual)
    measured = measured_queries(judged, encoder, snapshot, directions, progress)
    table = measured.ndcg
    parts = cross_validate(table, USUAL, folds, seed)
    held_out = _held_out(parts)
    choice = choose(table)
    stored = store and (force or held_out["gain"] > 0)
    former = collection.defaults()
    tuning = Tuning(snapshot.name, len(table), folds, seed, held_out["plain"], held_out["tuned"])
    defaults = SearchDefaults(
        *_setting(choice, directions), tuning, None if former is None else former.confidence
    )
    if not stored:
        plain = replace(tuning, tuned=tuning.plain)
        defaults = former or SearchDefaults(usual, _setting(USUAL, directions)[1], plain)
    confidence = None
    if collection.settings.sides == OUTPUTS:
        known = calibration_of_checkpoint(encoder.info, collection.settings.fingerprint)
        prior = known.calibration if known and known.lexical == collection.settings.lexical else None
        calibration, confidence = calibrated(measured.hits, prior, [part.queries for part in parts])
        before = confidence["before"]
        confidence["stored"] = store and (force or before is None or confidence["fitted"] < before)
        if confidence["stored"]:
            defaults = replace(defaults, confidence=calibration)
    if stored or (confidence is not None and confidence["stored"]):
        collection.store_defaults(defaults)
    everything = Fold(
        choice,
        np.arange(len(table)),
        table[:, USUAL.candidates, USUAL.weights],
        table[:, choice.candidates, choice.weights],
    )
    return TuningReport(
        collection=name,
        snapshot=snapshot.name,
        queries=len(table),
        unjudged_queries=judged.unjudged_queries,
        missing_documents=missing,
        seed=seed,
        usual={side: getattr(usual, side) for side in OUTPUTS},
        folds=[_reported(part, directions) for part in parts],
        held_out=held_out,
        fitted=_reported(everything, directions),
        stored=stored,
        confidence=confidence,
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True, slots=True)
class MeasuredQueries:
    """ndcg: float64[Q, C, G], nDCG@10 of each query with each of CANDIDATES and each of G weights; hits: of
    each query, as it is and in a collection without its relevant documents, with the usual candidates.
    """

    ndcg: Float64
    hits: Sequence[QueryHits]


def measured_queries(
    judged: JudgedQueries, encoder: Encoder, snapshot: Snapshot, directions: Float64, progress: Progress
) -> MeasuredQueries:
    """What queries find. directions: weights float64[G, 3].

    Queries are encoded once, and scored side by side, one a core.
    """
    queries = encode(encoder, list(judged.queries.values()), "query")
    grades = [judged.qrels[id] for id in judged.queries]

    def row(number: int) -> tuple[Float64, QueryHits]:
        query: Representations = queries.take(np.array([number], np.int64))
        scores = judged_scores(snapshot, query, grades[number], CANDIDATES)
        return ndcg_table(scores, directions), query_hits(query, scores, USUAL.candidates)

    def rows() -> Iterator[tuple[Float64, QueryHits]]:
        with ThreadPoolExecutor(usable_cores()) as threads:
            for done, measured in enumerate(threads.map(row, range(len(grades))), start=1):
                progress(done, len(grades))
                yield measured

    tables, hits = zip(*rows(), strict=True)
    return MeasuredQueries(np.stack(tables), hits)


def _check_counts(queries: int, folds: int, folder: Path) -> None:
    if folds < FEWEST_FOLDS:
        raise TuningError(f"folds is {folds}; use at least {FEWEST_FOLDS}")
    if queries < FEWEST_QUERIES:
        raise TuningError(
            f"{folder} has {queries} judged queries; tuning needs at least {FEWEST_QUERIES}: judge more"
        )
    if queries < folds:
        raise TuningError(
            f"{folder} has {queries} judged queries for {folds} folds; judge more, or use at most {queries}"
        )


def _missing_documents(judged: JudgedQueries, snapshot: Snapshot, folder: Path) -> int:
    relevant = {id for grades in judged.qrels.values() for id, grade in grades.items() if grade > 0}
    missing = sum(snapshot.get(id) is None for id in relevant)
    if missing == len(relevant):
        raise TuningError(
            f"none of the {missing} documents that {folder} judges relevant is in collection "
            f"{snapshot.settings.name!r}, snapshot {snapshot.name}; give judgments of its documents"
        )
    return missing


def _held_out(folds: list[Fold]) -> HeldOut:
    plain = np.concatenate([fold.baseline for fold in folds])
    tuned = np.concatenate([fold.tuned for fold in folds])
    gains = tuned - plain
    return HeldOut(
        plain=_figure(plain),
        tuned=_figure(tuned),
        gain=_figure(gains),
        gain_standard_error=round(float(gains.std(ddof=1)) / math.sqrt(len(gains)), FIGURE_DECIMALS),
    )


def _setting(choice: Choice, directions: Float64) -> tuple[Weights, CandidateLimits]:
    dense, sparse, colbert = directions[choice.weights].tolist()
    candidates = CANDIDATES[choice.candidates]
    return Weights(dense, sparse, colbert), CandidateLimits(candidates, candidates)


def _reported(fold: Fold, directions: Float64) -> FoldReport:
    weights, candidates = _setting(fold.choice, directions)
    return FoldReport(
        weights={"dense": weights.dense, "sparse": weights.sparse, "colbert": weights.colbert},
        candidates={"dense": candidates.dense, "sparse": candidates.sparse},
        queries=len(fold.queries),
        plain=_figure(fold.baseline),
        tuned=_figure(fold.tuned),
    )


def _figure(values: Float64) -> float:
    return round(float(values.mean()), FIGURE_DECIMALS)
