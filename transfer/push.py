"""From a snapshot into a target: what every export does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tercet.index.documents.filters import Filter
from tercet.index.snapshot import Snapshot
from tercet.transfer.description import description_of
from tercet.transfer.errors import TargetExistsError, TransferError
from tercet.transfer.queries import CollectionQuery
from tercet.transfer.records import DocumentLimits, StoredDocuments, stored_documents


class Target(Protocol):
    """A place in another system, by a name that messages call it. Nothing is opened before `begin`."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> DocumentLimits:
        """What it takes of one document."""
        ...

    @property
    def batch(self) -> tuple[int, int]:
        """How many documents and token vectors it is given at once at most."""
        ...

    @property
    def remarks(self) -> list[str]:
        """What of the collection it cannot hold, or not exactly."""
        ...

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Makes it ready for documents.

        Raises TargetExistsError where it is there already, unless it may be overwritten, or resumed and is of
        the same description but for snapshot and number of documents. Raises TransferError.
        """
        ...

    def write(self, documents: StoredDocuments) -> None:
        """Adds documents, or replaces those with the same ids. Raises TransferError."""
        ...

    def finish(self) -> None:
        """All documents are there."""
        ...

    def close(self) -> None:
        """Lets go of connections, however the export ended."""
        ...

    def abandon(self, written: int) -> str:
        """The export has failed: leaves nothing where it can, and says what is left."""
        ...

    def query(self, query: CollectionQuery) -> str:
        """A query of three scores and their sum, ready to paste."""
        ...


def export(
    snapshot: Snapshot,
    target: Target,
    *,
    filter: Filter | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> int:
    """Writes all documents of a snapshot that a filter allows; returns how many.

    target: for the settings of `snapshot.undivided()`. filter: over declared fields.
    overwrite: what is in the target's place is removed first; resume: documents are added to what an
    interrupted export left. progress: documents written, and all.

    Raises TargetExistsError, or TransferError that says what is in the target; an interrupt is raised as
    one, with its message. Raises InvalidQueryError for a filter that the collection cannot answer.
    """
    total = snapshot.count(filter)
    if total == 0:
        which = "no documents" if filter is None else "no document that the filter allows"
        raise TransferError(f"collection {snapshot.settings.name!r} has {which}; nothing was exported")
    target.limits.check(snapshot, target.name, filter)
    try:
        target.begin(description_of(snapshot, total), overwrite=overwrite, resume=resume)
        parts = stored_documents(snapshot.undivided(), *target.batch, filter)
        return _write(parts, target, lambda written: progress(written, total))
    finally:
        target.close()


def _write(parts: Iterable[StoredDocuments], target: Target, progress: Callable[[int], None]) -> int:
    written = 0
    try:
        for documents in parts:
            target.write(documents)
            written += len(documents)
            progress(written)
        target.finish()
    except (Exception, KeyboardInterrupt) as error:
        left = target.abandon(written)
        said = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        raise TransferError(f"{said}; {left}") from error
    return written


def left_over(name: str, written: int) -> str:
    """What to say of a server that has some of the documents."""
    return (
        f"{name} has at least {written:,} documents of this export: go on with --resume, or begin with "
        "--overwrite"
    )


def require_same(description: dict[str, Any], present: object, name: str) -> None:
    """Raises TargetExistsError where what is there does not belong to the same encoder and settings."""
    settings = present.get("settings") if isinstance(present, dict) else None
    own = description["settings"]
    if not isinstance(settings, dict):
        raise TargetExistsError(f"{name} was not made by an export; choose another name, or --overwrite it")
    if settings.get("fingerprint") != own["fingerprint"]:
        raise TargetExistsError(
            f"{name} has vectors of fingerprint {settings.get('fingerprint')}, and the collection of "
            f"{own['fingerprint']}: choose another name, or --overwrite it"
        )
    differing = sorted(
        key
        for key in (own.keys() | settings.keys()) - {"name"}  # it may have another here
        if own.get(key) != settings.get(key)
    )
    if differing:
        raise TargetExistsError(
            f"{name} was made of a collection with another {', '.join(differing)}; choose another name, or "
            "--overwrite it"
        )


def exists(name: str) -> TargetExistsError:
    """What to raise where something is in the target's place."""
    return TargetExistsError(
        f"{name} exists: give --overwrite to replace it, --resume to add to it after an interrupted export, "
        "or another name"
    )
