"""What an engine holds, read with care: whatever of it cannot be used is its fault, and named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from unicodedata import normalize

import numpy as np

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import OneOf
from tercet.index.documents.store import encode_id
from tercet.index.errors import InvalidDocumentError
from tercet.index.segments.checks import check_batch
from tercet.index.segments.rows import DocumentRows
from tercet.index.windows.settings import WindowSettings
from tercet.index.windows.store import DocumentWindows
from tercet.ingest.errors import SourceError
from tercet.ingest.ready import ReadyBatch
from tercet.service.exceptions import BackendError, NotInBackendError
from tercet.transfer.description import described_settings
from tercet.transfer.errors import TransferError


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export said of its collection.

    settings: that the stored values go by; window: the collection's, also where no document has several;
    snapshot: its name.
    """

    settings: CollectionSettings
    window: WindowSettings | None
    snapshot: str


@contextmanager
def answering(errors: AbstractContextManager[None]) -> Iterator[None]:
    """Raises BackendError for what an engine's client raises. errors: raises TransferError for that."""
    try:
        with errors:
            yield
    except TransferError as error:
        raise BackendError(str(error)) from error


def exported_of(record: object, name: str) -> Exported:
    """What an export said of a collection. Raises BackendError where that cannot be read."""
    try:
        settings, window = described_settings(record, name)
    except SourceError as error:
        raise BackendError(str(error)) from error
    assert isinstance(record, dict)  # noqa: S101 - else it has no settings
    return Exported(settings, window, str(record.get("snapshot") or "exported"))


def served_settings(exported: Exported, name: str) -> CollectionSettings:
    """The settings by which a collection of this name is searched: without BM25, which is not exported."""
    return replace(exported.settings, name=name, window=exported.window, bm25=False)


def without_token_vectors(settings: CollectionSettings) -> CollectionSettings:
    """The settings of what is read without them."""
    return replace(settings, token_codec="none", codebook=None)  # noqa: S106  # a codec, no secret


def rows_of(batches: Iterable[ReadyBatch], settings: CollectionSettings, name: str) -> list[DocumentRows]:
    """Some documents of a collection as segments hold them.

    name: of the collection, for messages. Raises BackendError for a document that cannot be scored.
    """
    return [_rows_of(batch, settings, name) for batch in batches if batch.documents or batch.faults]


def _rows_of(batch: ReadyBatch, settings: CollectionSettings, name: str) -> DocumentRows:
    if batch.faults:
        position, fault = batch.faults[0]
        raise BackendError(f"{position} is no document that an export wrote: {fault}; export it again")
    windows = None if settings.window is None else DocumentWindows(batch.offsets, batch.spans)
    with stored(name):
        return check_batch(batch.documents, batch.representations, settings, windows, already_pooled=True)


def lacking(what: str, place: str) -> NotInBackendError:
    """What to raise where something is asked for that collections of a place do not offer."""
    return NotInBackendError(f"{what} is not offered for {place}: see docs/backends.md")


def strings_of(condition: OneOf) -> list[str]:
    """The strings of a condition that a document may have: a lone surrogate is in none.

    Engines hold metadata as they were given, so both of Unicode's canonical forms are among them.
    """
    encoded = condition.strings.take(np.arange(len(condition.strings)))
    forms = dict[str, None]()
    for string in encoded:
        with suppress(UnicodeDecodeError):
            text = string.decode()
            forms |= dict.fromkeys((text, normalize("NFC", text), normalize("NFD", text)))
    return list(forms)


def could_be_an_id(id: str) -> bool:
    """Whether a document may have it."""
    try:
        return bool(encode_id(id))
    except InvalidDocumentError:
        return False


@contextmanager
def stored(name: str) -> Iterator[None]:
    """Within it, what is read of a document that is wrong is the fault of the collection: BackendError."""
    try:
        yield
    except (InvalidDocumentError, SourceError) as error:
        raise BackendError(f"{name} has what no export wrote: {error}; export it again") from error
