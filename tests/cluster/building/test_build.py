"""Builds in shards, by this process: equal to a local build, begun again, published in one step."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.building import blocks
from tercet.cluster.building.build import ShardedReport, build_shards
from tercet.cluster.building.encoding import Encoding
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.objects.opening import open_store
from tercet.cluster.resharding.reshard import reshard
from tercet.cluster.shards.map import newest_map
from tercet.cluster.shards.placement import Placement
from tercet.cluster.work import segments
from tercet.cluster.work.executor import ThisProcess, Work
from tercet.index.collection import Collection
from tercet.index.errors import CollectionExistsError, DuplicateDocumentError
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.errors import SourceError
from tercet.ingest.progress import BuildProgress

pytestmark = pytest.mark.slow


def built(
    encoder: Any, url: str, source: Path, shards: int, executor: Any = None, **more: Any
) -> ShardedReport:
    documents = LocalDocuments(encoder)
    asked = ShardedBuild("articles", source, shards, **more.pop("build", {}))
    return build_shards(asked, documents, lambda: documents, url, executor or ThisProcess(), **more)


class Interrupted:
    """An executor that ends after so many pieces of encoding."""

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces

    def run(self, work: Work, pieces: Sequence[str]) -> Iterator[str]:
        yield from ThisProcess().run(work, pieces[: self._pieces] if isinstance(work, Encoding) else pieces)
        if isinstance(work, Encoding):
            raise KeyboardInterrupt


class Counting:
    """An executor that counts pieces, and does each twice."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def run(self, work: Work, pieces: Sequence[str]) -> Iterator[str]:
        if isinstance(work, Encoding):
            self.encoded += pieces
        yield from ThisProcess().run(work, [*pieces, *pieces])


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks.blocks_of, "__defaults__", (16, 2**20))


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_hold_what_a_local_build_does(
    shards: int,
    tmp_path: Path,
    tiny: Any,
    write_source: Any,
    pull_shards: Any,
    stored: Any,
    small_blocks: None,
) -> None:
    source, url = write_source(150), (tmp_path / "store").as_uri()
    report = built(tiny, url, source, shards, build={"asked": {"fields": {"year": "integer"}, "bm25": True}})
    build_collection(
        LocalDocuments(tiny), tmp_path, "articles", source, fields={"year": "integer"}, bm25=True
    )
    local = stored(Collection.open(tmp_path, "articles").snapshot())
    found = [stored(snapshot) for snapshot in pull_shards(url)]
    assert sum(map(len, found)) == 150 == report.report.documents
    assert {id: value for shard in found for id, value in shard.items()} == local
    assert all(
        Placement.evenly(shards).shard_of(id) == number for number, shard in enumerate(found) for id in shard
    )
    assert [len(shard) for shard in found] == list(report.documents)
    assert not list(open_store(url).list("builds"))


def test_one_codebook_is_learned_from_all(
    tmp_path: Path, eight: Any, write_source: Any, pull_shards: Any, stored: Any, small_blocks: None
) -> None:
    source, url = write_source(300), (tmp_path / "store").as_uri()
    built(eight, url, source, 2, build={"token_codec": "residual1"})
    build_collection(LocalDocuments(eight), tmp_path, "articles", source, token_codec="residual1")
    local = Collection.open(tmp_path, "articles").snapshot()
    shards = pull_shards(url)
    assert [shard.settings.codebook for shard in shards] == [local.settings.codebook] * 2
    assert {**stored(shards[0]), **stored(shards[1])} == stored(local)


def test_a_build_goes_on_where_it_was_interrupted(
    tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, stored: Any, small_blocks: None
) -> None:
    source, url = write_source(150), (tmp_path / "store").as_uri()
    with pytest.raises(KeyboardInterrupt):
        built(tiny, url, source, 2, Interrupted(3))
    assert newest_map(open_store(url)) is None
    executor = Counting()
    report = built(tiny, url, source, 2, executor)
    assert (report.reused, len(executor.encoded)) == (3, report.blocks - 3)
    assert report.report.documents == 150
    again = (tmp_path / "again").as_uri()
    built(tiny, again, source, 2)
    assert [*map(stored, pull_shards(url))] == [*map(stored, pull_shards(again))]


