"""How wide a collection's approximate dense searches look where the request does not say, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from tercet.index.candidates import DenseOptions
from tercet.index.catalog.manifest import MANIFEST_NAME
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.dense.kinds import DenseKind
from tercet.index.files.directory import write_json_atomically

LARGEST_EFFORT = 100_000
REMEDY = "restore it, or remove it with tercet collection tune NAME --reset"

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
        record = Record.read(path, REMEDY)
        record.require_version()
        record.require_keys(("format_version", *DenseEffort.__slots__))
        return DenseEffort(
            record.count("ef_search", 1, LARGEST_EFFORT),
            record.count("nprobe", 1, LARGEST_EFFORT),
            record.one_of("kind", [kind for kind in get_args(DenseKind) if kind != "auto"]),
            record.text("snapshot", MANIFEST_NAME),
            record.number("wanted", 1),
            record.number("recall", 1),
            record.count("k", 1),
            record.count("queries", 1),
            record.one_of("source", get_args(QuerySource)),
        )
