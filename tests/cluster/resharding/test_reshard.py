"""Re-sharding from published snapshots: nothing lost, nothing twice, answers as before, writes meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.cluster.building.build import build_shards
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.resharding import splitting
from tercet.cluster.resharding.errors import NotInShardsError, SettingsMovedError
from tercet.cluster.resharding.reshard import reshard
from tercet.cluster.shards.map import ShardMap, newest_map, publish_map
from tercet.cluster.shards.placement import Placement
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.cluster.work.executor import ThisProcess, Work
from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.encoder import encode


class LiveShards:
    """The shards of a map as collections that are written, and push their snapshots."""

    def __init__(self, folder: Path, url: str, encoder: Any) -> None:
        self._store = open_store(url)
        self._encoder = encoder
        shards = newest_map(self._store)
        assert shards is not None
        self.map: ShardMap = shards
        self._folders = [folder / f"{shards.version}-{number}" for number in range(len(shards.shards))]
        for root, store in zip(self._folders, self._stores(), strict=True):
            (root / "collections").mkdir(parents=True)
            pull(root / "collections", "articles", store, root / "stages")

    def _stores(self) -> list[ObjectStore]:
        return [self._store.below(place.snapshots) for place in self.map.shards]

    def _of(self, id: str) -> Collection:
        folder = self._folders[self.map.placement.shard_of(id)]
        return Collection.open(folder / "collections", "articles")

    def put(self, id: str, text: str) -> None:
        with LiveCollection(self._of(id)) as live:
            live.put([Document(id, text, None, {"year": 2000})], encode(self._encoder, [text]))

    def delete(self, id: str) -> None:
        with LiveCollection(self._of(id)) as live:
            live.delete([id])

    def push(self) -> None:
        for root, store in zip(self._folders, self._stores(), strict=True):
            collection = Collection.open(root / "collections", "articles")
            with LiveCollection(collection) as live:
                live.flush()
            push(collection, store, root / "stages")


class Meanwhile:
    """An executor that lets something happen after the pieces of each run."""

    def __init__(self, *happens: Any) -> None:
        self._happens = [*happens]
        self.pieces: list[str] = []

    def run(self, work: Work, pieces: Sequence[str]) -> Iterator[str]:
        self.pieces += pieces
        yield from ThisProcess().run(work, pieces)
        if self._happens:
            self._happens.pop(0)()


def scores(snapshots: list[Snapshot], encoder: Any) -> dict[str, list[float]]:
    """The exact scores of every document for a query."""
    found: dict[str, list[float]] = {}
    for snapshot in snapshots:
        ids, components = snapshot.score_all(encode(encoder, ["green tea and steam"], "query"))
        found |= dict(zip(ids, components.tolist(), strict=True))
    return found


def built(encoder: Any, url: str, source: Path, shards: int) -> None:
    documents = LocalDocuments(encoder)
    build = ShardedBuild("articles", source, shards, {"fields": {"year": "integer"}, "lexical": "plain"})
    build_shards(build, documents, lambda: documents, url, ThisProcess())


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 4)])
def test_documents_and_scores_stay(
    before: int, after: int, tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, stored: Any
) -> None:
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(120), before)
    live = LiveShards(tmp_path / "live", url, tiny)
    live.delete("d0003")
    live.put("d0004", "black steam")
    live.put("new", "green leaf")
    live.push()
    former = pull_shards(url)
    report = reshard(url, after, ThisProcess())
    assert report.map is not None
    assert (report.map.version, len(report.map.shards), sum(report.documents)) == (2, after, 120)
    found = pull_shards(url)
    was, now = (
        {id: row for each in shards for id, row in stored(each).items()} for shards in (former, found)
    )
    assert now == was
    assert sum(len(stored(shard)) for shard in found) == 120
    assert scores(found, tiny) == scores(former, tiny)
    assert all(
        Placement.evenly(after).shard_of(id) == number
        for number, each in enumerate(found)
        for id in stored(each)
    )
    assert [shard.settings.fields for shard in found] == [{"year": "integer"}] * after


@pytest.mark.slow
def test_what_is_written_meanwhile_comes_along(
    tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, stored: Any
) -> None:
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(60), 2)
    live = LiveShards(tmp_path / "live", url, tiny)

    def write(*ids: str) -> Any:
        def happen() -> None:
            for id in ids:
                live.put(id, f"hot tea {id}")
            live.delete("d0010")
            live.push()

        return happen

    executor = Meanwhile(write("d0001", "first"), write("second", "first"))
    report = reshard(url, 3, executor, switch=False)
    assert report.map is None
    assert report.rounds == 3
    live.delete("second")
    live.push()
    report = reshard(url, 3, executor)
    assert (report.rounds, sum(report.documents)) == (1, 60)
    was: dict[str, Any] = {}
    now: dict[str, Any] = {}
    for number in range(2):
        root = tmp_path / "live" / f"1-{number}" / "collections"
        with closing(Collection.open(root, "articles").snapshot()) as snapshot:
            was |= stored(snapshot)
    for shard in pull_shards(url):
        now |= stored(shard)
    assert now == was
    assert {"first", "d0001"} <= now.keys()
    assert not {"second", "d0010"} & now.keys()


@pytest.mark.slow
def test_a_new_shard_is_written_on(tmp_path: Path, tiny: Any, write_source: Any) -> None:
    """Positions go on after those of all former shards, so that no reader takes an older one for newer."""
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(30), 2)
    live = LiveShards(tmp_path / "live", url, tiny)
    for number in range(5):
        live.put(f"new{number}", "tea")
    live.push()
    reshard(url, 3, ThisProcess())
    renewed = LiveShards(tmp_path / "live", url, tiny)
    renewed.put("more", "green tea")
    collection = renewed._of("more")
    with LiveCollection(collection) as opened:
        stored = opened.snapshot().stored("more")[1]
    assert stored is not None
    positions = [
        int(np.max([segment.positions.max() for segment in snapshot._opened()], initial=0))
        for snapshot in (
            Collection.open(root / "collections", "articles").snapshot() for root in live._folders
        )
    ]
    assert stored.position > max(positions)


def test_interrupted_work_is_not_done_again(tmp_path: Path, tiny: Any, write_source: Any) -> None:
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(60), 2)

    class Interrupted:
        def run(self, work: Work, pieces: Sequence[str]) -> Iterator[str]:
            yield from ThisProcess().run(work, pieces[:1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reshard(url, 3, Interrupted())
    found = newest_map(open_store(url))
    assert found is not None
    assert found.version == 1
    assert reshard(url, 3, ThisProcess()).divided == 1


def test_of_two_one_switches(tmp_path: Path, tiny: Any, write_source: Any) -> None:
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(20), 2)
    store = open_store(url)
    former = newest_map(store)
    assert former is not None
    executor = Meanwhile(lambda: publish_map(store, "articles", former.shards, former.placement, former))
    with pytest.raises(CollectionBusyError, match="version 2 of the map was published meanwhile"):
        reshard(url, 3, executor)


def test_what_is_no_collection_in_shards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotInShardsError, match="has no map of shards"):
        reshard((tmp_path / "store").as_uri(), 3, ThisProcess())


def test_shards_with_different_fields_are_refused(tmp_path: Path, tiny: Any, write_source: Any) -> None:
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(20), 2)
    live = LiveShards(tmp_path / "live", url, tiny)
    with LiveCollection(live._of("d0001")) as opened:
        opened.declare({"kind": "keyword"})
    live.push()
    with pytest.raises(SettingsMovedError, match="have different settings"):
        reshard(url, 3, ThisProcess())


@pytest.mark.slow
def test_for_new_marks_no_segment_is_fetched(
    tmp_path: Path,
    tiny: Any,
    write_source: Any,
    pull_shards: Any,
    stored: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They come last, while writes wait; whoever marks them need not be who divided the segment."""
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(60), 2)
    live = LiveShards(tmp_path / "live", url, tiny)
    reshard(url, 3, ThisProcess(), switch=False)
    live.delete("d0003")
    live.push()
    monkeypatch.setattr(splitting, "fetched_segment", None)
    assert sum(reshard(url, 3, ThisProcess()).documents) == 59
    monkeypatch.undo()
    assert "d0003" not in {id for shard in pull_shards(url) for id in stored(shard)}
