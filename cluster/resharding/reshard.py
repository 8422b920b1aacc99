"""Moves a collection from N shards to M, from what its shards have published, while these go on serving.

A shard may go on as one of the M: then what leaves it and what comes to it is copied, and no more. Each
segment of a shard is divided once; what is written meanwhile comes with the newer snapshots that the shards
publish, of which only new segments and new marks are looked at. Once there is nothing new, the map of the M
shards is published, in one step.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tercet.cluster.objects.opening import open_store, require_creation
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.resharding.errors import NotInShardsError, SettingsMovedError
from tercet.cluster.resharding.splitting import SPLITS, Source, Split, Splitting, split_path
from tercet.cluster.shards.map import ShardMap, ShardPlace, newest_map, publish_map
from tercet.cluster.snapshots.published import file_path, newest_number, required_snapshot
from tercet.cluster.snapshots.record import PublishedSnapshot
from tercet.cluster.work.executor import Executor
from tercet.cluster.work.folder import BegunWork, begin_work, found_work, remove_work, work_folder
from tercet.cluster.work.present import published_settings
from tercet.cluster.work.publishing import publish_shard
from tercet.cluster.work.segments import kind_of_whole
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import SegmentEntry, dense_vectors
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import DenseKind

MOST_ROUNDS = 20
KEPT_BESIDE = (CollectionLayout(Path()).defaults.name, CollectionLayout(Path()).effort.name)


@dataclass(frozen=True, slots=True)
class ReshardProgress:
    """How far a round is: of segments that the shards have published, how many are divided."""

    round: int
    segments: int
    total: int


@dataclass(frozen=True, slots=True)
class ReshardReport:
    """What was done. map: the new one, None where nothing was to be switched; folders, documents: of each
    shard by then; divided: segments that were divided now; rounds: how often the shards had published
    something new; moved_documents, moved_bytes: what comes to shards from others; held_seconds: for how long
    the present shards refused writes, None where they did not.
    """

    collection: str
    map: ShardMap | None
    folders: tuple[str, ...]
    documents: tuple[int, ...]
    divided: int
    rounds: int
    moved_documents: int = 0
    moved_bytes: int = 0
    held_seconds: float | None = None


def reshard(
    url: str,
    shards: int,
    executor: Executor,
    *,
    switch: bool = True,
    servers: Sequence[Sequence[str]] = (),
    progress: Callable[[ReshardProgress], None] = lambda _: None,
) -> ReshardReport:
    """Brings so many new shards up to what the present ones have published, and has the map name them.

    switch: otherwise the map stays, and a later call does less. servers: of each new shard in
    order, the writing one first.

    What a shard has not published is not in the new ones: who switches stops writes before, and has every
    shard publish. Raises NotInShardsError where the URL has no map, SettingsMovedError where fields were
    declared meanwhile, CollectionBusyError where another map was published meanwhile, ClusterError,
    DamagedIndexError or OSError. Then the map is as before, and what was divided is not divided again.
    """
    store, former = required_map(url)
    move = Resharding(store, former, [None] * shards, executor, progress)
    move.catch_up()
    if switch:
        move.switch(servers)
        move.catch_up()  # what came between the last look and the switch
        move.finish()
    return move.report


def required_map(url: str) -> tuple[ObjectStore, ShardMap]:
    """The object store at a URL, and the newest map there. Raises NotInShardsError, or ClusterError."""
    store = open_store(url)
    require_creation(store)
    found = newest_map(store)
    if found is None:
        raise NotInShardsError(
            f"{url} has no map of shards; give the URL that a build in shards went to (tercet collection "
            "build --shards N --output URL), or give a collection that was made through a router its map "
            "(--map-of)"
        )
    return store, found


class Resharding:
    """One move, step by step. Steps raise as `reshard`."""

    def __init__(
        self,
        store: ObjectStore,
        former: ShardMap,
        goes_on: Sequence[int | None],
        executor: Executor,
        progress: Callable[[ReshardProgress], None],
    ) -> None:
        """goes_on: of each shard to be, which present one goes on as it; None for a new one."""
        self._store = store
        self._former = former
        self._goes_on = tuple(goes_on)
        self._placement = former.placement.moved_to(goes_on)
        self._executor = executor
        self._progress = progress
        self._divided = self._rounds = 0
        self._documents: tuple[int, ...] = ()
        self._coming: tuple[tuple[SegmentEntry, ...], ...] = ()
        self._done: tuple[int, ...] = ()  # the numbers of the snapshots that the new shards hold
        self._published: ShardMap | None = None
        self._numbers: dict[int, int] = {}  # of the snapshot that is published for each shard by now
        snapshots = self._snapshots()
        self._present = self._settings_of(snapshots)
        self._folder = work_folder(self._key())
        self._records = store.below(self._folder)
        settings = self._present.of_new_collection(former.collection)
        self._begun: BegunWork = found_work(self._records) or begin_work(self._records, settings)
        self._folders = tuple(self._begun.shard(number) for number in range(len(goes_on)))
        # All parts of a collection have one id, which those that go on keep.
        first = snapshots[0].lineage
        part = None if first is None or not any(each is not None for each in goes_on) else first.part
        self._collection = self._begun.generation if part is None else part.collection

    @property
    def new(self) -> dict[int, str]:
        """The folders of new shards' snapshots, below the collection's URL, by their numbers."""
        return {number: self._folders[number] for number, each in enumerate(self._goes_on) if each is None}

    @property
    def received(self) -> tuple[str | None, ...]:
        """Of each shard that goes on, the folder of what comes to it, if anything does; None of new ones."""
        return tuple(
            None if each is None or not self._numbers.get(number) else self._folders[number]
            for number, each in enumerate(self._goes_on)
        )

    @property
    def coming(self) -> tuple[int, ...]:
        """How many documents come to each shard."""
        return tuple(sum(segment.documents_kept for segment in segments) for segments in self._coming)

    @property
    def report(self) -> ReshardReport:
        """What was done so far."""
        return ReshardReport(
            self._former.collection,
            self._published,
            tuple(self._place(number) for number in range(len(self._goes_on))),
            self._documents,
            self._divided,
            self._rounds,
            sum(self.coming),
            sum(
                file.size_bytes
                for each in self._coming
                for segment in each
                for file in segment.files.values()
            ),
        )

    def catch_up(self) -> None:
        """Rounds until the present shards have published nothing newer than what is divided."""
        for _ in range(MOST_ROUNDS):
            snapshots = self._snapshots()
            numbers = tuple(snapshot.number for snapshot in snapshots)
            if numbers == self._done:
                break
            self._round(snapshots)
            self._done = numbers

    def switch(self, servers: Sequence[Sequence[str]]) -> ShardMap:
        """Has the map name the shards, and the servers of each, if any are given."""
        places = [
            ShardPlace.of_servers(self._place(number), servers[number] if servers else (), received)
            for number, received in enumerate(self.received)
        ]
        self._published = publish_map(
            self._store, self._former.collection, places, self._placement, self._former
        )
        return self._published

    def finish(self) -> None:
        """Removes the records of the work."""
        remove_work(self._records)

    def _round(self, snapshots: Sequence[PublishedSnapshot]) -> None:
        """Publishes for each shard what comes to it of these snapshots."""
        self._rounds += 1
        if self._settings_of(snapshots) != self._present:
            raise SettingsMovedError(
                f"the shards at {self._store.url} got other settings meanwhile; run this again"
            )
        self._require_parts(snapshots)
        sources = [
            Source(place.snapshots, segment)
            for place, snapshot in zip(self._former.shards, snapshots, strict=True)
            for segment in snapshot.manifest.segments
        ]
        splits = self._splits(sources)
        position = max(snapshot.manifest.ledger_position for snapshot in snapshots)
        beside = self._beside(snapshots[0])
        coming: list[tuple[SegmentEntry, ...]] = []
        for number, folder in enumerate(self._folders):
            found = [splits[source.name].segments[number] for source in sources]
            segments = tuple(segment for segment in found if segment is not None)
            coming.append(segments)
            shard = self._store.below(folder)
            before = self._numbers.setdefault(number, newest_number(shard))
            if not segments and not before and self._goes_on[number] is not None:
                continue
            lineage = self._begun.lineage(number, self._placement.part(self._collection, number))
            publish_shard(shard, self._begun.settings, segments, lineage, position, before + 1, beside)
            self._numbers[number] = before + 1
        self._coming = tuple(coming)
        self._documents = tuple(
            self._staying(each, sources, splits) + new
            for each, new in zip(self._goes_on, self.coming, strict=True)
        )

    def _require_parts(self, snapshots: Sequence[PublishedSnapshot]) -> None:
        """Raises SettingsMovedError where a shard has not published since it is what the map says."""
        for number, snapshot in enumerate(snapshots):
            part = None if snapshot.lineage is None else snapshot.lineage.part
            if part is not None and part != self._former.placement.part(part.collection, number):
                raise SettingsMovedError(
                    f"shard {number} at {self._store.url} has not published since it got its present "
                    "buckets: have each publish (tercet collection push), and run this again"
                )

    def _staying(self, present: int | None, sources: Sequence[Source], splits: Mapping[str, Split]) -> int:
        """How many documents stay in a present shard that goes on."""
        if present is None:
            return 0
        folder = self._former.shards[present].snapshots
        return sum(
            source.segment.documents_kept
            - sum(each.documents_kept for each in splits[source.name].segments if each is not None)
            for source in sources
            if source.shard == folder
        )

    def _place(self, number: int) -> str:
        """The folder of a shard's snapshots."""
        present = self._goes_on[number]
        return self._folders[number] if present is None else self._former.shards[present].snapshots

    def _splits(self, sources: Sequence[Source]) -> dict[str, Split]:
        """What each source has become, by its name."""
        there = {each.path for each in self._records.list(SPLITS)}
        before = [source.name for source in sources if split_path(source.name) in there]
        splits = {name: Split.of_content(self._records.get(split_path(name))) for name in before}
        missing = [source for source in sources if source.name not in splits]
        self._told(len(splits), len(sources))
        for split in self._executor.run(self._work(sources), missing):
            self._divided += split.source not in splits
            splits[split.source] = split
            self._told(len(splits), len(sources))
        return splits

    def _work(self, sources: Sequence[Source]) -> Splitting:
        return Splitting(
            self._store.url,
            self._folder,
            self._folders,
            self._placement,
            {
                self._former.shards[present].snapshots: number
                for number, present in enumerate(self._goes_on)
                if present is not None
            },
            self._present,
            self._begun.settings,
            self._kind(sources),
            self._begun.generation,
        )

    def _kind(self, sources: Sequence[Source]) -> DenseKind:
        """The dense kind of the whole, as it is."""
        vectors = dense_vectors(source.segment for source in sources)
        return kind_of_whole(self._begun.settings, len(self._goes_on), sum(vectors.values()), vectors)

    def _snapshots(self) -> list[PublishedSnapshot]:
        return [required_snapshot(self._store.below(place.snapshots)) for place in self._former.shards]

    def _settings_of(self, snapshots: Sequence[PublishedSnapshot]) -> CollectionSettings:
        """Those that all shards have. Raises SettingsMovedError where they differ."""
        found = [
            published_settings(self._store.below(place.snapshots), snapshot)
            for place, snapshot in zip(self._former.shards, snapshots, strict=True)
        ]
        if any(settings != found[0] for settings in found):
            raise SettingsMovedError(
                f"the shards at {self._store.url} have different settings, perhaps as a field was declared "
                "and not all have published since: have each publish (tercet collection push), and run this "
                "again"
            )
        return found[0]

    def _beside(self, snapshot: PublishedSnapshot) -> dict[str, bytes]:
        """Search defaults and dense effort, as the first shard has them."""
        shard = self._store.below(self._former.shards[0].snapshots)
        named = {name: snapshot.files[name].sha256 for name in KEPT_BESIDE if name in snapshot.files}
        return {name: shard.get(file_path(sha256)) for name, sha256 in named.items()}

    def _key(self) -> str:
        fields = sorted(self._present.fields.items())
        present = [place.snapshots for place in self._former.shards]
        moved = [self._former.placement.owners, self._placement.owners, self._goes_on]
        described = ["reshard", present, moved, self._present.sha256, fields]
        return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]

    def _told(self, done: int, total: int) -> None:
        self._progress(ReshardProgress(self._rounds, done, total))
