"""Collections divided over shards, each behind a server's application, beside one that has all documents."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from tercet.cluster.router.collections import ShardedCollections
from tercet.cluster.router.snapshot import ShardedSnapshot
from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.index.windows.store import DocumentWindows
from tercet.index.wording import without_names_instead
from tercet.index.writer import SegmentLimits
from tercet.models.encoder import Encoder
from tercet.models.representations import Int64, Representations, offsets_of, ragged_positions
from tercet.service.app import create_app
from tercet.service.load.reading import ANY_TIME, Reading
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tercet.service.settings.settings import Settings
from tests.cluster.router.servers import CLIENT, Servers
from tests.service.polling import pause
from tests.service.tracing.conftest import collector as collector

Result = TypeVar("Result")
NAME = "demo"


def refusal_of(answer: httpx.Response) -> Any:
    """What a router refuses with where one server answers this: it names no other collections."""
    refusal = answer.json()
    refusal["error"]["message"] = without_names_instead(refusal["error"]["message"])
    return refusal


class AppTransport:
    """The way to a shard that is an application in the same event loop."""

    def __init__(self, name: str, app: FastAPI) -> None:
        self.name = name
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://localhost",
            headers={"Accept-Encoding": "identity"},  # as over HTTP: checksums are of what is on the way
        )

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        answer = await self._client.request(
            request.method, request.path, headers=dict(request.headers), content=request.body
        )
        found = {name.lower(): value for name, value in answer.headers.items()}
        return RemoteAnswer(answer.status_code, found, answer.content)


def router_over(settings: Settings, encoder: Encoder, transports: Sequence[AppTransport]) -> FastAPI:
    """A router whose shards are applications in the same event loop."""
    fleet = Fleet([[ShardClient(each, settings.shards_timeout_seconds)] for each in transports], Loop())
    return create_app(settings, encoder, served=ShardedCollections(fleet).served)


class Background:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        found: Future[Result] = asyncio.run_coroutine_threadsafe(work, self.loop)
        return found.result(120)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


@pytest.fixture(scope="session")
def background() -> Iterator[Background]:
    """An event loop that the tests' shards run in."""
    background = Background()
    yield background
    background.stop()


class Divided:
    """A collection with all documents, and the same over shards."""

    def __init__(
        self, background: Background, root: Path, one: Snapshot, collections: ShardedCollections
    ) -> None:
        self.background = background
        self.root = root
        self.one = one
        self.collections = collections

    def sharded(self, how: Reading = ANY_TIME) -> ShardedSnapshot:
        """As a request sees it."""
        return self.background.run(self.collections.open(NAME, how))


def written(
    root: Path,
    settings: CollectionSettings,
    documents: Sequence[Document],
    encoded: Representations,
    segment: int,
    windows: DocumentWindows | None = None,
) -> None:
    """A built collection below a data root, in segments of so many documents at most."""
    collection = Collection.create(root / "collections", NAME, settings)
    with collection.writer(SegmentLimits(documents=segment)) as writer:
        if documents:
            writer.add(documents, encoded, windows)
        writer.publish()


MakeDivided = Callable[..., Divided]


@pytest.fixture(scope="module")
def divide(
    tmp_path_factory: pytest.TempPathFactory, background: Background, tiny: Encoder
) -> Iterator[MakeDivided]:
    """Divides documents over so many shards."""
    stack = AsyncExitStack()

    def make(
        documents: Sequence[Document],
        encoded: Representations,
        settings: CollectionSettings,
        shards: int,
        segment: int = 20,
        windows: DocumentWindows | None = None,
    ) -> Divided:
        tmp_path = tmp_path_factory.mktemp("divided")
        written(tmp_path / "one", settings, documents, encoded, segment, windows)
        places = Placement.evenly(shards).shards_of([document.id for document in documents])
        transports = []
        for shard in range(shards):
            rows = np.flatnonzero(places == shard)
            root = tmp_path / f"shard{shard}"
            own, texts = of_rows(rows, windows)
            written(root, settings, [documents[row] for row in rows], encoded.take(texts), segment, own)
            app = create_app(Settings(data=root), tiny)
            background.run(stack.enter_async_context(app.router.lifespan_context(app)))
            transports.append(AppTransport(f"shard{shard}", app))
        background.run(ready(transports))
        collections = ShardedCollections(Fleet([[ShardClient(each)] for each in transports], Loop()))
        background.run(collections.start())
        one = Collection.open(tmp_path / "one" / "collections", NAME).snapshot()
        return Divided(background, tmp_path, one, collections)

    yield make
    background.run(stack.aclose())


def of_rows(rows: Int64, windows: DocumentWindows | None) -> tuple[DocumentWindows | None, Int64]:
    """The windows of some documents, and the rows of what was encoded of them."""
    if windows is None:
        return None, rows
    texts = ragged_positions(windows.offsets, rows)
    counts = windows.offsets[rows + 1] - windows.offsets[rows]
    return DocumentWindows(offsets_of(counts), windows.spans[texts]), texts


async def ready(transports: Sequence[AppTransport]) -> None:
    """Waits until all shards serve."""
    for each in transports:
        while (await each.request(RemoteRequest("GET", "/ready"))).status != 200:
            await pause()


@pytest.fixture(scope="session", autouse=True)
def connections() -> Iterator[None]:
    """Those of the tests, which end with them."""
    yield
    CLIENT.close()


@pytest.fixture
def servers(tmp_path: Path, tiny: Encoder) -> Iterator[Servers]:
    """Starts servers that end with the test."""
    started = Servers(tmp_path, tiny)
    yield started
    started.close()
