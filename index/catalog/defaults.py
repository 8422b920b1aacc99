"""What a collection's searches use where the request does not say: weights, candidates, their origin."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from tercet.index.candidates import DEFAULT_CANDIDATES, CandidateLimits, Weights
from tercet.index.catalog.calibration import Calibration
from tercet.index.catalog.manifest import MANIFEST_NAME
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.files.directory import write_json_atomically

LARGEST_WEIGHT = 1e6
# What weights and candidates that leave BM25 out say of it.
NO_WEIGHT = MappingProxyType({"bm25": 0.0})
USUAL_LIMIT = MappingProxyType({"bm25": DEFAULT_CANDIDATES})
REMEDY = "restore it, or remove it with tercet tune NAME --reset"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where defaults come from: the judged queries, how they were divided, and what held-out ones showed.

    snapshot: what was searched; plain, tuned: mean nDCG@10 of held-out queries with the usual weights and
    with weights chosen on the other folds.
    """

    snapshot: str
    queries: int
    folds: int
    seed: int
    plain: float
    tuned: float


@dataclass(frozen=True, slots=True)
class SearchDefaults:
    """Weights and candidates of a collection, and how they were found, None where a person chose them.
    confidence: how sure its searches are of their hits, where that was fitted on its own judged queries.
    """

    weights: Weights
    candidates: CandidateLimits
    tuning: Tuning | None = None
    confidence: Calibration | None = None

    def write(self, path: Path) -> None:
        """Writes `defaults.json`. Raises FileNotFoundError where the collection's folder is gone."""
        record = asdict(self)
        if self.weights.bm25 == 0:  # then as in a collection without BM25
            del record["weights"]["bm25"], record["candidates"]["bm25"]
        del record["confidence"], record["tuning"]
        if self.tuning is not None:
            record["tuning"] = asdict(self.tuning)
        if self.confidence is not None:
            record["confidence"] = self.confidence.to_json()
        write_json_atomically(path, {"format_version": FORMAT_VERSION, **record})

    @staticmethod
    def read(path: Path, settings: CollectionSettings) -> SearchDefaults:
        """Reads the `defaults.json` of a collection with these settings.

        Raises FileNotFoundError, or DamagedIndexError naming file and remedy.
        """
        record = Record.read(path, REMEDY)
        record.require_version()
        calibrated, tuned = "confidence" in record.values, "tuning" in record.values
        record = record.with_usual({"confidence": None, "tuning": None})
        record.require_keys(("format_version", *SearchDefaults.__slots__))
        weights = _weights(record.part("weights").with_usual(NO_WEIGHT))
        if weights.bm25 and not settings.bm25:
            raise record.damaged(
                f"weights.bm25 is {weights.bm25:g}, but collection {settings.name!r} has no BM25"
            )
        candidates = record.part("candidates").with_usual(USUAL_LIMIT)
        candidates.require_keys(CandidateLimits.__slots__)
        limits = CandidateLimits(*(candidates.count(side, 1) for side in CandidateLimits.__slots__))
        confidence = Calibration.of(record.part("confidence")) if calibrated else None
        tuning = _tuning(record.part("tuning")) if tuned else None
        return SearchDefaults(weights, limits, tuning, confidence)


def _weights(record: Record) -> Weights:
    record.require_keys(Weights.__slots__)
    weights = Weights(*(record.number(side, LARGEST_WEIGHT) for side in Weights.__slots__))
    if not any(asdict(weights).values()):
        raise record.damaged("all weights are 0")
    return weights


def _tuning(record: Record) -> Tuning:
    record.require_keys(Tuning.__slots__)
    return Tuning(
        record.text("snapshot", MANIFEST_NAME),
        record.count("queries", 1),
        record.count("folds", 2),
        record.count("seed"),
        record.number("plain", 1),
        record.number("tuned", 1),
    )
