"""Shards that have replicas grow from three to four: partitions stay whole, and replicas follow."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.building.build import build_shards
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.objects.opening import open_store
from tercet.cluster.resharding.live import reshard_live
from tercet.cluster.shards.map import newest_map, publish_map
from tercet.cluster.work.executor import ThisProcess
from tercet.ingest.document_encoders import LocalDocuments
from tests.cluster.resharding.live_servers import (
    COLLECTION,
    DOCUMENTS,
    NAME,
    Cluster,
    answers_of,
    documents_of,
)
from tests.cluster.resharding.test_live import wait_for_version
from tests.service.polling import REST_SECONDS

pytestmark = pytest.mark.slow

TENANTS = [f"tenant-{number}" for number in range(24)]
NOTES = [{"id": f"d{row}", "text": f"green tea {row}", "partition": TENANTS[row % 24]} for row in range(72)]


@pytest.fixture
def cluster(tmp_path: Path, tiny: Any) -> Iterator[Cluster]:
    """A build in three shards, whose source has a column of partitions."""
    url, source = (tmp_path / "store").as_uri(), tmp_path / "notes.jsonl"
    source.write_text("\n".join(map(json.dumps, NOTES)), encoding="utf-8")
    encoder = LocalDocuments(tiny)
    build = ShardedBuild(NAME, source, 3, {"partitioned": True})
    build_shards(build, encoder, lambda: encoder, url, ThisProcess())
    made = Cluster(tmp_path, url, tiny)
    yield made
    made.close()


@contextmanager
def writing(*urls: str) -> Iterator[None]:
    """Documents of all tenants are put meanwhile, each at all these servers."""
    ended, failures = threading.Event(), list[str]()

    def write() -> None:
        number = 0
        while not ended.is_set():
            id, partition = f"w{number % 48}", TENANTS[number % 24]
            body = {"documents": [{"id": id, "text": f"steam {number}", "partition": partition}]}
            for url in urls:
                answer = httpx.put(url + DOCUMENTS, json=body, timeout=60)
                while answer.status_code == 503:
                    answer = httpx.put(url + DOCUMENTS, json=body, timeout=60)
                if not answer.is_success:
                    failures.append(answer.text)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    yield
    ended.set()
    writer.join(60)
    assert not failures


def places(urls: list[str]) -> dict[str, set[str]]:
    """The servers that have documents of each partition."""
    found = defaultdict[str, set[str]](set)
    for url in urls:
        for document in documents_of(url).values():
            found[document["partition"]].add(url)
    return dict(found)


def test_shards_with_replicas_grow(cluster: Cluster, tmp_path: Path) -> None:
    writers = cluster.serve_map("a", "b", "c")
    store = open_store(cluster.url)
    former = newest_map(store)
    assert former is not None
    folders = [place.snapshots for place in former.shards]
    replicas = [cluster.replica(f"replica-{number}", folder) for number, folder in enumerate(folders)]
    with_replicas = [
        replace(place, replicas=(replica,)) for place, replica in zip(former.shards, replicas, strict=True)
    ]
    publish_map(store, NAME, with_replicas, former.placement, former)
    router, one, added = cluster.router("router"), cluster.server("one"), cluster.server("d")
    httpx.put(one + COLLECTION, json={"partitioned": True}).raise_for_status()
    httpx.put(one + DOCUMENTS, json={"documents": NOTES}, timeout=60).raise_for_status()
    before = places(writers)
    servers = [*zip(writers, replicas, strict=True), (added,)]
    with writing(router, one):
        report = reshard_live(cluster.url, ThisProcess(), servers, cluster.opened)
    assert report.map is not None
    assert [place.servers for place in report.map.shards] == servers
    after = places([*writers, added])
    assert before.keys() == after.keys() == set(TENANTS)
    assert {len(urls) for urls in after.values()} == {1}
    moved = [tenant for tenant in TENANTS if after[tenant] != before[tenant]]
    assert 0 < len(moved) < 12
    assert {url for tenant in moved for url in after[tenant]} == {added}
    cluster.opened([*writers, added], NAME).push(report.folders)
    for writer, replica in zip(writers, replicas, strict=True):
        while documents_of(replica) != documents_of(writer):
            time.sleep(REST_SECONDS)
    wait_for_version(router, report.map.version)
    assert documents_of(router) == documents_of(one)
    assert answers_of(router) == answers_of(one)
    for tenant in TENANTS:
        search = {"collection": NAME, "query": "green steam", "partition": tenant, "top_k": 50}
        found = [httpx.post(f"{url}/search", json=search).raise_for_status().json() for url in (router, one)]
        assert found[0]["hits"] == found[1]["hits"]
        assert {hit["partition"] for hit in found[0]["hits"]} == {tenant}
