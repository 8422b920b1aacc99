"""Writes of several threads with made-up contents, and what a collection holds after each of them.

Each thread has ids of its own, so that what it was acknowledged says exactly what must be there. A document
carries the number of the write that put it in its text and its representations, and that of the last write of
its metadata there.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import And, In, Range
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import WriteKey
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Float32, Float64, Representations, SparseRows, TokenVectors

THREADS = 4
IDS = 60  # of each thread
LARGEST_PUT = 20
NAME = "crash"
DIMENSION, TOKEN_DIMENSION, VOCABULARY, TERMS, TOKENS = 8, 4, 64, 3, 4
SETTINGS = CollectionSettings(
    NAME,
    "made up",
    "0" * 64,
    DIMENSION,
    TOKEN_DIMENSION,
    VOCABULARY,
    fields={"version": "integer", "thread": "integer"},
    lexical="idf",
    bm25=True,
)

Contents = dict[str, tuple[int, int]]
"""What a thread's ids hold: the write that put the document, and the last one of its metadata."""

Kind = Literal["put", "delete", "delete_matching", "patch", "update_matching"]
Record = list[object]
"""A write as it is told through a pipe: its fields in order."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write of one thread. number: counted by the thread, and the version of what is written.

    ids: the documents concerned; below: for delete_matching and update_matching, the versions that are
    deleted or become this one.
    """

    thread: int
    number: int
    kind: Kind
    ids: tuple[str, ...]
    below: int = 0

    @property
    def record(self) -> Record:
        """For `of`."""
        return [self.thread, self.number, self.kind, self.ids, self.below]

    @staticmethod
    def of(record: Record) -> Write:
        """The write that a record tells of."""
        thread, number, kind, ids, below = cast(tuple[int, int, Kind, list[str], int], tuple(record))
        return Write(thread, number, kind, tuple(ids), below)

    @property
    def key(self) -> WriteKey:
        """The idempotency key that it is written under."""
        return WriteKey(f"{self.thread}-{self.number}", f"{self.number:064x}")

    def after(self, before: Contents) -> Contents:
        """The thread's documents once it is carried out."""
        if self.kind == "put":
            return before | dict.fromkeys(self.ids, (self.number, self.number))
        if self.kind in ("patch", "update_matching"):
            return before | {id: (before[id][0], self.number) for id in self.ids}
        return {id: versions for id, versions in before.items() if id not in self.ids}

    def carry_out(self, live: LiveCollection) -> int:
        """Writes it; returns how many documents the answer counts."""
        if self.kind == "put":
            found = [document(id, self.number, self.number) for id in self.ids]
            encoded = representations(self.ids, [self.number] * len(self.ids))
            written = live.put(found, encoded, key=self.key)
        elif self.kind == "patch":
            written = live.patch(self.ids[0], metadata(self.ids[0], self.number), key=self.key)
        elif self.kind == "delete":
            written = live.delete(self.ids, key=self.key)
        else:
            old = And((In("thread", (self.thread,)), Range("version", "lt", self.below)))
            if self.kind == "delete_matching":
                written = live.delete_matching(old, key=self.key)
            else:
                written = live.update(old, {"version": self.number}, merge=True, key=self.key)
        return written.documents


def next_write(thread: int, number: int, contents: Contents, generator: random.Random) -> Write:
    """A random write to what a thread has: mostly puts."""
    names = [f"{thread}-{place}" for place in range(IDS)]
    choice = generator.random()
    if choice < 0.6 or not contents:
        return Write(thread, number, "put", _some(names, generator.randint(1, LARGEST_PUT), generator))
    if choice < 0.75:
        return Write(thread, number, "patch", _some(sorted(contents), 1, generator))
    if choice < 0.9:
        return Write(thread, number, "delete", _some(names, generator.randint(1, 5), generator))
    kind: Kind = "delete_matching" if choice < 0.95 else "update_matching"
    versions = sorted(version for _, version in contents.values())
    below = versions[min(5 if kind == "delete_matching" else 20, len(versions) - 1)]
    old = tuple(id for id, (_, version) in sorted(contents.items()) if version < below)
    return Write(thread, number, kind, old, below)


def thread_of(id: str) -> int:
    """The thread that writes an id."""
    return int(id.partition("-")[0])


def document(id: str, version: int, metadata_version: int) -> Document:
    """The document of an id as two of its thread's writes left it."""
    return Document(id, f"document {id} in version {version}", None, metadata(id, metadata_version))


def metadata(id: str, version: int) -> dict[str, int]:
    """A document's metadata."""
    return {"version": version, "thread": thread_of(id)}


def representations(ids: Sequence[str], versions: Sequence[int]) -> Representations:
    """Those of documents in these versions, the same each time."""
    count = len(ids)
    generators = [
        np.random.default_rng([zlib.crc32(id.encode()), version])
        for id, version in zip(ids, versions, strict=True)
    ]
    terms = [np.sort(generator.choice(VOCABULARY, TERMS, replace=False)) for generator in generators]
    return Representations(
        np.full(count, TOKENS + 1, np.int64),
        np.zeros(count, np.bool_),
        _unit(np.stack([generator.standard_normal(DIMENSION) for generator in generators])),
        SparseRows(
            np.arange(count + 1) * TERMS,
            np.concatenate(terms).astype(np.int32),
            np.concatenate([generator.uniform(0.1, 2, TERMS) for generator in generators]).astype(np.float32),
        ),
        TokenVectors(
            _unit(
                np.concatenate(
                    [generator.standard_normal((TOKENS, TOKEN_DIMENSION)) for generator in generators]
                )
            ),
            np.arange(count + 1) * TOKENS,
        ),
    )


def versions_of(found: Document) -> tuple[int, int] | None:
    """The writes that left a document, None where it is not as they would."""
    try:
        version, metadata_version = int(found.text.rpartition(" ")[2]), int(found.metadata["version"])
        same = found == document(found.id, version, metadata_version)
    except (KeyError, TypeError, ValueError):
        return None
    return (version, metadata_version) if same else None


def contents_of(snapshot: Snapshot) -> Contents:
    """The documents of a snapshot, all of which must have been written as here."""
    found = {each.id: versions_of(each) for each in snapshot.page(None, snapshot.documents + 1)}
    contents = {id: versions for id, versions in found.items() if versions is not None}
    assert len(contents) == snapshot.documents, "a document that nobody wrote"
    return contents


def backup_contents(layout: CollectionLayout) -> Contents:
    """The documents of a backup, which has the fields of the moment that it was made."""
    return contents_of(Collection(layout, CollectionSettings.read(layout.settings)).snapshot())


def backups_of(root: Path) -> Path:
    """The folder of backups beside that of collections."""
    return root.parent / "backups"


def _unit(vectors: Float64) -> Float32:
    unit: Float32 = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _some(names: Sequence[str], count: int, generator: random.Random) -> tuple[str, ...]:
    return tuple(generator.sample(names, min(count, len(names))))
