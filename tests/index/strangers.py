"""Files of a collection, each as a target of changes: opened and searched as a server does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from tercet.index.candidates import DenseOptions, Document
from tercet.index.catalog.manifest import FileEntry, Manifest, SegmentEntry
from tercet.index.collection import Collection
from tercet.index.dense.building import build_dense
from tercet.index.dense.index import DenseIndex
from tercet.index.dense.kinds import DenseKind
from tercet.index.dense.library import INDEX_FILE
from tercet.index.documents.row_set import RowSet
from tercet.index.errors import SearchIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.content import sha256_of
from tercet.index.segments.segment import Segment
from tercet.index.verify import verify
from tests.index.conftest import random_representations, settings_for
from tests.strangers.children import Target
from tests.strangers.mutations import Mutation, changed_bytes, changed_header, changed_index, changed_json

NAMED = (SearchIndexError,)
KINDS: tuple[DenseKind, ...] = ("hnsw", "ivfpq", "ivfrabitq")
VECTORS, DIMENSION, DOCUMENTS = 2_000, 16, 40
VERIFIED = 16  # one of so many readings verifies the whole collection, too


def faiss_targets(folder: Path) -> list[Target]:
    """What FAISS wrote, of each kind."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(VECTORS, DIMENSION)).astype(np.float16)
    vectors[5] = vectors[9]
    query = random.normal(size=DIMENSION).astype(np.float32)
    allowed = RowSet.of_mask(np.arange(VECTORS) % 2 == 0)
    targets = []
    for kind in KINDS:
        own = folder / kind
        own.mkdir(parents=True)
        build_dense(kind, vectors, ArrayFolder(own))

        def search(own: Path = own, kind: DenseKind = kind) -> object:
            index = DenseIndex.open(kind, vectors, ArrayFolder(own), own)
            options = DenseOptions(ef_search=16, nprobe=4)
            index.search(query, 3, allowed, options)
            return index.search(query, 3, None, options)

        targets.append(_target(kind, own, own / INDEX_FILE, changed_index, search))
    return targets


def collection_targets(root: Path) -> list[Target]:
    """The files of a collection of packed segments, whose manifest has the checksums of what was changed."""
    name, query = "demo", random_representations(1, 5)
    encoded = random_representations(DOCUMENTS, 1)
    documents = [
        Document(
            f"d{row:03d}",
            f"text {row} of tea",
            metadata={"year": 2000 + row % 7, "tags": ["a", f"t{row % 3}"]},
        )
        for row in range(DOCUMENTS)
    ]
    fields = {"year": "integer", "tags": "keyword"}
    settings = settings_for(encoded, name, fields=fields, bm25=True)
    with Collection.create(root, name, settings).writer() as writer:
        writer.add(documents, encoded)
        writer.publish()
    layout = Collection.open(root, name).layout
    manifest = Manifest.read(layout.manifest("000001"))
    folder = layout.segment(manifest.segments[0].id)

    readings = count()

    def signed() -> object:
        changed = {
            file.name: FileEntry(file.stat().st_size, sha256_of(file))
            for file in folder.iterdir()
            if file.is_file()
        }
        entry: SegmentEntry = replace(manifest.segments[0], files={**manifest.segments[0].files, **changed})
        segment = Segment.open(layout, entry, Collection.open(root, name).settings)
        replace(manifest, segments=(entry,)).write(layout.manifest("000001"))
        for row in range(len(segment)):
            segment.documents.get(row)
        return search()

    def search() -> object:
        hits = Collection.open(root, name).snapshot().search(query, top_k=5).hits
        assert np.isfinite([hit.score for hit in hits]).all()
        return hits if next(readings) % VERIFIED else verify(root, name)

    return [
        _target("arrays", root, folder / "arrays.safetensors", changed_header, signed),
        _target("array values", root, folder / "arrays.safetensors", changed_bytes, signed),
        _target("manifest", root, layout.manifest("000001"), changed_json, search),
        _target("settings", root, layout.settings, changed_json, search),
        _target("current", root, layout.current, changed_bytes, search),
    ]


def _target(name: str, folder: Path, file: Path, mutation: Mutation, read: Callable[[], object]) -> Target:
    return Target(name, folder, file, mutation, read, NAMED)
