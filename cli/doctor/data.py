"""The data root and its collections."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.cli import options
from tercet.cli.doctor.findings import Finding

if TYPE_CHECKING:
    from tercet.index.catalog.settings import CollectionSettings
    from tercet.service.settings.settings import Settings

TOPIC = "data root"
LEAST_FREE_BYTES = 1 << 30


def findings(settings: Settings, fingerprint: str | None) -> Iterator[Finding]:
    """Whether collections can be written and searched. fingerprint: of the encoder, where that works."""
    root = settings.data.resolve()
    if not root.exists():
        parent = next(folder for folder in root.parents if folder.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            yield Finding("note", TOPIC, f"{root} does not exist; it is made when it is needed")
        else:
            yield _unwritable(root, f"does not exist and cannot be made below {parent}")
        return
    if not (root.is_dir() and os.access(root, os.W_OK | os.X_OK)):
        yield _unwritable(root, "cannot be written to")
        return
    free = shutil.disk_usage(root).free
    text = f"{root} can be written to, {free / 2**30:.1f} GiB are free"
    if free < LEAST_FREE_BYTES:
        yield Finding("warning", TOPIC, text, "make room: a full disk refuses writes (507), and merges fail")
    else:
        yield Finding("ok", TOPIC, text)
    yield from _server(root)
    yield from _collections(options.collections_root(settings), settings.checkpoint, fingerprint)


def _unwritable(root: Path, problem: str) -> Finding:
    return Finding(
        "problem",
        TOPIC,
        f"{root} {problem}",
        f"give it to the user {os.geteuid()}, or name another with --data or TERCET_DATA",
    )


def _server(root: Path) -> Iterator[Finding]:
    from tercet.index.errors import CollectionBusyError
    from tercet.index.files.lock import ExclusiveLock

    if not (root / "service.lock").exists():
        return
    try:
        with ExclusiveLock(root / "service.lock", "data root"):
            pass
    except CollectionBusyError:
        yield Finding("ok", TOPIC, "a server runs on it")


def _collections(root: Path, own: str, fingerprint: str | None) -> Iterator[Finding]:
    from tercet.index.collection import list_collections
    from tercet.index.errors import SearchIndexError
    from tercet.index.inspection import inspect_collection

    names = list_collections(root)
    if not names:
        yield Finding("note", TOPIC, "there are no collections; `tercet demo` makes one of 262 documents")
    for name in names:
        try:
            inspected = inspect_collection(root, name)
        except SearchIndexError as error:
            yield Finding(
                "problem",
                TOPIC,
                f"collection {name!r} cannot be opened: {error}",
                f"tercet collection verify {name} says more; restore a backup, or build it again",
            )
            continue
        text = f"collection {name!r}: documents {inspected.documents:,}, segments {len(inspected.segments)}"
        # One with an adapter has the fingerprint of both, which only that adapter can tell.
        if fingerprint in (None, inspected.settings.fingerprint) or inspected.settings.adapter is not None:
            yield Finding("ok", TOPIC, text)
        else:
            yield _of_another_encoder(inspected.settings, text, own)


def _of_another_encoder(collection: CollectionSettings, text: str, own: str) -> Finding:
    """Whether a server could open the encoder that the collection was built with. own: its own checkpoint."""
    from tercet.ingest.encoder_match import checkpoint_of
    from tercet.models.checkpoint import checkpoint_name, opens_by_name
    from tercet.models.variants import Variant

    checkpoint = checkpoint_of(collection)
    text = f"{text}, built with {collection.encoder}"
    if checkpoint is None:
        gone = "it is not known where that is"
    elif checkpoint in (own, checkpoint_name(own)):
        gone = "it is another one by now"
    elif all(opens_by_name(part) or Path(part).is_dir() for part in Variant.of(checkpoint).parts):
        return Finding("ok", TOPIC, f"{text}, which is opened when it is searched")
    else:
        gone = f"{checkpoint} is not there"
    return Finding(
        "warning",
        TOPIC,
        f"{text}, fingerprint {collection.fingerprint}: {gone}, and searches of it fail",
        "put the checkpoint back, serve with --checkpoint FOLDER, or build the collection again",
    )
