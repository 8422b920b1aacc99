"""Builds a collection from ready representations of the same encoder: nothing is encoded.

A source gives batches of documents with what the encoder made of them, and the settings of the collection
that they were taken from. A new collection takes these over, so that it answers as that one did.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import FingerprintMismatchError, InvalidDocumentError
from tercet.index.live.adoption import AdoptionMode
from tercet.index.token_codecs import RESIDUAL_BITS
from tercet.index.windows.settings import WindowSettings
from tercet.index.windows.store import DocumentWindows
from tercet.index.writer import SnapshotWriter
from tercet.ingest.build import CANCELLED, BuildReport
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.encoder_match import adapter_words
from tercet.ingest.errors import BuildCancelledError, SourceError
from tercet.ingest.progress import BuildProgress
from tercet.ingest.publishing import BuildTarget, build_target
from tercet.ingest.sources.checks import OnError, RecordChecks
from tercet.ingest.target import (
    RequestedSettings,
    chosen,
    chosen_adapter,
    exists,
    open_or_create,
    remove_unpublished,
)
from tercet.models.encoder import EncoderInfo
from tercet.models.representations import (
    Int64,
    Representations,
    SparseRows,
    TokenVectors,
    offsets_of,
    ragged_positions,
)
from tercet.models.soundness import Expected, faults

# What a new collection takes over from the one that its documents come from.
TAKEN_OVER = ("token_codec", "token_pooling", "lexical", "bm25", "bm25_language", "partitioned")


@dataclass(frozen=True, slots=True)
class ReadyBatch:
    """B documents with W encodings, which are as many in a source without windows.

    positions: where each stands in the source, for messages; offsets: int64[B+1], the encodings of each;
    spans: int64[W, 2], the first character and the end of each in its document's text; faults: records that
    are no document, with their positions.
    """

    positions: Sequence[str]
    documents: Sequence[Document]
    offsets: Int64
    spans: Int64
    representations: Representations
    faults: Sequence[tuple[str, InvalidDocumentError]] = ()

    @staticmethod
    def of(
        settings: CollectionSettings,
        positions: Sequence[str],
        documents: Sequence[Document],
        windows: tuple[Int64, Int64] | None,
        dense: np.ndarray[Any, np.dtype[np.float32]],
        sparse: SparseRows,
        colbert: TokenVectors | None,
        faults: Sequence[tuple[str, InvalidDocumentError]] = (),
    ) -> ReadyBatch:
        """settings: of the source; windows: offsets and spans; None where documents were encoded whole."""
        if windows is None:
            whole = DocumentWindows.whole(documents)
            windows = whole.offsets, whole.spans
        texts = len(dense)
        encoded = Representations(
            np.zeros(texts, np.int64), np.zeros(texts, np.bool_), dense, sparse, colbert
        )
        return ReadyBatch(positions, documents, *windows, encoded.keep(settings.sides), faults)

    def take(self, rows: Int64) -> ReadyBatch:
        """Some of the documents, without the faults."""
        texts = ragged_positions(self.offsets, rows)
        return ReadyBatch(
            [self.positions[row] for row in rows.tolist()],
            [self.documents[row] for row in rows.tolist()],
            offsets_of(np.diff(self.offsets)[rows]),
            self.spans[texts],
            self.representations.take(texts),
        )

    def unsound_documents(self, settings: CollectionSettings, name: str) -> dict[int, InvalidDocumentError]:
        """The documents whose representations cannot be used, and what to say of each.

        name: of the source. Raises SourceError where the arrays as a whole are not those of the settings.
        """
        problems: dict[int, InvalidDocumentError] = {}
        texts = np.repeat(np.arange(len(self.documents)), np.diff(self.offsets))
        expected = Expected(len(texts), settings.sides, settings, blank=True)
        for fault in faults(self.representations, expected):
            if fault.text is None:
                raise SourceError(f"{name}: {fault}")
            error = InvalidDocumentError(f"{fault.array} {fault.problem}")
            problems.setdefault(int(texts[fault.text]), error)
        return problems


class ReadySource(Protocol):
    """Documents with their representations.

    settings: those of the collection that they were taken from, without windows where no document has
    several; window: that collection's; name: what messages call the source; total: documents in it, None
    where that is not known.
    """

    @property
    def settings(self) -> CollectionSettings: ...

    @property
    def window(self) -> WindowSettings | None: ...

    @property
    def name(self) -> str: ...

    @property
    def total(self) -> int | None: ...

    def __iter__(self) -> Iterator[ReadyBatch]:
        """Raises SourceError where it cannot be read on."""
        ...

    def close(self) -> None:
        """Lets go of what it reads from."""
        ...


def build_ready(
    encoder: DocumentEncoder,
    collections_root: Path,
    name: str,
    source: ReadySource,
    *,
    on_error: OnError = "stop",
    settings: RequestedSettings | None = None,
    adapter: str | None = None,
    mode: AdoptionMode = "replace",
    progress: Callable[[BuildProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> BuildReport:
    """Builds a new snapshot of a collection from ready representations and publishes it in one step.

    encoder: the one that collection and source must belong to. settings: what is chosen for a new collection;
    the rest is as in the collection that the source was taken from. Others as for
    `build_collection`. Raises FingerprintMismatchError where the source is of another encoder, with both
    fingerprints, and as `build_collection` does.
    """
    check_collection_name(name)
    requested = chosen(settings or {})
    adapter = adapter if adapter is not None else source.settings.adapter
    encoder.use_adapter(chosen_adapter(collections_root, name, adapter, encoder.resolve_adapter))
    _require_same_encoder(source, encoder.info)
    if not exists(collections_root, name):
        made = {key: getattr(source.settings, key) for key in TAKEN_OVER}
        requested = {**made, "window": source.window, "fields": source.settings.own_fields, **requested}
        if requested["bm25"] is False:
            del requested["bm25_language"]
        if requested["token_codec"] in RESIDUAL_BITS:
            raise SourceError(
                f"{requested['token_codec']} learns a codebook from texts, and {source.name} has ready "
                "vectors: choose --token-codec int8 or float16, or build from the texts"
            )
    collection, created = open_or_create(collections_root, name, encoder.info, requested)
    try:
        _require_same_parts(source, collection.settings)
        with (
            closing(
                RecordChecks(
                    on_error, collection.settings.fields, partitioned=collection.settings.partitioned
                )
            ) as checks,
            build_target(collection, mode, secrets.token_hex(4)) as target,
        ):
            return _ReadyBuild(collection.settings, source, checks, target, progress, cancelled).run()
    except BaseException:
        if created:
            remove_unpublished(collection, collections_root)
        raise


class _ReadyBuild:
    """One build: batches are checked and written one after the other."""

    def __init__(
        self,
        settings: CollectionSettings,
        source: ReadySource,
        checks: RecordChecks,
        target: BuildTarget,
        progress: Callable[[BuildProgress], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._source = source
        self._already_pooled = source.settings.token_pooling > 1
        self._checks = checks
        self._target = target
        self._progress = progress
        self._cancelled = cancelled
        self._started = time.monotonic()
        self._documents = self._encodings = 0

    def run(self) -> BuildReport:
        """Writes everything, publishes, and says what was done."""
        for batch in self._source:
            for position, fault in batch.faults:
                self._checks.skip(position, fault)
            self._add(self._sound(batch))
            self._report_progress()
        if self._documents == 0:
            raise SourceError(
                f"{self._source.name}: no documents ({self._checks.skipped} records skipped); nothing was "
                "published. Give a source with at least one document."
            )
        self._report_progress(0.0)
        snapshot = self._target.publish(lambda done, total: self._report_progress(done / max(1, total)))
        return BuildReport(
            self._settings.name,
            snapshot,
            self._documents,
            0,
            0,
            self._checks.skipped,
            self._checks.skips,
            time.monotonic() - self._started,
            None if self._settings.window is None else self._encodings,
        )

    def _sound(self, batch: ReadyBatch) -> ReadyBatch:
        """The documents that the index takes by themselves, and whose representations are sound."""
        unsound = batch.unsound_documents(self._source.settings, self._source.name)
        kept = []
        for row, (position, document) in enumerate(zip(batch.positions, batch.documents, strict=True)):
            problem = unsound.get(row) or self._checks.problem(document, position)
            if problem is None:
                kept.append(row)
            else:
                self._checks.skip(position, problem)
        return batch if len(kept) == len(batch.documents) else batch.take(np.array(kept, np.int64))

    def _add(self, batch: ReadyBatch) -> None:
        """Writes documents together, or one by one where one of them is not sound."""
        if not batch.documents:
            return
        try:
            self._write(self._target.writer, batch)
        except InvalidDocumentError as error:
            if len(batch.documents) == 1:
                self._checks.skip(batch.positions[0], error)
                return
            for row in range(len(batch.documents)):
                self._add(batch.take(np.array([row])))

    def _write(self, writer: SnapshotWriter, batch: ReadyBatch) -> None:
        windows = None
        if self._settings.window is not None:
            windows = DocumentWindows(batch.offsets, batch.spans)
        writer.add(batch.documents, batch.representations, windows, already_pooled=self._already_pooled)
        self._documents += len(batch.documents)
        self._encodings += len(batch.representations)

    def _report_progress(self, indexed: float | None = None) -> None:
        if self._cancelled():
            raise BuildCancelledError(CANCELLED)
        total, done = self._source.total, self._documents + self._checks.skipped
        written = min(1.0, done / total) if total else 0.0
        self._progress(
            BuildProgress(
                "encoding" if indexed is None else "indexing",
                written if indexed is None else indexed,
                self._documents,
                None if total is None else total - self._checks.skipped,
                skipped=self._checks.skipped,
                seconds=time.monotonic() - self._started,
            )
        )


def _require_same_encoder(source: ReadySource, encoder: EncoderInfo) -> None:
    """Raises FingerprintMismatchError where the vectors are another encoder's, or another adapter's."""
    made = source.settings
    if made.fingerprint != encoder.fingerprint:
        raise FingerprintMismatchError(
            f"{source.name} has vectors of encoder {made.encoder!r} with {adapter_words(made.adapter)} "
            f"(fingerprint {made.fingerprint}), and this is {encoder.name!r} with "
            f"{adapter_words(encoder.adapter)} (fingerprint {encoder.fingerprint}): give the --checkpoint "
            "that they were made with, or build from the texts, which are then encoded"
        )


def _require_same_parts(source: ReadySource, settings: CollectionSettings) -> None:
    """Raises SourceError where the source lacks what the collection stores, or has other windows or pools."""
    made = source.settings
    if settings.stores_token_vectors and not made.stores_token_vectors:
        raise SourceError(
            f"{source.name} has no token vectors, and collection {settings.name!r} stores them: give "
            "--token-codec none for a new collection, or build from the texts"
        )
    if made.token_pooling > 1 and settings.token_pooling not in (1, made.token_pooling):
        raise SourceError(
            f"{source.name} has token pooling {made.token_pooling}, and collection {settings.name!r} has "
            f"{settings.token_pooling}: build under another name, or from the texts"
        )
    if settings.window != source.window:
        both = (source.window, settings.window)
        shown = [f"windows of {window}" if window else "no windows" for window in both]
        raise SourceError(
            f"{source.name} has {shown[0]}, and collection {settings.name!r} has {shown[1]}: build under "
            "another name, or from the texts"
        )
