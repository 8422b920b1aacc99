"""Servers whose collections have their ledgers on a store: made, lost, taken over, deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.ledgers.chain import Trimming
from tercet.cluster.ledgers.promoting import ledgers_at, promote
from tercet.cluster.ledgers.store_ledger import ledgers_below
from tercet.cluster.objects.opening import open_store
from tercet.cluster.snapshots.publishing import Publisher
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

pytestmark = pytest.mark.slow

ARTICLES = "/collections/articles"
Start = Callable[[str], httpx.Client]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


@pytest.fixture
def start(tmp_path: Path, url: str, tiny: Any) -> Iterator[Start]:
    """Starts a server of this data root; each until the test ends."""
    with ExitStack() as stack:

        def started(name: str) -> httpx.Client:
            data = tmp_path / name
            settings = Settings(data=data, ledger_url=url, publish_seconds=0.1)
            app = create_app(
                settings,
                tiny,
                publishing=Publisher(url, data, None, Trimming()),
                ledgers=ledgers_below(url, data),
            )
            server = stack.enter_context(real_server(app))
            return stack.enter_context(httpx.Client(base_url=server, timeout=60))

        yield started


def put(client: httpx.Client, *ids: str) -> httpx.Response:
    documents = [{"id": id, "text": f"green tea {id}"} for id in ids]
    return client.put(f"{ARTICLES}/documents", json={"documents": documents})


def ids_of(client: httpx.Client) -> list[str]:
    page = client.get(f"{ARTICLES}/documents", params={"limit": 100}).json()
    return [each["id"] for each in page["documents"]]


def test_a_replica_is_promoted_and_the_former_writer_is_refused(
    start: Start, url: str, tmp_path: Path
) -> None:
    former = start("one")
    assert former.put(ARTICLES, json={}).status_code == 201
    assert put(former, "a", "b").json()["position"] == 1
    assert promote("articles", open_store(url), tmp_path / "replica").position == 1
    later = start("replica")
    assert put(later, "c").json()["position"] == 2
    refused = put(former, "d")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "writer_replaced")
    assert ids_of(former) == ["a", "b"]
    assert ids_of(later) == ["a", "b", "c"]


def test_a_server_with_an_empty_disk_makes_no_collection_that_has_a_ledger(
    start: Start, url: str, tmp_path: Path
) -> None:
    one = start("one")
    assert one.put(ARTICLES, json={}).status_code == 201
    put(one, "a")
    empty = start("empty")
    refused = empty.put(ARTICLES, json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "writer_replaced")
    assert empty.get(ARTICLES).status_code == 404
    backup = one.post(f"{ARTICLES}/backups").json()["id"]
    restored = one.post(f"{ARTICLES}/backups/{backup}/restore", json={"name": "restored"})
    assert restored.status_code == 200
    assert ledgers_at(open_store(url)) == ["articles", "restored"]
    assert promote("restored", open_store(url), tmp_path / "more").documents == 1
    assert one.delete(ARTICLES).status_code == 204
    assert ledgers_at(open_store(url)) == ["restored"]
    assert empty.put(ARTICLES, json={}).status_code == 201
    assert put(empty, "b").json()["position"] == 1
