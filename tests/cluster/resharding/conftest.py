"""Fixtures of this folder's tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.building.build import build_shards
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.work.executor import ThisProcess
from tercet.ingest.document_encoders import LocalDocuments
from tests.cluster.resharding.live_servers import COLLECTION, DOCUMENTS, NAME, Cluster


@pytest.fixture
def cluster(tmp_path: Path, tiny: Any, write_source: Any) -> Iterator[Cluster]:
    """A build in two shards, of 30 documents, and one server with the same."""
    url, source = (tmp_path / "store").as_uri(), write_source(30)
    encoder = LocalDocuments(tiny)
    build = ShardedBuild(NAME, source, 2, {"fields": {"year": "integer"}, "bm25": True})
    build_shards(build, encoder, lambda: encoder, url, ThisProcess())
    made = Cluster(tmp_path, url, tiny)
    yield made
    made.close()


@pytest.fixture
def one(cluster: Cluster, tmp_path: Path) -> str:
    """A server that has all documents."""
    url = cluster.server("one")
    lines = (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()
    documents = []
    for line in map(json.loads, lines):
        year = line.pop("year")
        documents.append({**line, "metadata": {"year": year}})
    httpx.put(url + COLLECTION, json={"fields": {"year": "integer"}, "bm25": True}).raise_for_status()
    httpx.put(url + DOCUMENTS, json={"documents": documents}, timeout=60).raise_for_status()
    return url
