"""Routers over HTTP: what each text went through, collections made with one, refusals."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.index.errors import FingerprintMismatchError
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.adapters.library import AdapterLibrary
from tercet.models.adapters.router_files import write_router
from tercet.models.adapters.routers import CentroidSettings, FixedSettings, Router, RouterBase, SoftSettings
from tercet.models.adapters.routing import RoutedEncoder, with_routers
from tercet.models.encoder import encode, with_adapter
from tercet.models.representations import Representations, Route
from tercet.service.answers.binary import BinaryBody, from_bytes
from tercet.service.answers.embeddings import embedding_json
from tercet.service.app import create_worker_app
from tercet.service.encoding.options import TextOptions
from tercet.service.settings.settings import WorkerAccess
from tercet.service.workers.encoding import RemoteEncoding

TEXTS = ["hot tea", "the train", "green leaf"]
CHOSEN = ["law", None, "tea"]


def error_of(response: httpx.Response) -> dict[str, Any]:
    return dict(response.json()["error"])


@pytest.fixture
def root(tmp_path: Path, tiny: Any) -> Path:
    """A folder of adapters by name only, since the tiny encoder makes them up, and routers among them."""
    root = tmp_path / "adapters"
    for name in ("law", "tea"):
        (root / name).mkdir(parents=True)
        (root / name / "adapter.json").write_text("{}")
    base = RouterBase("tiny", tiny.info.fingerprint)
    centroids = {"centroids": encode(tiny, TEXTS).dense}
    write_router(root / "by-domain", Router(CentroidSettings(tuple(CHOSEN)), base, centroids))
    write_router(root / "soft", Router(SoftSettings(tuple(CHOSEN), "centroid"), base, centroids))
    table = {"cases": "law", "menu": "tea"}
    write_router(root / "by-collection", Router(FixedSettings("collection", table)))
    write_router(root / "by-language", Router(FixedSettings("language", {"ko": "tea"}, "law")))
    return root


@pytest.fixture
def routed(tiny: Any, root: Path) -> RoutedEncoder:
    """The tiny encoder with routers."""

    class Engine(type(tiny)):  # type: ignore[misc]  # a base class known at run time only
        mixes_adapters = False
        library = AdapterLibrary(root, root, "tiny", tiny.info.fingerprint, 4)

    encoder = with_routers(Engine())
    assert isinstance(encoder, RoutedEncoder)
    return encoder


@pytest.fixture
async def client(make_client: Any, routed: Any) -> Any:
    async with make_client(encoder=routed) as client:
        yield client


async def test_embed_says_what_each_text_went_through(
    client: httpx.AsyncClient, tiny: Any, routed: Any
) -> None:
    answer = (await client.post("/embed", json={"inputs": TEXTS, "adapter": "by-domain"})).json()
    assert (answer["adapter"], answer["fingerprint"]) == (
        "by-domain",
        routed.adapter_info("by-domain").fingerprint,
    )
    assert [each["adapter"] for each in answer["embeddings"]] == CHOSEN
    for text, name, found in zip(TEXTS, CHOSEN, answer["embeddings"], strict=True):
        assert np.allclose(found["dense"], encode(with_adapter(tiny, name), [text]).dense[0], atol=1e-6)
    alone = (await client.post("/embed", json={"inputs": "the train", "adapter": "by-domain"})).json()
    assert alone["embeddings"] == [answer["embeddings"][1]]  # left to the base, as all of its request
    plain = (await client.post("/embed", json={"inputs": TEXTS, "adapter": "law"})).json()
    assert all("adapter" not in each for each in plain["embeddings"])


async def test_concurrent_requests_get_their_own_routes(client: httpx.AsyncClient) -> None:
    names = ["by-domain", None, "law", "by-language:ko"] * 6
    answers = await asyncio.gather(
        *(client.post("/embed", json={"inputs": TEXTS * 3, "adapter": name}) for name in names)
    )
    for name, answer in zip(names, answers, strict=True):
        found = [each.get("adapter", "none") for each in answer.json()["embeddings"]]
        assert found == (CHOSEN * 3 if name == "by-domain" else ["none"] * 9)


async def test_a_fixed_router_stands_for_its_choice(client: httpx.AsyncClient) -> None:
    for name, adapter in (("by-language:ko", "tea"), ("by-language", "law"), ("by-collection", None)):
        answer = await client.post("/embed", json={"inputs": "hot tea", "adapter": name})
        assert answer.json()["adapter"] == adapter
    for name, status in (
        ("law:ko", 404),
        ("by-domain:ko", 404),
        ("by-language:", 422),
        ("by-language:ü", 422),
    ):
        response = await client.post("/embed", json={"inputs": "hot tea", "adapter": name})
        assert (response.status_code, error_of(response)["param"]) == (status, "adapter")


async def test_a_soft_router_needs_an_engine_that_mixes(client: httpx.AsyncClient) -> None:
    response = await client.post("/embed", json={"inputs": "hot tea", "adapter": "soft"})
    assert (response.status_code, error_of(response)["code"]) == (422, "adapter_not_served")
    assert "use the torch engine" in error_of(response)["message"]


async def test_a_missing_adapter_is_named(make_client: Any, routed: Any, root: Path, tiny: Any) -> None:
    write_router(root / "by-domain", Router(FixedSettings("domain", {"law": "gone"})))
    async with make_client(encoder=routed) as client:
        response = await client.post("/embed", json={"inputs": "hot tea", "adapter": "by-domain:law"})
        assert (response.status_code, error_of(response)["code"]) == (404, "adapter_not_found")
        assert "names the adapters ['gone']" in error_of(response)["message"]
        listed = {each["name"]: each for each in (await client.get("/info")).json()["adapters"]}
        assert "gone" in listed["by-domain"]["problem"]
        assert listed["by-language"]["router"] == {"by": "language", "table": {"ko": "tea"}, "default": "law"}


async def test_a_collection_with_a_learned_router(
    make_client: Any, data: Path, routed: Any, root: Path, build: Any
) -> None:
    build(data, with_adapter(routed, "by-domain"), "cases")
    body = {"collection": "cases", "query": "hot tea"}
    async with make_client(encoder=routed) as client:
        found = await client.post("/search", json=body)
        assert found.status_code == 200, found.text
        assert (await client.post("/search", json={**body, "adapter": "by-domain"})).status_code == 200
        for other in ("law", "by-collection"):
            refused = await client.post("/search", json={**body, "adapter": other})
            assert (refused.status_code, error_of(refused)["code"]) == (409, "fingerprint_mismatch")
    arrays = {"centroids": np.eye(8, dtype=np.float32)[:3]}
    base = RouterBase("tiny", routed.info.fingerprint)
    write_router(root / "by-domain", Router(CentroidSettings(tuple(CHOSEN)), base, arrays))
    again = with_routers(routed._engine)
    async with make_client(encoder=again) as client:
        refused = await client.post("/search", json=body)
        assert (refused.status_code, error_of(refused)["code"]) == (409, "fingerprint_mismatch")


async def test_a_collection_keeps_what_a_fixed_router_chose(
    client: httpx.AsyncClient, data: Path, tiny: Any
) -> None:
    record = (await client.put("/collections/cases", json={"adapter": "by-collection"})).json()
    assert (record["adapter"], record["fingerprint"]) == ("law", tiny.adapter_info("law").fingerprint)
    other = (await client.put("/collections/other", json={"adapter": "by-collection"})).json()
    assert (other["adapter"], other["fingerprint"]) == (None, tiny.info.fingerprint)
    (data / "sources").mkdir(exist_ok=True)
    (data / "sources" / "x.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    for name, adapter, expected in (("cases", "by-collection", "law"), ("menu", "by-collection", "tea")):
        job = await client.post(f"/collections/{name}/jobs", json={"source": "x.jsonl", "adapter": adapter})
        assert (job.status_code, job.json()["adapter"]) == (202, expected)
        await client.delete(f"/jobs/{job.json()['id']}")
    refused = await client.post(
        "/collections/cases/jobs", json={"source": "x.jsonl", "adapter": "by-language:ko"}
    )
    assert refused.status_code == 409
    assert "'by-language:ko', which stands for adapter 'tea', is asked for" in error_of(refused)["message"]


async def test_a_collection_keeps_a_pair_that_two_tags_or_a_hypernetwork_gave(
    make_client: Any, tiny: Any, root: Path, data: Path
) -> None:
    domain = FixedSettings("domain", {"law": "law"})
    write_router(root / "by-both", Router(FixedSettings("language", {"ko": "tea"}, upper=domain)))
    made = {"kind": "hypernetwork", "settings": {"languages": ["ko"], "tasks": ["law"]}}
    (root / "world").mkdir()
    (root / "world" / "adapter.json").write_text(json.dumps(made))

    class Engine(type(tiny)):  # type: ignore[misc]  # a base class known at run time only
        mixes_adapters = False
        library = AdapterLibrary(root, root, "tiny", tiny.info.fingerprint, 4)

        def adapter_info(self, name: str) -> Any:
            if name in ("tea+law", "world+ko+law"):
                return replace(self.info, fingerprint="0" * 64, adapter=name)
            return super().adapter_info(name)

    async with make_client(encoder=with_routers(Engine())) as client:
        record = (await client.put("/collections/cases", json={"adapter": "by-both:ko:law"})).json()
        assert (record["adapter"], record["fingerprint"]) == ("tea+law", "0" * 64)
        pair = (await client.put("/collections/korean", json={"adapter": "world+ko+law"})).json()
        assert pair["adapter"] == "world+ko+law"
        (data / "sources").mkdir(exist_ok=True)
        (data / "sources" / "x.jsonl").write_text('{"id": "a", "text": "tea"}\n')
        for name, status in (("tea+law", 202), ("by-both:ko", 409), ("a+b+c+d", 422), ("a:b:c:d", 422)):
            body = {"source": "x.jsonl", "adapter": name}
            response = await client.post("/collections/cases/jobs", json=body)
            assert response.status_code == status, (name, response.text)
    assert Collection.open(data / "collections", "cases").settings.adapter == "tea+law"


def test_builds_with_routers(tmp_path: Path, routed: Any) -> None:
    source, collections = tmp_path / "x.jsonl", tmp_path / "collections"
    source.write_text('{"id": "a", "text": "hot tea"}\n{"id": "b", "text": "the train"}\n')
    build_collection(LocalDocuments(routed), collections, "cases", source, adapter="by-collection")
    assert Collection.open(collections, "cases").settings.adapter == "law"
    build_collection(LocalDocuments(routed), collections, "cases", source, adapter="by-collection")
    build_collection(LocalDocuments(routed), collections, "mixed", source, adapter="by-domain")
    opened = Collection.open(collections, "mixed")
    info = routed.adapter_info("by-domain")
    assert (opened.settings.adapter, opened.settings.fingerprint) == ("by-domain", info.fingerprint)
    hits = opened.snapshot().search(encode(with_adapter(routed, "law"), ["hot tea"])).hits
    assert {hit.document.id: hit.scores.dense for hit in hits}["a"] == pytest.approx(1, abs=1e-3)
    with pytest.raises(FingerprintMismatchError, match="goes with adapter 'by-domain'"):
        build_collection(LocalDocuments(routed), collections, "mixed", source, adapter="by-collection")


async def test_workers_with_routers(make_server: Any, routed: Any, tiny: Any) -> None:
    with make_server(create=create_worker_app, encoder=routed) as url:
        remote = await RemoteEncoding.connect([url], WorkerAccess())
        try:
            assert await remote.info_of("by-domain") == routed.adapter_info("by-domain")
            found = await remote.encode(TEXTS, TextOptions(adapter="by-domain"))
            assert found.routes == tuple(Route((name,), (1.0,)) for name in CHOSEN)
            assert await remote.info_of("by-language:ko") == tiny.adapter_info("tea")
            assert await remote.info_of("by-collection", "cases") == tiny.adapter_info("law")
            assert (await remote.encode(TEXTS, TextOptions(adapter="by-language:ko"))).routes is None
        finally:
            await remote.close()


def test_soft_routes_in_both_forms_of_an_answer(tiny: Any) -> None:
    plain = encode(tiny, TEXTS[:2], outputs=["dense"])
    soft = Route(("law", None), (0.25, 0.75))
    routed = Representations(plain.tokens, plain.truncated, plain.dense, routes=(soft, None))
    first, second = (
        json.loads(b"".join(embedding_json(routed, row, tiny.tokenizer, packed=False))) for row in range(2)
    )
    assert first["adapters"] == [
        {"adapter": "law", "weight": 0.25},
        {"adapter": None, "weight": 0.75},
    ]
    assert second.keys() == {"dense", "tokens", "truncated"}
    with BinaryBody() as body:
        body.append(routed)
        again, metadata = from_bytes(b"".join(body.chunks({"model": "tiny"})))
    assert (again.routes, metadata) == ((soft, None), {"model": "tiny"})
