"""How wide a collection's approximate dense searches look where the request does not say, and why."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from index.candidates import DenseOptions
from index.catalog.manifest import is_manifest_name
from index.dense.kinds import DenseKind
from index.errors import DamagedIndexError
from index.files.content import read_json_object
from index.files.directory import write_json_atomically

FORMAT_VERSION = 1
LARGEST_EFFORT = 100_000
REMEDY = "restore it, or remove it with tercet index tune NAME --reset"

QuerySource = Literal["documents", "file"]


@dataclass(frozen=True, slots=True)
class DenseEffort:
    """`efSearch` and `nprobe`, and what they were measured to give.

    kind: the collection's when it was measured, snapshot: what was searched; recall: the mean of k
    neighbours found, wanted: that asked for; queries: how many, of documents or of a file.
    """

    ef_search: int
    nprobe: int
    kind: DenseKind
    snapshot: str
    wanted: float
    recall: float
    k: int
    queries: int
    source: QuerySource

    @property
    def options(self) -> DenseOptions:
        """What a search takes."""
        return DenseOptions(self.ef_search, self.nprobe)

    def write(self, path: Path) -> None:
        """Writes `effort.json`. Raises FileNotFoundError where the collection's folder is gone."""
        write_json_atomically(path, {"format_version": FORMAT_VERSION, **asdict(self)})

    @staticmethod
    def read(path: Path) -> DenseEffort:
        """Reads `effort.json`. Raises FileNotFoundError, or DamagedIndexError naming file and remedy."""
        record = read_json_object(path, REMEDY)
        if record.pop("format_version", None) != FORMAT_VERSION:
            raise _damaged(path, f"its format version is not {FORMAT_VERSION}, which this release reads")
        if record.keys() != set(DenseEffort.__slots__):
            wrong = sorted(record.keys() ^ set(DenseEffort.__slots__))
            raise _damaged(path, f"these keys are missing or unknown: {wrong}")
        for name in ("ef_search", "nprobe", "k", "queries"):
            value, limit = record[name], LARGEST_EFFORT if name in DenseOptions.__slots__ else math.inf
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
                raise _damaged(path, f"{name} is {value!r}; it is a whole number from 1 to {limit}")
        for name in ("wanted", "recall"):
            value = record[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise _damaged(path, f"{name} is {value!r}; it is a number from 0 to 1")
        _one_of(path, record, "kind", [kind for kind in get_args(DenseKind) if kind != "auto"])
        _one_of(path, record, "source", get_args(QuerySource))
        if not isinstance(record["snapshot"], str) or not is_manifest_name(record["snapshot"]):
            raise _damaged(path, f"{record['snapshot']!r} is no snapshot's name")
        return DenseEffort(**record)


def _one_of(path: Path, record: dict[str, Any], name: str, values: Any) -> None:
    if record[name] not in values:
        raise _damaged(path, f"{name} is {record[name]!r}; it is one of {', '.join(values)}")


def _damaged(path: Path, what: str) -> DamagedIndexError:
    return DamagedIndexError(f"{path}: {what}; {REMEDY}")
