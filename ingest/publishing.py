"""How the documents of a build become those of a collection: all of them at once, or beside its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tercet.index.catalog.manifest import dense_vectors
from tercet.index.collection import Collection, open_stage, staged_build
from tercet.index.dense.kinds import NO_VECTORS
from tercet.index.live.adoption import AdoptionMode
from tercet.index.live.collection import LiveCollection
from tercet.index.writer import SnapshotWriter
from tercet.ingest.passages.former import former_passages


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """Where documents are added, and what makes them the collection's.

    publish: takes what gets how many of how many vectors are indexed; returns the snapshot's name.
    """

    writer: SnapshotWriter
    publish: Callable[[Callable[[int, int], None]], str]


@contextmanager
def build_target(
    collection: Collection, mode: AdoptionMode, mark: str, *, staged: bool = False, cuts: bool = False
) -> Iterator[BuildTarget]:
    """Begins the writing of a build; leaving it without `publish` removes what was written.

    mode, mark, staged: as for `build_collection`. cuts: whether documents come as passages, which then
    replace all former passages of theirs.
    """
    present = collection.manifest() if mode == "upsert" else None
    beside = NO_VECTORS if present is None else dense_vectors(present.segments)
    if staged:
        with open_stage(collection, mark).writer(mark=mark, beside=beside) as writer:
            yield BuildTarget(writer, writer.publish)
    elif mode == "replace":
        with collection.writer(mark=mark) as writer:
            yield BuildTarget(writer, writer.publish)
    else:
        with (
            LiveCollection(collection) as live,
            live.begin_build() as build,
            staged_build(collection, mark) as stage,
            stage.writer(mark=mark, beside=beside) as writer,
        ):

            def publish(indexed: Callable[[int, int], None]) -> str:
                writer.publish(indexed)
                former = former_passages(live.snapshot(), stage) if cuts else []
                return live.adopt(build, stage.layout, mode, mark, former)

            yield BuildTarget(writer, publish)
