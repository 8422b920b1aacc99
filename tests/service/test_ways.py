"""How short the ways are from a handler to a kernel and to the disk; a write computes nothing twice."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from types import FrameType
from typing import Any

import httpx
import pytest

from tercet.index.catalog.aliases import Aliases
from tercet.index.documents.fields import columns_of
from tercet.index.documents.store import encode_document
from tercet.index.ledger.ledger import Ledger
from tercet.index.live.committer import Committer
from tercet.index.native import kernels
from tercet.service.load.pools import Pool

MOST_TO_KERNEL = 12
MOST_TO_DISK = 9
OF_IDS = {"gather_packed", "sort_packed", "first_packed"}  # by which equal scores are ordered
MOST_TO_IDS = 14
KERNELS = {each for each in vars(kernels).values() if callable(each) and not isinstance(each, type)}
DEMO = "/collections/demo/documents"

Way = tuple[str, ...]
_above: ContextVar[Way] = ContextVar("above", default=())


class Ways:
    """The frames of ours that lie between a handler and what it comes to, in whichever thread that is.

    Where work goes to another thread, those count that wait for it, and then those of that thread. What has
    returned by then, as what puts work into a queue, lies on no way. kernels: the longest way to each
    compiled function; commits: the ways to the ledger's commit, which forces the disk.
    """

    def __init__(self, handler: str) -> None:
        self._handler = handler
        self._handed = threading.local()
        self._waiting: Way = ()  # for the committer
        self.on = False
        self.kernels: dict[str, Way] = {}
        self.commits: list[Way] = []

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """For `sys.setprofile`."""
        if not self.on:
            return
        if frame.f_code is Pool.submit.__code__:
            if event == "call":
                self._hand_over(_above.set(self._way_to(frame.f_back)))
            elif event == "return":
                _above.reset(self._handed.tokens.pop())
        elif event == "call" and frame.f_code is Committer.submit.__code__:
            self._waiting = self._way_to(frame.f_back)
        elif event == "c_call" and arg in KERNELS:
            way = self._way_to(frame)
            self.kernels[arg.__name__] = max(way, self.kernels.get(arg.__name__, ()), key=len)
        elif event == "c_call" and arg.__name__ == "execute" and _commits(frame):
            self.commits.append(self._waiting + _ours(frame, None)[0])

    def _hand_over(self, token: Token[Way]) -> None:
        if not hasattr(self._handed, "tokens"):
            self._handed.tokens = []
        self._handed.tokens.append(token)

    def _way_to(self, frame: FrameType | None) -> Way:
        names, from_handler = _ours(frame, self._handler)
        return names if from_handler else _above.get() + names


def _commits(frame: FrameType) -> bool:
    """Whether the ledger is at its commit."""
    return frame.f_code is Ledger.append.__code__ and frame.f_locals["committing"]


def _ours(frame: FrameType | None, handler: str | None) -> tuple[Way, bool]:
    """Frames of ours from the handler on, where it is there; else from where the thread begins."""
    names: list[str] = []
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("tercet."):
            names.append(f"{module}:{frame.f_code.co_qualname}")
            if names[-1] == handler:
                return tuple(reversed(names)), True
        frame = frame.f_back
    return tuple(reversed(names)), False


@pytest.fixture
def ways_from() -> Iterator[Callable[[str], Ways]]:
    """Watches the ways from a handler, in all threads that begin from now on."""

    def watch(handler: str) -> Ways:
        ways = Ways(handler)
        threading.setprofile(ways.profile)
        sys.setprofile(ways.profile)
        return ways

    yield watch
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]


def test_a_handler_is_near_the_kernels(make_server: Any, ways_from: Callable[[str], Ways]) -> None:
    ways = ways_from("tercet.service.routes.search:search")
    with make_server() as url, httpx.Client(base_url=url) as client:
        searches = [
            {"collection": name, "query": "tea by rail", **more}
            for name in ("demo", "live")
            for more in ({}, {"weights": {"dense": 1, "sparse": 0, "colbert": 0}}, {"fusion": "rrf"})
        ]
        client.put("/collections/live", json={}).raise_for_status()
        documents = [{"id": str(number), "text": f"tea number {number}"} for number in range(30)]
        client.put("/collections/live/documents", json={"documents": documents}).raise_for_status()
        for on in (False, True):  # the first time what is searched is opened, and its terms are counted
            ways.on = on
            for number, body in enumerate(searches):
                query = {**body, "query": f"{body['query']} {on} {number}"}
                client.post("/search", json=query).raise_for_status()
        ways.on = False
    assert {"find_candidates", "scan_vectors", "exact_products_at", "exact_maxsim"} <= set(ways.kernels)
    for name, way in ways.kernels.items():
        assert way[0] == "tercet.service.routes.search:search", name
        assert len(way) <= (MOST_TO_IDS if name in OF_IDS else MOST_TO_KERNEL), (name, *way)


def test_a_handler_is_near_the_disk(make_server: Any, ways_from: Callable[[str], Ways]) -> None:
    ways = ways_from("tercet.service.routes.document_writes:put_documents")
    with make_server() as url, httpx.Client(base_url=url) as client:
        for on in (False, True):  # the first write opens the collection
            ways.on = on
            body = {"documents": [{"id": f"new {on}", "text": "green tea"}]}
            client.put(DEMO, json=body).raise_for_status()
        ways.on = False
    (way,) = ways.commits
    assert way[0] == "tercet.service.routes.document_writes:put_documents"
    assert len(way) <= MOST_TO_DISK, way


def _count(monkeypatch: pytest.MonkeyPatch, *functions: Callable[..., Any]) -> Counter[str]:
    """How often functions are called, by whichever module."""
    calls: Counter[str] = Counter()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls[function.__name__] += 1
            return function(*args, **options)

        return call

    for function in functions:
        instead = counted(function)
        for name, module in list(sys.modules.items()):
            if name.startswith("tercet.") and getattr(module, function.__name__, None) is function:
                monkeypatch.setattr(module, function.__name__, instead)
    return calls


async def test_a_write_computes_nothing_twice(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = await client.put("/aliases/current", json={"collection": "demo"})
    assert alias.is_success, alias.text
    documents = [{"id": str(n), "text": "tea", "metadata": {"year": n}} for n in range(3)]
    path = "/collections/current/documents"
    assert (await client.put(path, json={"documents": documents[:1]})).is_success  # which opens it
    calls = _count(monkeypatch, encode_document, columns_of)
    resolved: list[str] = []
    collections_of = Aliases.collections_of

    def resolve(aliases: Aliases, name: str) -> Any:
        resolved.append(name)
        return collections_of(aliases, name)

    monkeypatch.setattr(Aliases, "collections_of", resolve)
    written = await client.put(path, json={"documents": documents})
    assert written.json()["upserted"] == 3
    assert calls == {"encode_document": 3, "columns_of": 1}
    assert resolved == ["current"]
    for response in (
        await client.patch(f"{path}/1", json={"metadata": {"year": 7}}),
        await client.post(f"{path}/delete", json={"ids": ["2"]}),
    ):
        assert response.is_success, response.text
    assert resolved == ["current"] * 3
