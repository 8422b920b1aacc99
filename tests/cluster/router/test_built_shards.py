"""What is built in shards is searched and written through a router as what is built here, by one server.

Of each kind that texts and their encodings may have: a learned codebook, an adapter, one for each text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.building.build import build_shards
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.objects.opening import open_store
from tercet.cluster.shards.map import newest_map
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.work.executor import ThisProcess
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.adapters.library import AdapterLibrary
from tercet.models.adapters.router_files import write_router
from tercet.models.adapters.routers import CentroidSettings, FixedSettings, Router, RouterBase
from tercet.models.adapters.routing import with_routers
from tercet.models.encoder import Encoder, encode
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.router.conftest import AppTransport, router_over
from tests.conftest import TinyEncoder
from tests.service.conftest import serving

NAME = "articles"
SHARDS = 2
WINDOW = WindowSettings(tokens=8, overlap=2)
KINDS: dict[str, dict[str, Any]] = {
    "codebook": {"token_codec": "residual2"},
    "adapter": {"adapter": "law"},
    "routed adapters": {"adapter": "by-domain"},
    "a tag's adapter": {"adapter": "by-language:ko"},
    "all with windows": {
        "token_codec": "residual1",
        "adapter": "by-domain",
        "asked": {"window": WINDOW, "bm25": True},
    },
}
SEARCHES: list[dict[str, Any]] = [
    {"query": "green tea"},
    {"query": "steam train", "candidates": {"dense": 9, "sparse": 7}, "explain": True},
    {"query": "hot water", "fusion": "rrf", "top_k": 30},
    {"query": "black leaf", "boosts": [{"filter": {"gte": {"year": 1920}}, "add": 0.3}], "offset": 3},
    {"query": "station", "search_after": {"score": 1.0, "id": "d0100"}},
    {"query": {"id": "d0003"}},
    {"query": {"like": ["d0003", "d0007"], "unlike": ["d0011"]}},
    {"queries": ["tea", "brew", {"id": "d0005"}], "fusion": "rrf"},
]


def with_adapters(root: Path) -> Encoder:
    """An encoder of two adapters, with routers that choose one by the text, and by a language."""
    for name in ("law", "tea"):
        (root / name).mkdir(parents=True)
        (root / name / "adapter.json").write_text("{}")
    base = TinyEncoder(colbert=8)
    centroids = {"centroids": encode(base, ["hot tea", "the train", "green leaf"]).dense}
    domains = CentroidSettings(("law", None, "tea"))
    write_router(root / "by-domain", Router(domains, RouterBase("tiny", base.info.fingerprint), centroids))
    write_router(root / "by-language", Router(FixedSettings("language", {"ko": "tea"}, "law")))

    class Engine(TinyEncoder):
        mixes_adapters = False
        library = AdapterLibrary(root, root, "tiny", base.info.fingerprint, 4)

    return with_routers(Engine(colbert=8))


@pytest.fixture(params=sorted(KINDS))
async def servers(
    request: Any, tmp_path: Path, write_source: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """A router before what was built in shards, whose servers have no adapters; and a build here."""
    kind, source = KINDS[request.param], write_source(200)
    encoder = with_adapters(tmp_path / "adapters")
    store = open_store((tmp_path / "store").as_uri())
    settings = {name: value for name, value in kind.items() if name != "asked"}
    asked = {"fields": {"year": "integer"}, "dense_kind": "flat", "lexical": "idf", **kind.get("asked", {})}
    build_shards(
        ShardedBuild(NAME, source, SHARDS, asked, **settings),
        LocalDocuments(encoder),
        lambda: LocalDocuments(encoder),
        store.url,
        ThisProcess(),
    )
    build_collection(
        LocalDocuments(encoder), tmp_path / "one" / "collections", NAME, source, **asked, **settings
    )
    shards = newest_map(store)
    assert shards is not None
    async with AsyncExitStack() as stack:
        transports = []
        for number, place in enumerate(shards.shards):
            root = tmp_path / f"shard{number}"
            (root / "collections").mkdir(parents=True)
            pull(root / "collections", NAME, store.below(place.snapshots), root / "stages")
            app = create_app(Settings(data=root), TinyEncoder(colbert=8, adapters=()))
            await stack.enter_async_context(serving(app))
            transports.append(AppTransport(f"shard{number}", app))
        before = router_over(Settings(data=tmp_path / "router"), encoder, transports)
        one = create_app(Settings(data=tmp_path / "one"), encoder)
        yield await stack.enter_async_context(serving(before)), await stack.enter_async_context(serving(one))


async def compare(
    servers: tuple[httpx.AsyncClient, httpx.AsyncClient], body: dict[str, Any], positions: Sequence[Any] = ()
) -> Any:
    """What both answer to a search, which has to be the same. positions: that they are to have reached."""
    bodies = [{**body, "min_position": position} for position in positions] or [body, body]
    found, expected = [
        (await server.post("/search", json=own)).json() for server, own in zip(servers, bodies, strict=True)
    ]
    for answer in (found, expected, *found.get("results", ()), *expected.get("results", ())):
        answer.pop("took_ms", None)
        answer.pop("snapshot", None)
    assert found == expected, body
    return found


@pytest.mark.slow
async def test_searches_and_writes_are_those_of_one_server(
    servers: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    described = [(await server.get(f"/collections/{NAME}")).json() for server in servers]
    assert [each["adapter"] for each in described] == [described[1]["adapter"]] * 2
    assert described[0]["token_codec"] == described[1]["token_codec"]
    written = [
        {"id": f"d{number:04d}", "text": "kettle steam tea " * (1 + number % 3)} for number in range(190, 210)
    ]
    positions: list[Any] = []
    for path, change in (
        ("documents", {"documents": written}),
        ("documents/delete", {"ids": ["d0001", "d0191"]}),
    ):
        for search in SEARCHES:
            answer = await compare(servers, {"collection": NAME, **search}, positions)
            assert answer.get("hits") or answer.get("results") or "search_after" in search, answer
        positions = []
        for server in servers:
            method = "PUT" if path == "documents" else "POST"
            answered = await server.request(method, f"/collections/{NAME}/{path}", json=change)
            assert answered.is_success, answered.text
            positions.append(answered.json()["position"])
    adapter = described[0]["adapter"]
    search = {"collection": NAME, "query": "tea", "adapter": adapter}
    named = await compare(servers, {**search, "top_k": 300, "candidates": {"dense": 300}}, positions)
    assert {"d0190", "d0209"} <= {hit["id"] for hit in named["hits"]}
    another = "tea" if adapter != "tea" else "law"
    refused = await compare(servers, {**search, "adapter": another})
    assert refused["error"]["code"] == "fingerprint_mismatch"
    rerank = {"query": "tea", "inputs": ["black tea", "the train"], "collection": NAME, "adapter": adapter}
    ranked = [(await server.post("/rerank", json=rerank)).json()["results"] for server in servers]
    assert ranked[0] == ranked[1]
