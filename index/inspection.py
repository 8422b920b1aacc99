"""What a collection consists of, without reading its arrays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.dense.kinds import DenseKind, Vectors
from tercet.index.files.arrays import ArraySource
from tercet.index.files.packed_arrays import PackedArrays
from tercet.index.segments.files import PACKED_FILE, open_arrays

# Beginnings of the names of files and arrays, and the part of the index that they belong to.
_PARTS = (
    ("dense", "dense"),
    ("inverted", "sparse, inverted"),
    ("forward", "sparse, forward"),
    ("token", "token vectors"),
    ("document", "documents"),
    ("position", "documents"),
    ("id", "documents"),
    ("field", "fields"),
    ("bm25", "bm25"),
    ("window", "windows"),
    (PACKED_FILE, "headers"),
)


@dataclass(frozen=True, slots=True)
class SegmentInspection:
    """One segment: counts of documents, windows and token vectors, dense kind, and bytes of each part.

    windows: None in a collection without them; vectors: dense ones, of deleted documents too.
    """

    id: str
    documents: int
    windows: int | None
    tokens: int
    vectors: int
    dense_kind: DenseKind
    part_bytes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Inspection:
    """A collection's settings, its stored defaults and effort, and its current snapshot, if there is one."""

    settings: CollectionSettings
    defaults: SearchDefaults | None
    effort: DenseEffort | None
    snapshot: str | None
    segments: list[SegmentInspection]

    @property
    def dense_vectors(self) -> Vectors:
        """Dense vectors of the segments, by kind, those of deleted documents too."""
        counts: Counter[DenseKind] = Counter()
        for segment in self.segments:
            counts[segment.dense_kind] += segment.vectors
        return counts

    @property
    def dense_kind(self) -> tuple[DenseKind, str]:
        """The kind of the collection as it is, and why."""
        return self.settings.collection_kind(self.dense_vectors)

    @property
    def documents(self) -> int:
        """Documents of all segments."""
        return sum(segment.documents for segment in self.segments)

    @property
    def windows(self) -> int | None:
        """Windows of all segments; None in a collection without them."""
        if self.settings.window is None:
            return None
        return sum(segment.windows or 0 for segment in self.segments)

    @property
    def tokens(self) -> int:
        """Token vectors of all segments."""
        return sum(segment.tokens for segment in self.segments)

    @property
    def part_bytes(self) -> dict[str, int]:
        """Bytes of each part over all segments."""
        return added(segment.part_bytes for segment in self.segments)

    @property
    def total_bytes(self) -> int:
        return sum(self.part_bytes.values())


def inspect_collection(root: Path, name: str) -> Inspection:
    """Reads settings, defaults, effort, manifest, and the headers of packed files.

    Raises CollectionNotFoundError or DamagedIndexError.
    """
    collection = Collection.open(root, name)
    defaults, effort = collection.defaults(), collection.effort()
    inspected = collection.of_current(lambda current: (current, _inspect_segments(collection, current)))
    return Inspection(collection.settings, defaults, effort, *(inspected or (None, [])))


def added(sizes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The bytes of each part over several segments."""
    totals: Counter[str] = Counter()
    for parts in sizes:
        totals.update(parts)
    return dict(totals)


def part_bytes(entry: SegmentEntry, arrays: ArraySource) -> dict[str, int]:
    """How many bytes of a segment's files belong to each part of the index; headers of packed files to none.

    arrays: of the segment, as they are opened.
    """
    sizes: dict[str, int] = defaultdict(int)
    for file, description in entry.files.items():
        sizes[_part(file)] += description.size_bytes
    if isinstance(arrays, PackedArrays):
        for array, size in arrays.sizes().items():
            sizes[_part(array)] += size
            sizes[_part(PACKED_FILE)] -= size
    return dict(sizes)


def _inspect_segments(collection: Collection, current: str) -> list[SegmentInspection]:
    layout = collection.layout
    return [
        SegmentInspection(
            entry.id,
            entry.documents_kept,
            entry.windows,
            entry.tokens,
            entry.encodings,
            entry.dense_kind,
            part_bytes(entry, open_arrays(layout.segment(entry.id), entry)),
        )
        for entry in Manifest.read(layout.manifest(current)).segments
    ]


def _part(name: str) -> str:
    return next((part for beginning, part in _PARTS if name.startswith(beginning)), "other")
