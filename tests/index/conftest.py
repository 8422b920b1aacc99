"""Tiny collections with numbers that can be checked by hand, and random ones for brute force."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.segments import files as segment_files
from tercet.index.windows.settings import WindowSettings
from tercet.index.windows.store import DocumentWindows
from tercet.index.writer import SegmentLimits
from tercet.models.representations import Int64, Representations, SparseRows, TokenVectors, offsets_of

DENSE, COLBERT, VOCABULARY = 16, 8, 60

WINDOW = WindowSettings(tokens=16, overlap=4)

Corpus = tuple[list[Document], Representations]
Windowed = tuple[list[Document], Representations, DocumentWindows]
Build = Callable[..., Collection]


def representations(
    dense: Sequence[Sequence[float]],
    sparse: Sequence[dict[int, float]],
    colbert: Sequence[Sequence[Sequence[float]]],
    dimension: int = 2,
) -> Representations:
    """Representations from plain numbers: one dense vector, weights and token vectors for each text."""
    rows = [sorted(weights.items()) for weights in sparse]
    pairs = [pair for row in rows for pair in row]
    tokens = np.array([vector for text in colbert for vector in text], np.float32).reshape(-1, dimension)
    lengths = np.array([len(text) for text in colbert], np.int64)
    return Representations(
        lengths + 1,
        np.zeros(len(lengths), np.bool_),
        np.array(dense, np.float32),
        SparseRows(
            offsets_of(np.array([len(row) for row in rows], np.int64)),
            np.array([token for token, _ in pairs], np.int32),
            np.array([weight for _, weight in pairs], np.float32),
        ),
        TokenVectors(tokens, offsets_of(lengths)),
    )


@pytest.fixture(scope="session")
def plain_representations() -> Callable[..., Representations]:
    """Makes representations from plain numbers."""
    return representations


@pytest.fixture
def three() -> Corpus:
    """Three documents of two dimensions and a vocabulary of ten.

    For the query of `three_query`, by hand: a = 1 + 2·0.5 + (1 + 0)/2 = 2.5; b = 0 + 0 + (0 + 1)/2 = 0.5;
    c = 0.5 + (2·1 + 1·0.5) + (0.5 + 0.5)/2 = 3.5.
    """
    documents = [
        Document("a", "apple", "Fruit", {"year": 2020, "tags": ["red", "round"], "price": 1.5, "sold": True}),
        Document("b", "boat", None, {"year": 2021, "tags": "blue", "sold": False}),
        Document("c", "cat", None, {}),
    ]
    return documents, representations(
        [[1, 0], [0, 1], [0.5, 0.5]],
        [{1: 0.5, 4: 1.0}, {5: 3.0}, {1: 1.0, 2: 0.5}],
        [[[1, 0]], [[0, 1], [0, 0.5]], [[0.5, 0.5]]],
    )


@pytest.fixture
def three_query() -> Representations:
    """Dense (1, 0); terms 1 (weight 2) and 2 (weight 1); token vectors (1, 0) and (0, 1)."""
    return representations([[1, 0]], [{1: 2.0, 2: 1.0}], [[[1, 0], [0, 1]]])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of collections."""
    return tmp_path / "collections"


@pytest.fixture
def build(root: Path) -> Build:
    """Creates or rebuilds a collection from documents, in segments of at most `segment` documents."""

    def build_collection(
        corpus: Corpus, name: str = "demo", segment: int = 250_000, **changes: Any
    ) -> Collection:
        documents, encoded = corpus
        if (root / name / "collection.json").exists():
            collection = Collection.open(root, name)
        else:
            collection = Collection.create(root, name, settings_for(encoded, name, **changes))
        with collection.writer(SegmentLimits(documents=segment)) as writer:
            writer.add(documents, encoded)
            writer.publish()
        return collection

    return build_collection


@pytest.fixture
def segments_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes each array of a segment into a file of its own, as in large ones."""
    monkeypatch.setattr(segment_files, "PACKED_BYTES", -1)


class Disk:
    """What would be there after a loss of power: contents and names that were forced to the disk."""

    def __init__(self) -> None:
        self.contents: set[Path] = set()
        self.names: set[Path] = set()
        self.renamed: list[Path] = []  # what got its name by a renaming, in order

    def force(self, path: Path) -> None:
        """The content of a file, or the names in a folder, are forced."""
        if path.is_dir():
            self.names |= set(path.iterdir())
        else:
            self.contents.add(path)

    def rename(self, source: Path, target: Path) -> None:
        """What was forced of a file or folder lasts under its new name, but for that name itself."""
        for forced in (self.contents, self.names):
            moved = {path for path in forced if path == source or source in path.parents}
            forced -= {*moved, target}
            forced |= {target / path.relative_to(source) for path in moved if path != source}
            if forced is self.contents and source in moved:
                forced.add(target)
        self.renamed.append(target)

    def keeps(self, path: Path, root: Path) -> bool:
        """Whether a file's content lasts, and its name and those of the folders above it, up to the root."""
        above = path.parents[: path.parents.index(root)]
        return path in self.contents and self.names.issuperset((path, *above))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Follows what this process forces to the disk and renames."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc, to tell of which file a descriptor is")
    followed, fsync = Disk(), os.fsync

    def force(descriptor: int) -> None:
        fsync(descriptor)
        followed.force(Path(f"/proc/self/fd/{descriptor}").readlink())

    def following(real: Callable[..., None]) -> Callable[..., None]:
        def rename(source: Path, target: Path) -> None:
            real(source, target)
            followed.rename(Path(source), Path(target))

        return rename

    monkeypatch.setattr(os, "fsync", force)
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, following(getattr(os, name)))
    return followed


