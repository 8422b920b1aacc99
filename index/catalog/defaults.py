"""What a collection's searches use where the request does not say: weights, candidates, their origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from index.candidates import DEFAULT_CANDIDATES, CandidateLimits, Weights
from index.catalog.manifest import is_manifest_name
from index.catalog.settings import CollectionSettings
from index.errors import DamagedIndexError
from index.files.content import read_json_object
from index.files.directory import write_json_atomically

FORMAT_VERSION = 1
LARGEST_WEIGHT = 1e6
# What weights and candidates that leave BM25 out say of it.
NO_WEIGHT = MappingProxyType({"bm25": 0.0})
USUAL_LIMIT = MappingProxyType({"bm25": DEFAULT_CANDIDATES})
REMEDY = "restore it, or remove it with tercet tune NAME --reset"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where defaults come from: the judged queries, how they were divided, and what held-out ones showed.

    snapshot: what was searched; plain, tuned: mean nDCG@10 of held-out queries with the weights 1, 1, 1 and
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
    """Weights and candidates of a collection, and how they were found."""

    weights: Weights
    candidates: CandidateLimits
    tuning: Tuning

    def write(self, path: Path) -> None:
        """Writes `defaults.json`. Raises FileNotFoundError where the collection's folder is gone."""
        record = asdict(self)
        if self.weights.bm25 == 0:  # then as in a collection without BM25
            del record["weights"]["bm25"], record["candidates"]["bm25"]
        write_json_atomically(path, {"format_version": FORMAT_VERSION, **record})

    @staticmethod
    def read(path: Path, settings: CollectionSettings) -> SearchDefaults:
        """Reads the `defaults.json` of a collection with these settings.

        Raises FileNotFoundError, or DamagedIndexError naming file and remedy.
        """
        record = read_json_object(path, REMEDY)
        version = record.get("format_version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            raise _damaged(
                path, f"format version {version!r} is not {FORMAT_VERSION}, which this release reads"
            )
        _check_keys(record, ("format_version", *SearchDefaults.__slots__), path)
        weights = _weights(_part(record, "weights", tuple(Weights.__slots__), path, NO_WEIGHT), path)
        if weights.bm25 and not settings.bm25:
            raise _damaged(
                path, f"weights.bm25 is {weights.bm25:g}, but collection {settings.name!r} has no BM25"
            )
        return SearchDefaults(
            weights,
            _candidates(
                _part(record, "candidates", tuple(CandidateLimits.__slots__), path, USUAL_LIMIT), path
            ),
            _tuning(_part(record, "tuning", tuple(Tuning.__slots__), path), path),
        )


def _damaged(path: Path, what: str) -> DamagedIndexError:
    return DamagedIndexError(f"{path}: {what}; {REMEDY}")


def _check_keys(record: Mapping[str, Any], expected: tuple[str, ...], path: Path) -> None:
    missing, unknown = sorted(set(expected) - record.keys()), sorted(record.keys() - set(expected))
    if missing or unknown:
        raise _damaged(path, f"keys missing: {missing}, unknown: {unknown}")


def _part(
    record: Mapping[str, Any],
    key: str,
    expected: tuple[str, ...],
    path: Path,
    usual: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """An object with these keys; `usual` has the values of those that may be missing."""
    part = record[key]
    if not isinstance(part, dict):
        raise _damaged(path, f"{key} is no object")
    whole = {**usual, **part}
    _check_keys(whole, expected, path)
    return whole


def _weights(part: Mapping[str, Any], path: Path) -> Weights:
    weights = Weights(**{side: _number(part[side], LARGEST_WEIGHT, path) for side in Weights.__slots__})
    if not any(asdict(weights).values()):
        raise _damaged(path, "all weights are 0")
    return weights


def _candidates(part: Mapping[str, Any], path: Path) -> CandidateLimits:
    return CandidateLimits(
        dense=_count(part["dense"], 1, path),
        sparse=_count(part["sparse"], 1, path),
        bm25=_count(part["bm25"], 1, path),
    )


def _tuning(part: Mapping[str, Any], path: Path) -> Tuning:
    snapshot = part["snapshot"]
    if not isinstance(snapshot, str) or not is_manifest_name(snapshot):
        raise _damaged(path, f"{snapshot!r} is no snapshot's name")
    return Tuning(
        snapshot,
        _count(part["queries"], 1, path),
        _count(part["folds"], 2, path),
        _count(part["seed"], 0, path),
        _number(part["plain"], 1, path),
        _number(part["tuned"], 1, path),
    )


def _number(value: object, largest: float, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _damaged(path, f"{value!r} is no finite number")
    if not 0 <= value <= largest:
        raise _damaged(path, f"{value!r} is not from 0 to {largest:g}")
    return float(value)


def _count(value: object, least: int, path: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _damaged(path, f"{value!r} is no whole number of at least {least}")
    return value
