"""How the documents of a build become those of a collection: all of them at once, or beside its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from index.collection import Collection, open_stage, staged_build
from index.live.adoption import AdoptionMode
from index.live.collection import LiveCollection
from index.writer import SnapshotWriter


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """Where documents are added, and what makes them the collection's; it returns the snapshot's name."""

    writer: SnapshotWriter
    publish: Callable[[], str]


@contextmanager
def build_target(
    collection: Collection, mode: AdoptionMode, mark: str, *, staged: bool = False
) -> Iterator[BuildTarget]:
    """Begins the writing of a build; leaving it without `publish` removes what was written.

    mode, mark, staged: as for `build_collection`.
    """
    if staged:
        with open_stage(collection, mark).writer(mark=mark) as writer:
            yield BuildTarget(writer, writer.publish)
    elif mode == "replace":
        with collection.writer(mark=mark) as writer:
            yield BuildTarget(writer, writer.publish)
    else:
        with (
            LiveCollection(collection) as live,
            live.begin_build() as build,
            staged_build(collection, mark) as stage,
            stage.writer(mark=mark) as writer,
        ):

            def publish() -> str:
                writer.publish()
                return live.adopt(build, stage.layout, mode, mark)

            yield BuildTarget(writer, publish)
