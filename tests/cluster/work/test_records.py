"""Of several who did the same piece of work the first record counts, whatever the others made of it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tercet.cluster.objects.opening import open_store
from tercet.cluster.work.folder import begin_work, found_work, remove_work
from tercet.cluster.work.records import agreed, recorded
from tercet.index.catalog.settings import CollectionSettings


def test_the_first_record_counts(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    assert recorded(store, "parts/x.json") is None
    contents = [f"made by {number}".encode() for number in range(16)]
    with ThreadPoolExecutor(16) as threads:
        told = set(threads.map(lambda content: agreed(store, "parts/x.json", content), contents))
    assert told == {recorded(store, "parts/x.json")}
    assert told < set(contents)


def test_who_begins_later_takes_part_in_the_same_work(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri()).below("builds/key")
    assert found_work(store) is None
    settings = CollectionSettings("articles", "tiny", "f", 8, 8, 30, token_codec="sign", bm25=True)
    first = begin_work(store, settings)
    second = begin_work(store, CollectionSettings("articles", "tiny", "f", 8, 8, 30))
    assert second == first == found_work(store)
    assert first.settings == settings
    assert first.shard(2) == f"shards/{first.generation}-2"
    remove_work(store)
    assert found_work(store) is None
