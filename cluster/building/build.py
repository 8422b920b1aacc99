"""Builds a collection in shards: its documents are put on the object store in blocks, encoded, joined, and
published in one step.

Whoever does a piece of the work leaves a record of it on the store, and the first record of a piece counts. A
build that is begun again with the same source and settings goes on from the records that are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tercet.cluster.building.blocks import blocks_of
from tercet.cluster.building.encoding import BLOCKS, PARTS, Encoding, Part, block_path, part_path
from tercet.cluster.building.joining import Group, Joining, groups_of
from tercet.cluster.building.settings import ShardedBuild, kept_settings, new_settings, use_adapter
from tercet.cluster.objects.opening import open_store, require_creation
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.map import ShardMap, ShardPlace, newest_map, publish_map
from tercet.cluster.shards.placement import Placement
from tercet.cluster.work.executor import Executor
from tercet.cluster.work.folder import BegunWork, begin_work, found_work, remove_work, work_folder
from tercet.cluster.work.present import present_settings
from tercet.cluster.work.publishing import publish_shard
from tercet.cluster.work.records import agreed
from tercet.cluster.work.segments import kind_of_whole
from tercet.index.catalog.manifest import SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.ingest.build import CANCELLED, BuildReport
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.errors import BuildCancelledError
from tercet.ingest.progress import BuildProgress, Phase
from tercet.ingest.sources.reader import DocumentReader


@dataclass(frozen=True, slots=True)
class ShardedReport:
    """What a finished build did. report: as of any build; its snapshot is the map's version.

    documents: of each shard; reused: blocks that an earlier build had encoded already, of so many.
    """

    report: BuildReport
    map: ShardMap
    documents: tuple[int, ...]
    blocks: int
    reused: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """A block, by its name, and what is known of it before it is encoded."""

    name: str
    shard: int
    documents: int


def build_shards(
    build: ShardedBuild,
    encoder: DocumentEncoder,
    open_encoder: Callable[[], DocumentEncoder],
    url: str,
    executor: Executor,
    *,
    kept: CollectionSettings | None = None,
    mark: str | None = None,
    servers: Sequence[Sequence[str]] = (),
    progress: Callable[[BuildProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ShardedReport:
    """Builds a collection below a URL, which may have one already: then that keeps its settings, and counts
    until the new one is published.

    encoder: reads the sample and measures texts, here; open_encoder: opens it wherever the executor encodes.
    kept: the settings that the collection is to have, where those are not the ones it has there; mark: of
    letters a to f and digits, which the names of segments end with, by default random.
    servers: the addresses of each shard's servers, the writing one first, for the map, where they are known.

    Raises what `build_collection` raises, ClusterError for the store, and CollectionBusyError where another
    build published meanwhile.
    """
    store = open_store(url)
    require_creation(store)
    sharded = _Sharded(build, encoder, store, executor, progress, cancelled)
    return sharded.run(open_encoder, servers, kept, mark)


@dataclass
class _Sharded:
    """One build."""

    _build: ShardedBuild
    _encoder: DocumentEncoder
    _store: ObjectStore
    _executor: Executor
    _progress: Callable[[BuildProgress], None]
    _cancelled: Callable[[], bool]

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._former = newest_map(self._store)
        self._placement = Placement.evenly(self._build.shards)
        self._total: int | None = None
        self._documents = self._tokens = self._skipped = 0

    def run(
        self,
        open_encoder: Callable[[], DocumentEncoder],
        servers: Sequence[Sequence[str]],
        kept: CollectionSettings | None,
        mark: str | None,
    ) -> ShardedReport:
        """Does all of it."""
        present = kept
        if present is None and self._former is not None:
            present = present_settings(self._store, self._former)
        use_adapter(self._build, self._encoder, present)
        self._folder = work_folder(self._build.key(self._encoder, present))
        folder = self._store.below(self._folder)
        begun = found_work(folder) or begin_work(folder, self._settings(present), mark)
        reader = self._reader(begun.settings)
        done = {each.path for each in folder.list(PARTS)}
        there = done | {each.path for each in folder.list(BLOCKS)}
        cuts = list(self._cut(reader, folder, there, partitioned=begun.settings.partitioned))
        if not cuts:
            raise reader.no_documents()
        self._total = sum(cut.documents for cut in cuts)
        parts = self._encoded(Encoding(folder.url, begun.settings, open_encoder), cuts, done)
        shards = self._joined(begun, cuts, parts)
        published = self._publish(begun, shards, servers)
        remove_work(folder)
        report = BuildReport(
            self._build.name,
            f"{published.version:06d}",
            self._documents,
            self._tokens,
            sum(part.truncated for part in parts.values()),
            reader.skipped,
            reader.skips,
            time.monotonic() - self._started,
            None if begun.settings.window is None else _encodings(part.segment for part in parts.values()),
        )
        documents = tuple(sum(segment.documents for segment in shard) for shard in shards)
        reused = sum(part_path(cut.name) in done for cut in cuts)
        return ShardedReport(report, published, documents, len(cuts), reused)

    def _settings(self, present: CollectionSettings | None) -> CollectionSettings:
        if present is not None:
            return kept_settings(self._build, self._encoder, present)
        return new_settings(self._build, self._encoder, self._report)

    def _reader(self, settings: CollectionSettings) -> DocumentReader:
        return DocumentReader(
            self._build.source,
            on_error=self._build.on_error,
            fields=settings.fields,
            reading=self._build.reading,
            guessed=self._build.guessed,
            partitioned=settings.partitioned,
            tokenizer=self._encoder.tokenizer,
        )

    def _cut(
        self, reader: DocumentReader, folder: ObjectStore, there: set[str], *, partitioned: bool
    ) -> Iterator[_Cut]:
        """Puts the source's documents on the store, in blocks, but for those that are there or encoded."""
        for block in blocks_of(reader, self._placement, partitioned=partitioned):
            name = block.name
            if not there & {block_path(name), part_path(name)}:
                agreed(folder, block_path(name), block.content)
            self._skipped = reader.skipped
            self._report("reading", reader.fraction)
            yield _Cut(name, block.shard, block.documents)

    def _encoded(self, work: Encoding, cuts: Sequence[_Cut], done: set[str]) -> dict[str, Part]:
        """The part of each block, by its name."""
        folder = open_store(work.url)
        before = [cut.name for cut in cuts if part_path(cut.name) in done]
        parts = {name: Part.of_content(folder.get(part_path(name))) for name in before}
        for part in parts.values():
            self._count(part)
        missing = [cut.name for cut in cuts if cut.name not in parts]
        for part in self._executor.run(work, missing):
            if part.block not in parts:  # a piece may be done twice
                parts[part.block] = part
                self._count(part)
        return parts

    def _joined(
        self, begun: BegunWork, cuts: Sequence[_Cut], parts: Mapping[str, Part]
    ) -> list[list[SegmentEntry]]:
        """The segments of each shard."""
        settings, vectors = begun.settings, _encodings(part.segment for part in parts.values())
        kind = kind_of_whole(settings, self._build.shards, vectors)
        groups: list[Group] = []
        for shard in range(self._build.shards):
            segments = [parts[cut.name].segment for cut in cuts if cut.shard == shard]
            groups += groups_of(begun.shard(shard), segments, kind, begun.generation)
        self._report("indexing", 0.0)
        work, joined, done = Joining(self._store.url, self._folder, settings), dict[str, SegmentEntry](), 0
        for name, segment in self._executor.run(work, groups):
            if name not in joined:
                joined[name] = segment
                done += segment.encodings
                self._report("indexing", done / vectors)
        folders = [begun.shard(shard) for shard in range(self._build.shards)]
        return [[joined[group.name] for group in groups if group.shard == folder] for folder in folders]

    def _publish(
        self, begun: BegunWork, shards: Sequence[Sequence[SegmentEntry]], servers: Sequence[Sequence[str]]
    ) -> ShardMap:
        places = []
        for number, segments in enumerate(shards):
            folder = begun.shard(number)
            lineage = begun.lineage(number, self._placement.part(begun.generation, number))
            publish_shard(self._store.below(folder), begun.settings, segments, lineage)
            places.append(ShardPlace.of_servers(folder, servers[number] if servers else ()))
        return publish_map(self._store, self._build.name, places, self._placement, self._former)

    def _count(self, part: Part) -> None:
        self._documents += part.segment.documents
        self._tokens += part.tokens
        self._report("encoding", self._documents / self._total if self._total else 0.0)

    def _report(self, phase: Phase, fraction: float) -> None:
        if self._cancelled():
            raise BuildCancelledError(CANCELLED)
        seconds = time.monotonic() - self._started
        self._progress(
            BuildProgress(phase, fraction, self._documents, self._total, self._tokens, self._skipped, seconds)
        )


def _encodings(segments: Iterable[SegmentEntry]) -> int:
    return sum(segment.encodings for segment in segments)