def test_segments_are_of_the_kind_of_the_whole(
    tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, monkeypatch: Any, small_blocks: None
) -> None:
    """The whole has enough vectors for graphs, though no shard would have."""
    monkeypatch.setattr("tercet.index.dense.kinds.FLAT_VECTORS", 100)
    monkeypatch.setattr(segments, "INDEXED_VECTORS", 20)
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(150), 3)
    kinds = {segment.entry.dense_kind for shard in pull_shards(url) for segment in shard._opened()}
    assert kinds == {"hnsw"}


def test_a_second_build_keeps_the_settings_and_takes_the_place_at_once(
    tmp_path: Path, tiny: Any, eight: Any, write_source: Any, pull_shards: Any, stored: Any
) -> None:
    url = (tmp_path / "store").as_uri()
    built(tiny, url, write_source(20), 2, build={"asked": {"fields": {"year": "integer"}}})
    report = built(tiny, url, write_source(30, "y.jsonl"), 3, servers=[(f"http://s{i}",) for i in range(3)])
    assert (report.map.version, report.report.snapshot) == (2, "000002")
    assert [shard.url for shard in report.map.shards] == ["http://s0", "http://s1", "http://s2"]
    shards = pull_shards(url)
    assert sum(len(stored(shard)) for shard in shards) == 30
    assert dict(shards[0].settings.fields) == {"year": "integer"}
    with pytest.raises(CollectionExistsError, match="with bm25"):
        built(tiny, url, write_source(30), 3, build={"asked": {"bm25": True}})


def test_a_shard_without_documents_is_one(
    tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, stored: Any
) -> None:
    url = (tmp_path / "store").as_uri()
    report = built(tiny, url, write_source(1), 2)
    assert sorted(report.documents) == [0, 1]
    assert sum(len(stored(shard)) for shard in pull_shards(url)) == 1


def test_a_bad_source_publishes_nothing(tmp_path: Path, tiny: Any, write_source: Any) -> None:
    url, source = (tmp_path / "store").as_uri(), write_source(5)
    source.write_text(source.read_text() + "\n" + json.dumps({"id": "d0001", "text": "again"}))
    with pytest.raises(DuplicateDocumentError, match="d0001"):
        built(tiny, url, source, 2)
    source.write_text("")
    with pytest.raises(SourceError, match="no documents"):
        built(tiny, url, source, 2)
    assert newest_map(open_store(url)) is None


def test_progress_says_what_is_done(tmp_path: Path, tiny: Any, write_source: Any, small_blocks: None) -> None:
    seen: list[BuildProgress] = []
    built(tiny, (tmp_path / "store").as_uri(), write_source(100), 2, progress=seen.append)
    phases = [each.phase for each in seen]
    assert list(dict.fromkeys(phases)) == ["reading", "encoding", "indexing"]
    for phase in phases:
        shares = [each.fraction for each in seen if each.phase == phase]
        assert shares == sorted(shares)
        assert shares[-1] == 1
    assert seen[-1].documents == seen[-1].total == 100


def test_a_bucket_holds_shards_as_a_folder_does(
    tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, stored: Any, bucket: str
) -> None:
    source, urls = write_source(20), [f"{bucket}/articles", (tmp_path / "store").as_uri()]
    for url in urls:
        built(tiny, url, source, 2)
        reshard(url, 3, ThisProcess())
    in_bucket, in_folder = ([stored(shard) for shard in pull_shards(url)] for url in urls)
    assert in_bucket == in_folder
    assert sum(map(len, in_bucket)) == 20
