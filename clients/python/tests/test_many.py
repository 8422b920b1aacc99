"""Many texts and documents, collections that are made where they are missing, clients of event loops."""

from __future__ import annotations

import asyncio
import datetime
import gc

import numpy as np
import pytest
from tercet_client import (
    AsyncClient,
    Client,
    ClientPair,
    ConflictError,
    NotFoundError,
    delete_by_id,
    delete_by_id_async,
    dense_vectors,
    dense_vectors_async,
    documents_by_id,
    documents_by_id_async,
    json_metadata,
    open_collection,
    open_collection_async,
    passage,
)
from tercet_client.types import DocumentRequest

KEY = "a-key-of-these-tests"


def documents(count: int) -> list[DocumentRequest]:
    return [{"id": f"d{n}", "text": f"text {n}"} for n in range(count)]


@pytest.mark.slow
async def test_vectors_of_many_texts_are_those_of_each(client: Client, server: str) -> None:
    texts = [f"text {n}" for n in range(7)]
    found = dense_vectors(client, texts, batch=3)
    whole = client.embed(texts, outputs=["dense"]).dense
    assert whole is not None
    assert np.allclose(found, whole, atol=1e-3)
    assert dense_vectors(client, []).shape == (0, 0)
    query = client.embed("text 0", input_type="query", outputs=["dense"]).dense
    assert query is not None
    assert np.allclose(dense_vectors(client, texts[:1], input_type="query"), query, atol=1e-5)
    async with AsyncClient(server, key=KEY) as other:
        assert np.allclose(await dense_vectors_async(other, texts, batch=3), found, atol=1e-3)


async def test_documents_are_found_and_deleted_by_id(client: Client, collection: str, server: str) -> None:
    client.put_documents(collection, documents(10))
    wanted = ["d7", "none", "d2", "d7", "a/b c"]
    found = documents_by_id(client, collection, wanted)
    assert list(found) == ["d7", "d2"]
    assert found["d2"]["text"] == "text 2"
    assert documents_by_id(client, collection, []) == {}
    with pytest.raises(NotFoundError, match="no-such"):
        documents_by_id(client, "no-such", ["d1"])
    async with AsyncClient(server, key=KEY) as other:
        assert await documents_by_id_async(other, collection, wanted) == found
        with pytest.raises(NotFoundError, match="no-such"):
            await documents_by_id_async(other, "no-such", ["d1"])
        assert await delete_by_id_async(other, collection, ["d0", "none", "d0"]) == 1
    many = [f"n{n}" for n in range(2500)]
    assert delete_by_id(client, collection, ["d1", *many, "d2"]) == 2
    assert delete_by_id(client, collection, []) == 0
    assert client.collection(collection).description["documents"] == 7


async def test_collections_are_made_once_and_must_agree(client: Client, server: str) -> None:
    name, settings = "made-where-missing", {"fields": {"year": "integer"}}
    try:
        made = open_collection(client, name, {"fields": {"year": "integer"}, "bm25": None})
        assert made["fields"] == settings["fields"]
        assert open_collection(client, name) == made
        with pytest.raises(
            ConflictError, match="has bm25 False, not True; settings are fixed at creation"
        ) as error:
            open_collection(client, name, {"bm25": True})
        assert error.value.param == "bm25"
        async with AsyncClient(server, key=KEY) as other:
            assert await open_collection_async(other, name, {"fields": {"year": "integer"}}) == made
            assert (await open_collection_async(other, name, default={"bm25": True})) == made
            client.delete_collection(name)
            assert open_collection(client, name, default={"bm25": True})["bm25"]
            client.delete_collection(name)
            many = await asyncio.gather(*(open_collection_async(other, name) for _ in range(8)))
            assert {one["name"] for one in many} == {name}
    finally:
        client.delete_collection(name)


def test_passages_are_what_was_encoded(client: Client, collection: str) -> None:
    client.put_documents(collection, [{"id": "a", "title": "Tea", "text": "It is green."}])
    assert [passage(hit) for hit in client.search(collection, "tea")["hits"]] == ["Tea\nIt is green."]
    name = "windows-for-passages"
    client.create_collection(name, {"window": {"tokens": 32, "overlap": 0}})
    try:
        client.put_documents(name, [{"id": "a", "text": "Coal is mined. " * 40 + "Green tea is brewed."}])
        [hit] = client.search(name, "green tea")["hits"]
        assert "Green tea" in passage(hit)
        assert len(passage(hit)) < 300
    finally:
        client.delete_collection(name)


def test_metadata_that_is_no_json_is_told() -> None:
    assert json_metadata("a", {"n": [1, None, "x"]}) == {"n": [1, None, "x"]}
    for wrong in (datetime.date(2001, 1, 1), float("nan"), "\ud800", b"x"):
        with pytest.raises(ValueError, match="the metadata of document 'a' is not JSON"):
            json_metadata("a", {"wrong": wrong})


@pytest.mark.slow
def test_each_event_loop_has_a_client(server: str) -> None:
    pair = ClientPair(server, key=KEY)
    assert asyncio.run(_asked(pair)) is not asyncio.run(_asked(pair))
    with pytest.raises(RuntimeError, match="no running event loop"):
        _ = pair.running
    assert pair.sync is pair.sync
    http = pair.sync._http
    del pair
    gc.collect()
    assert http.is_closed


async def _asked(pair: ClientPair) -> AsyncClient:
    client = pair.running
    assert pair.running is client
    assert (await client.info())["name"] == "tercet"
    await pair.close_async()
    return client
