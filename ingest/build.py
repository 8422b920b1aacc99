"""The offline pipeline: from a source of documents to a published snapshot. Plain Python, no HTTP.

Reading and writing happen in the calling thread while the encoder works in others, so each waits for
the slower of the two only. Memory is bounded by what `ingest/encoded.py` holds, and by what is kept of the
texts that a codebook was learned from, which are encoded once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from tercet.index.catalog.names import check_collection_name
from tercet.index.collection import Collection
from tercet.index.live.adoption import AdoptionMode
from tercet.ingest.codebook import codec_settings
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.document_windows import cutter_for
from tercet.ingest.encoded import EncodedDocuments
from tercet.ingest.errors import BuildCancelledError
from tercet.ingest.passages.split import SOURCE_FIELD
from tercet.ingest.progress import BuildProgress, Phase
from tercet.ingest.publishing import BuildTarget, build_target
from tercet.ingest.representation_cache import RepresentationCache
from tercet.ingest.sources.checks import OnError, Skipped
from tercet.ingest.sources.files import Source, holds_texts, paths_of, source_files
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import USUAL_READING, Reading
from tercet.ingest.target import (
    RequestedSettings,
    chosen,
    chosen_adapter,
    exists,
    open_or_create,
    remove_unpublished,
    settings_for,
)
from tercet.models.texts.windows import WindowCutter

CANCELLED = "the build was cancelled; nothing was published"


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a finished build did. `truncated` counts documents longer than the encoder's limit; `windows` is
    None in a collection without them. seconds: of all of it, the learning of a codebook included.
    """

    collection: str
    snapshot: str
    documents: int
    tokens: int
    truncated: int
    skipped: int
    skips: list[Skipped]
    seconds: float
    windows: int | None = None


def build_collection(
    encoder: DocumentEncoder,
    collections_root: Path,
    name: str,
    source: Source,
    *,
    on_error: OnError = "stop",
    reading: Reading = USUAL_READING,
    guessed: Sequence[str] = (),
    adapter: str | None = None,
    mark: str | None = None,
    mode: AdoptionMode = "replace",
    staged: bool = False,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    **requested: Unpack[RequestedSettings],
) -> BuildReport:
    """Builds a new snapshot of a collection from a source and publishes it in one step.

    The collection is created where it is missing, and removed again should this first build fail. One that
    exists keeps its settings, and its present snapshot until the new one is published. reading: which columns
    of the source are what, by default those of the usual names, and how documents are cut; passages and files
    of text have a field `source`, which a new collection declares. guessed: those of its fields whose type
    was found in the source, for messages. adapter: of a new collection; one that exists goes with its own.
    mark: of the snapshot, see `Collection.writer`. mode: by default the source's documents replace all that
    were there; `upsert` leaves those with other ids, but for former passages of the same documents. staged:
    nothing is published: the build lies beside the collection, in the stage of this mark, for a process that
    writes the collection to adopt.

    Raises SourceError for a bad record (with `on_error` "stop") or a source without documents,
    CollectionNotFoundError where a staged build has none to lie beside,
    FingerprintMismatchError where the collection belongs to another encoder or adapter, CollectionExistsError
    where it has other settings than those asked for, UnsupportedError for windows that the encoder does not
    take, BuildCancelledError, and what encoder and index raise.
    """
    started = time.monotonic()
    check_collection_name(name)
    encoder.use_adapter(chosen_adapter(collections_root, name, adapter, encoder.resolve_adapter))
    files = [
        file for path in paths_of(source) for file in source_files(path, reading.format)
    ]  # before anything is created
    of_texts = reading.split is not None or any(holds_texts(file, reading.format) for file in files)
    if of_texts and (requested.get("fields") is not None or not exists(collections_root, name)):
        requested["fields"] = {**SOURCE_FIELD, **(requested.get("fields") or {})}
    token_codec = requested.pop("token_codec", None)
    settings, cache = chosen(requested), RepresentationCache()
    if staged:
        Collection.open(collections_root, name)  # one that was deleted since the build began stays deleted
    if not exists(collections_root, name):
        # What does not hold is reported before anything is encoded.
        cutter = cutter_for(settings_for(name, encoder.info, settings), encoder.tokenizer)

        def learning(phase: Phase, fraction: float) -> None:
            if cancelled():
                raise BuildCancelledError(CANCELLED)
            progress(BuildProgress(phase, fraction, seconds=time.monotonic() - started))

        settings |= codec_settings(encoder, cutter, source, token_codec, on_error, reading, cache, learning)
    elif token_codec is not None:
        settings["token_codec"] = token_codec
    collection, created = open_or_create(collections_root, name, encoder.info, settings)
    try:
        cutter = cutter_for(collection.settings, encoder.tokenizer)
        reader = DocumentReader(
            source,
            on_error=on_error,
            fields=collection.settings.fields,
            reading=reading,
            guessed=guessed,
            partitioned=collection.settings.partitioned,
            tokenizer=encoder.tokenizer,
        )
        cuts, mark = reading.split is not None, mark or secrets.token_hex(4)
        with build_target(collection, mode, mark, staged=staged, cuts=cuts) as target:
            own_name = collection.settings.name  # `name` may be an alias
            build = _Build(own_name, encoder, cache, cutter, reader, target, progress, cancelled)
            return replace(build.run(), seconds=time.monotonic() - started)
    except BaseException:
        if created:
            remove_unpublished(collection, collections_root)
        raise


class _Build:
    """One build: what is read is encoded and written, then published."""

    def __init__(
        self,
        name: str,
        encoder: DocumentEncoder,
        cache: RepresentationCache,
        cutter: WindowCutter | None,
        reader: DocumentReader,
        target: BuildTarget,
        progress: Callable[[BuildProgress], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._name = name
        self._cutter = cutter
        self._reader = reader
        self._target = target
        self._progress = progress
        self._cancelled = cancelled
        self._started = time.monotonic()
        self._done = EncodedDocuments(encoder, cutter, target.writer, cache.take, self._report_progress)

    def run(self) -> BuildReport:
        """Encodes and writes everything, publishes, and says what was done."""
        done = self._done
        done.write(self._reader)
        if done.documents == 0:
            raise self._reader.no_documents()
        self._report_progress(0.0)
        snapshot = self._target.publish(lambda done, total: self._report_progress(done / max(1, total)))
        return BuildReport(
            self._name,
            snapshot,
            done.documents,
            done.tokens,
            done.truncated,
            self._reader.skipped,
            self._reader.skips,
            time.monotonic() - self._started,
            None if self._cutter is None else done.encoded,
        )

    def _report_progress(self, indexed: float | None = None) -> None:
        """indexed: the share of the vectors that the dense index has, once all is encoded."""
        if self._cancelled():
            raise BuildCancelledError(CANCELLED)
        done, reader = self._done, self._reader
        encoded = reader.fraction * done.encoded / max(1, done.read)  # by the bytes that were read
        if reader.total:
            encoded = min(1.0, done.documents / reader.total)
        self._progress(
            BuildProgress(
                "encoding" if indexed is None else "indexing",
                encoded if indexed is None else indexed,
                done.documents,
                reader.total,
                done.tokens,
                reader.skipped,
                time.monotonic() - self._started,
            )
        )