@pytest.fixture
def publish_at_next_reading(build: Build, monkeypatch: pytest.MonkeyPatch) -> Callable[[Corpus], None]:
    """Lets another publication replace `demo` just after its manifest is read, once."""

    def arrange(corpus: Corpus) -> None:
        real = Manifest.read
        published = False

        def read_while_another_publishes(path: Path) -> Manifest:
            nonlocal published
            manifest = real(path)
            if not published:
                published = True
                build(corpus)
            return manifest

        monkeypatch.setattr(Manifest, "read", staticmethod(read_while_another_publishes))

    return arrange


def settings_for(encoded: Representations, name: str, **changes: Any) -> CollectionSettings:
    """Settings with the dimensions of these representations."""
    assert encoded.dense is not None
    assert encoded.colbert is not None
    values: dict[str, Any] = {
        "encoder": "tiny",
        "fingerprint": "f" * 64,
        "dense_dimension": encoded.dense.shape[1],
        "colbert_dimension": encoded.colbert.vectors.shape[1],
        "vocabulary_size": VOCABULARY,
        **changes,
    }
    return CollectionSettings(name=name, **values)


@pytest.fixture(scope="session")
def make_settings() -> Callable[..., CollectionSettings]:
    """Settings with the dimensions of given representations."""
    return settings_for


def random_representations(count: int, seed: int, tokens: int = 12) -> Representations:
    """Unit vectors and positive weights; some texts have no terms, some no token vectors."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, tokens + 1, count)
    terms = random.integers(0, 9, count)
    dense = random.standard_normal((count, DENSE)).astype(np.float32)
    colbert = random.standard_normal((int(lengths.sum()), COLBERT)).astype(np.float32)
    token_ids = [np.sort(random.choice(VOCABULARY, size, replace=False)) for size in terms]
    return Representations(
        (lengths + 1).astype(np.int64),
        np.zeros(count, np.bool_),
        dense / np.linalg.norm(dense, axis=1, keepdims=True),
        SparseRows(
            offsets_of(terms),
            np.concatenate([*token_ids, np.empty(0, np.int64)]).astype(np.int32),
            random.uniform(0.01, 2, int(terms.sum())).astype(np.float32),
        ),
        TokenVectors(colbert / np.linalg.norm(colbert, axis=1, keepdims=True), offsets_of(lengths)),
    )


@pytest.fixture(scope="session")
def random_texts() -> Callable[..., Representations]:
    """Random representations of some texts."""
    return random_representations


@pytest.fixture(scope="session")
def random_corpus() -> Callable[..., Corpus]:
    """Random documents with a year and tags; `repeat` gives that many leading ones the same content."""

    def corpus(count: int, seed: int, repeat: int = 1) -> Corpus:
        random = np.random.default_rng(seed + 1000)
        order: Int64 = np.maximum(np.arange(count) - (repeat - 1), 0)
        names = random.permutation(count)
        documents = [
            Document(
                f"d{name:04d}", f"text {name}", metadata={"year": 2000 + int(name) % 7, "tags": _tags(name)}
            )
            for name in names.tolist()
        ]
        return documents, random_representations(count, seed).take(order)

    return corpus


def _tags(number: int) -> list[str]:
    return [tag for tag, divisor in (("two", 2), ("three", 3), ("five", 5)) if number % divisor == 0]


@pytest.fixture(scope="session")
def windowed_corpus() -> Callable[..., Windowed]:
    """Random documents of one to `most` windows of five characters each, with a year."""

    def corpus(count: int, seed: int, most: int = 6) -> Windowed:
        random = np.random.default_rng(seed)
        counts = random.integers(1, most + 1, count)
        offsets = offsets_of(counts)
        documents = [
            Document(f"d{name:04d}", "x" * 5 * int(windows), None, {"year": 2000 + int(name) % 7})
            for name, windows in zip(random.permutation(count), counts, strict=True)
        ]
        first = 5 * (np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts))
        spans = np.stack([first, first + 5], axis=1)
        return documents, random_representations(int(offsets[-1]), seed), DocumentWindows(offsets, spans)

    return corpus


@pytest.fixture(scope="session")
def windows_between() -> Callable[[Windowed, int, int], Windowed]:
    """The windows from one place up to another, with the documents that they belong to."""
    return part_of


def part_of(corpus: Windowed, start: int, stop: int) -> Windowed:
    documents, encoded, windows = corpus
    first = int(np.searchsorted(windows.offsets, start, "right")) - 1
    last = int(np.searchsorted(windows.offsets, stop - 1, "right")) - 1
    offsets = np.clip(windows.offsets[first : last + 2], start, stop) - start
    return (
        documents[first : last + 1],
        encoded.take(np.arange(start, stop)),
        DocumentWindows(offsets, windows.spans[start:stop], bool(windows.offsets[last + 1] > stop)),
    )


@pytest.fixture
def build_windowed(root: Path) -> Build:
    """Creates a collection with windows, written in batches of at most `batch` windows."""

    def build_collection(
        corpus: Windowed, name: str = "demo", batch: int = 10_000, segment: int = 250_000, **changes: Any
    ) -> Collection:
        encoded = corpus[1]
        settings = settings_for(encoded, name, window=WINDOW, fields={"year": "integer"}, **changes)
        collection = Collection.create(root, name, settings)
        with collection.writer(SegmentLimits(documents=segment)) as writer:
            for start in range(0, len(encoded), batch):
                writer.add(*part_of(corpus, start, min(start + batch, len(encoded))))
            writer.publish()
        return collection

    return build_collection
