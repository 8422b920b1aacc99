"""Every method against a real server."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tercet_client import (
    ApiError,
    AsyncClient,
    Client,
    ConflictError,
    ConnectionFailedError,
    EmbeddedDocuments,
    NotFoundError,
    OverloadedError,
    Upserted,
    upsert,
    upsert_async,
)
from tercet_client.embeddings import Dtype
from tercet_client.positions import later
from tercet_client.types import DocumentRequest

KEY = "a-key-of-these-tests"
TEXTS = ["Green tea is brewed with hot water.", "A steam train crosses the bridge."]


def documents(count: int) -> list[DocumentRequest]:
    return [{"id": f"d{n:03d}", "text": f"{TEXTS[n % 2]} {n}", "metadata": {"year": n}} for n in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "int8", "binary", "ubinary"])
def test_smaller_numbers_are_decoded(client: Client, dtype: Dtype) -> None:
    plain, small = client.embed(TEXTS), client.embed(TEXTS, dtype=dtype)
    decoded = small.decoded()
    assert (small.dtype, decoded.dtype) == (dtype, "float32")
    for name in ("dense", "colbert"):
        expected, found = getattr(plain, name), getattr(decoded, name)
        assert getattr(small, name).nbytes <= expected.nbytes / 2
        assert found.dtype == np.float32
        assert found.shape == expected.shape
        if dtype.endswith("binary"):
            assert np.array_equal(found > 0, expected > 0)
            assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        else:
            assert np.allclose(found, expected, atol=4e-3)
    with pytest.raises(ValueError, match="documents take float32"):
        client.put_documents("any", documents(2), embeddings=small)
    with pytest.raises(ValueError, match="create does not go with embeddings"):
        client.put_documents("any", documents(2), embeddings=plain, create=True)
    pooled = client.embed(TEXTS, outputs=["colbert"], colbert_pool=2)
    assert len(pooled.token_vectors(0)) == -(-len(plain.token_vectors(0)) // 2)


def test_embeddings_are_arrays(client: Client) -> None:
    embeddings = client.embed(TEXTS)
    assert len(embeddings) == 2
    assert embeddings.dense is not None
    assert embeddings.dense.dtype == np.float32
    assert np.allclose(np.linalg.norm(embeddings.dense, axis=1), 1, atol=1e-5)
    assert len(embeddings.token_vectors(0)) == embeddings.tokens[0] - 1  # not of the CLS
    ids, weights = embeddings.sparse(1)
    assert len(ids) == len(weights) > 3
    assert client.embed(TEXTS[0], model="minilm-m3").model == "minilm-m3"
    only = client.embed(TEXTS[0], outputs=["dense"], dimensions=64)
    assert only.dense is not None
    assert only.dense.shape == (1, 64)
    with pytest.raises(ValueError, match="ask for colbert"):
        only.token_vectors(0)


def test_documents_are_written_searched_read_and_deleted(client: Client, collection: str) -> None:
    written = client.put_documents(collection, documents(3))
    assert written["upserted"] == 3
    hits = client.search(collection, "how is tea brewed", top_k=2, explain=True)["hits"]
    assert hits[0]["id"] in ("d000", "d002")
    assert set(hits[0]["scores"]) >= {"dense", "sparse", "colbert"}
    assert "explanation" in hits[0]
    late = client.search(collection, "tea", filter={"gte": {"year": 2}})["hits"]
    assert [hit["id"] for hit in late] == ["d002"]
    assert client.document(collection, "d001")["metadata"] == {"year": 1}
    assert "representations" in client.document(collection, "d001", representations=True)
    client.patch_document(collection, "d001", {"year": 1830, "note": "x"})
    client.patch_document(collection, "d001", {"note": None}, merge=True)
    assert client.document(collection, "d001")["metadata"] == {"year": 1830}
    assert [one["id"] for one in client.documents(collection, page=2)] == ["d000", "d001", "d002"]
    assert [one["id"] for one in client.documents(collection, filter={"eq": {"year": 1830}})] == ["d001"]
    assert (
        client.update_documents(collection, {"kind": "x"}, ids=["d001", "none"], merge=True)["updated"] == 1
    )
    assert client.document(collection, "d001")["metadata"] == {"year": 1830, "kind": "x"}
    assert client.declare_fields(collection, {"kind": "keyword"})["fields"]["kind"] == "keyword"
    ordered = client.documents(collection, order_by="year", descending=True, page=2)
    assert [one["id"] for one in ordered] == ["d001", "d002", "d000"]
    assert client.count_documents(collection) == 3
    assert client.count_documents(collection, {"eq": {"year": 1830}}) == 1
    several = client.get_documents(collection, ["d002", "none"])
    assert ([one["id"] for one in several["documents"]], several["missing"]) == (["d002"], ["none"])
    assert client.delete_documents(collection, ids=["d001", "none"])["deleted"] == 1
    assert client.delete_documents(collection, filter={"gte": {"year": 0}})["deleted"] == 2
    with pytest.raises(NotFoundError, match="d001"):
        client.document(collection, "d001")


@pytest.mark.parametrize("id", [".", "..", "a/../b", "%2E%2E", "가 나?"])
def test_a_document_of_any_id_is_read_and_changed(client: Client, collection: str, id: str) -> None:
    client.put_documents(collection, [{"id": id, "text": "tea"}])
    client.patch_document(collection, id, {"year": 1830})
    assert client.document(collection, id)["metadata"] == {"year": 1830}


def test_many_queries_pages_and_stored_documents(client: Client, collection: str) -> None:
    client.put_documents(collection, documents(4))
    whole = client.search(collection, "hot tea")
    many = client.search_many(collection, ["hot tea", {"id": "d001"}], include=["scores"], top_k=4)
    assert [hit["id"] for hit in many["results"][0]["hits"]] == [hit["id"] for hit in whole["hits"]]
    assert all("text" not in hit for result in many["results"] for hit in result["hits"])
    assert "d001" not in {hit["id"] for hit in many["results"][1]["hits"]}
    last = whole["hits"][1]
    behind = client.search(collection, "hot tea", search_after={"score": last["score"], "id": last["id"]})
    page = client.search(collection, "hot tea", offset=2, snapshot=whole["snapshot"])
    assert behind["hits"] == page["hits"] == whole["hits"][2:]
    with pytest.raises(ConflictError, match="is gone"):
        client.search(collection, "hot tea", snapshot="000000")


def test_reads_may_follow_a_write(client: Client, collection: str) -> None:
    position = client.put_documents(collection, documents(1))["position"]
    assert isinstance(position, int)
    assert client.count_documents(collection, min_position=position) > 0
    assert client.get_documents(collection, ["d000"], min_position=position)["documents"]
    assert client.document(collection, "d000", min_position=position)["id"] == "d000"
    assert list(client.documents(collection, min_position=position))
    with pytest.raises(ConflictError):
        client.search(collection, "tea", min_position=position + 1000)


def test_the_later_position_counts_shard_by_shard() -> None:
    assert later(3, 17) == 17
    assert later(0, "3.17") == "3.17"
    assert later("3.17", "4.9") == "4.17"


def test_a_stale_position_is_a_conflict(client: Client, collection: str) -> None:
    position = client.put_documents(collection, documents(1))["position"]
    client.put_documents(collection, documents(1))
    with pytest.raises(ConflictError) as raised:
        client.put_documents(collection, documents(1), if_position=position)
    assert raised.value.code == "document_changed"
    with pytest.raises(ConflictError):
        client.patch_document(collection, "d000", {}, if_position=position)


def test_a_repeat_under_a_key_changes_nothing(client: Client, collection: str) -> None:
    first = client.put_documents(collection, documents(1), idempotency_key="once")
    assert client.put_documents(collection, documents(1), idempotency_key="once") == first


def test_ready_embeddings_are_scored_as_if_the_server_had_made_them(client: Client, collection: str) -> None:
    some = documents(4)
    client.put_documents(collection, some[:2])
    client.put_documents(collection, some[2:], embeddings=client.embed([one["text"] for one in some[2:]]))
    hits = {hit["id"]: hit["score"] for hit in client.search(collection, "hot tea")["hits"]}
    client.put_documents(collection, some[2:])
    again = {hit["id"]: hit["score"] for hit in client.search(collection, "hot tea")["hits"]}
    assert hits.keys() == again.keys() == {"d000", "d001", "d002", "d003"}
    assert hits == pytest.approx(again, abs=1e-5)
    with pytest.raises(ValueError, match="4 documents and 1 embeddings"):
        client.put_documents(collection, some, embeddings=client.embed("tea"))


def test_bulk_upserts_report_progress_and_read_no_further_than_they_send(
    client: Client, collection: str
) -> None:
    read, told = 0, list[tuple[int, int]]()

    def items() -> object:
        nonlocal read
        for one in documents(50):
            read += 1
            yield one

    def note(done: Upserted) -> None:
        told.append((done.documents, read))

    done = upsert(client, collection, items(), batch=5, in_flight=2, progress=note)  # type: ignore[arg-type]
    assert done.documents == 50
    assert done.position > 0
    assert [documents for documents, _ in told] == list(range(5, 51, 5))
    assert all(read <= documents + 3 * 5 for documents, read in told)
    assert client.collection(collection).description["documents"] == 50


def test_bulk_upserts_take_embedded_documents(client: Client, collection: str) -> None:
    some = documents(4)
    embedded = EmbeddedDocuments(some[:2], client.embed([one["text"] for one in some[:2]]))
    assert upsert(client, collection, [embedded, *some[2:]]).documents == 4
    assert client.collection(collection).description["documents"] == 4


def test_a_failed_batch_is_raised(client: Client, collection: str) -> None:
    bad: list[DocumentRequest] = [{"id": "", "text": "no id"}]
    with pytest.raises(ApiError) as raised:
        upsert(client, collection, bad)
    assert raised.value.status == 422


def test_collections_aliases_and_backups(client: Client, collection: str) -> None:
    client.put_documents(collection, documents(2))
    assert collection in [one["name"] for one in client.collections()]
    assert client.statistics(collection)["documents"] == 2
    client.merge(collection)
    client.put_alias("current", collection)
    assert client.alias("current")["collection"] == collection
    assert [one["alias"] for one in client.aliases()] == ["current"]
    client.delete_alias("current")
    backup = client.create_backup(collection)
    assert [one["id"] for one in client.backups(collection)] == [backup["id"]]
    client.delete_documents(collection, ids=["d000"])
    restored = client.restore_backup(collection, backup["id"], name="restored")
    assert restored["documents"] == 2
    client.delete_collection("restored")
    assert client.restore_backup(collection, backup["id"])["documents"] == 2
    client.delete_backup(collection, backup["id"])
    assert client.backups(collection) == []
    with pytest.raises(ConflictError):
        client.create_collection(collection)


def test_lists_come_page_by_page(client: Client, collection: str) -> None:
    names = [f"{collection}-{n}" for n in range(3)]
    for name in names:
        client.create_collection(name)
        client.put_alias(f"of-{name}", name)
    try:
        assert [one["name"] for one in client.collections(limit=2, after=names[0])] == names[1:]
        assert [one["name"] for one in client.iter_collections(page=1) if one["name"] in names] == names
        assert [one["alias"] for one in client.aliases(limit=1)] == [f"of-{names[0]}"]
        assert [one["alias"] for one in client.aliases(after=f"of-{names[1]}")] == [f"of-{names[2]}"]
        assert list(client.iter_aliases(page=2)) == client.aliases()
        made = sorted((client.create_backup(collection)["id"] for _ in range(3)), reverse=True)
        assert [one["id"] for one in client.backups(collection, limit=1, after=made[0])] == made[1:2]
        assert list(client.iter_backups(collection, page=2)) == client.backups(collection)
        for backup in made:
            client.delete_backup(collection, backup)
        with pytest.raises(ApiError, match="limit"):
            client.collections(limit=0)
    finally:
        for name in names:
            client.delete_alias(f"of-{name}")
            client.delete_collection(name)


@pytest.mark.slow
def test_jobs_come_page_by_page(client: Client, collection: str, sources: Path) -> None:
    (sources / "tea.jsonl").write_text('{"id": "tea", "text": "Green tea."}\n')
    ids: list[str] = []
    for _ in range(3):
        job = client.wait_for_job(client.start_job(collection, "tea.jsonl", mode="upsert")["id"])
        assert job["state"] == "succeeded"
        ids.insert(0, job["id"])
    assert [one["id"] for one in client.jobs(limit=1)] == ids[:1]
    assert [one["id"] for one in client.jobs(limit=1, after=ids[0])] == ids[1:2]
    assert [one["id"] for one in client.iter_jobs(page=2)][:3] == ids
    with pytest.raises(ApiError, match="no job of this list"):
        client.jobs(after="none")


def test_jobs(client: Client, collection: str) -> None:
    assert isinstance(client.jobs(), list)
    with pytest.raises(ApiError, match=r"missing\.jsonl"):
        client.wait_for_job(client.start_job(collection, "missing.jsonl")["id"])
    with pytest.raises(NotFoundError):
        client.job("none")
    with pytest.raises(NotFoundError):
        client.cancel_job("none")


def test_reranking_and_operations(client: Client) -> None:
    results = client.rerank("how is tea made", TEXTS, top_k=1)["results"]
    assert [one["index"] for one in results] == [0]
    assert client.info()["name"] == "tercet"
    assert client.healthy()
    assert client.ready()
    assert "tercet_requests_total" in client.metrics()


def test_a_missing_key_is_said(server: str) -> None:
    with Client(server) as client, pytest.raises(ApiError) as raised:
        client.collections()
    assert raised.value.status == 401


async def test_the_asynchronous_client(server: str, collection: str) -> None:
    async with AsyncClient(server, key=KEY) as client:

        async def items():  # type: ignore[no-untyped-def]
            for one in documents(12):
                yield one

        done = await upsert_async(client, collection, items(), batch=5, in_flight=2)
        assert done.documents == 12
        assert [one["id"] async for one in client.documents(collection, page=5)] == [
            one["id"] for one in documents(12)
        ]
        names = [one["name"] async for one in client.iter_collections(page=1)]
        assert names == [one["name"] for one in await client.collections()]
        hits = (await client.search(collection, "tea", top_k=3))["hits"]
        assert len(hits) == 3
        with pytest.raises(NotFoundError):
            await client.collection("none")


def answering(*answers: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """A transport that gives these answers, one after the other, and what it was asked."""
    asked: list[httpx.Request] = []
    left = iter(answers)

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return httpx.MockTransport(handle), asked


def overloaded(seconds: str) -> httpx.Response:
    error = {"type": "overloaded", "message": "too much waits", "param": None, "code": "overloaded"}
    return httpx.Response(429, json={"error": error}, headers={"Retry-After": seconds})


def test_a_busy_server_is_asked_again_after_the_time_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tercet_client.client.time.sleep", pauses.append)
    transport, asked = answering(overloaded("7"), overloaded("3"), httpx.Response(200, json={"aliases": []}))
    with Client("http://tercet", transport=transport) as client:
        assert client.aliases() == []
    assert pauses == [7.0, 3.0]
    assert len(asked) == 3


def test_retries_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tercet_client.client.time.sleep", lambda _: None)
    transport, asked = answering(*[overloaded("1")] * 3)
    with (
        Client("http://tercet", transport=transport, retries=2) as client,
        pytest.raises(OverloadedError, match="too much waits"),
    ):
        client.aliases()
    assert len(asked) == 3


def test_a_write_whose_connection_is_lost_is_repeated_under_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tercet_client.client.time.sleep", lambda _: None)
    done = httpx.Response(200, json={"upserted": 1, "position": 1, "usage": {"tokens": 3}})
    transport, asked = answering(httpx.ReadError("lost"), done)
    with Client("http://tercet", transport=transport) as client:
        client.put_documents("c", [{"id": "a", "text": "b"}])
    assert asked[0].content == asked[1].content
    assert b"idempotency_key" in asked[0].content


def test_what_a_repeat_might_do_twice_is_not_repeated() -> None:
    transport, asked = answering(httpx.ConnectError("refused"))
    with (
        Client("http://tercet", transport=transport) as client,
        pytest.raises(ConnectionFailedError, match="http://tercet does not answer: refused"),
    ):
        client.create_backup("c")
    assert len(asked) == 1


def test_what_is_made_from_the_asynchronous_client_is_up_to_date() -> None:
    maker = runpy.run_path(str(Path(__file__).resolve().parents[1] / "make_sync.py"))
    for target, source in maker["MADE"].items():
        assert target.read_text() == maker["made_text"](target, source.read_text())


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "localhost", "ftp://tercet", ""])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_is_no_address_is_told_at_once(kind: Any, url: str) -> None:
    with pytest.raises(ValueError, match=f"url is '{url}'; give one such as http://127.0.0.1:8080"):
        kind(url)
