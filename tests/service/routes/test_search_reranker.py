"""`"reranker": NAME` of `POST /search`: the order of a cross-encoder, and what is refused."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.encoder import encode
from tercet.models.errors import RerankerNotServedError
from tercet.service.encoding.rerankers import Rerankers
from tercet.service.errors import failure_of
from tercet.service.load.deadlines import NO_DEADLINE
from tercet.service.schemas.search_answers import SearchManyResponse, SearchResponse
from tercet.service.settings.settings import Settings
from tests.tiny.cross_encoders import logit, write_reranker

pytest.importorskip("torch", reason="re-rankers run in torch: install tercet[torch]")
pytest.importorskip("transformers", reason="re-rankers run in torch: install tercet[torch]")

TEA = {"collection": "demo", "query": "hot tea"}
BY_JUDGE = {**TEA, "reranker": "judge"}


@pytest.fixture
def judge(data: Path) -> Path:
    """A re-ranker of the server."""
    return write_reranker(data / "rerankers" / "judge")


@pytest.fixture
async def client(judge: Path, make_client: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with make_client() as client:
        yield client


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={**BY_JUDGE, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def refusal(client: httpx.AsyncClient, **body: Any) -> tuple[int, str, str | None, str]:
    response = await client.post("/search", json={**BY_JUDGE, **body})
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"], error["message"]


def text_of(hit: dict[str, Any]) -> str:
    return str(hit["text"] if hit["title"] is None else f"{hit['title']}\n{hit['text']}")


async def test_hits_come_in_the_order_of_logits(client: httpx.AsyncClient, judge: Path) -> None:
    answer = await ask(client)
    SearchResponse.model_validate(answer)
    logits = [hit["scores"].pop("reranker") for hit in answer["hits"]]
    assert logits == sorted(logits, reverse=True)
    expected = [logit(judge, "hot tea", text_of(hit)) for hit in answer["hits"]]
    assert logits == pytest.approx(expected, abs=1e-5)
    assert answer["took_ms"].pop("rerank") > 0

    plain = await ask(client, reranker=None)
    assert [hit["id"] for hit in plain["hits"]] != [hit["id"] for hit in answer["hits"]]
    by_id = {hit["id"]: hit for hit in answer["hits"]}
    assert [by_id[hit["id"]] for hit in plain["hits"]] == plain["hits"]
    assert {**answer, "hits": 0, "took_ms": 0} == {**plain, "hits": 0, "took_ms": 0}
    assert set(answer["took_ms"]) == set(plain["took_ms"]) == {"encode", "retrieve", "score", "total"}


async def test_each_of_several_queries_is_answered_as_alone(client: httpx.AsyncClient) -> None:
    queries = ["hot tea", "the train", {"id": "rail"}]
    many = await ask(client, query=None, queries=queries)
    SearchManyResponse.model_validate(many)
    assert many["took_ms"]["rerank"] > 0
    for query, result in zip(queries, many["results"], strict=True):
        for hit, alone in zip(result["hits"], (await ask(client, query=query))["hits"], strict=True):
            logits = (each["scores"].pop("reranker") for each in (hit, alone))
            assert next(logits) == pytest.approx(next(logits), abs=1e-5)
            assert hit == alone


async def test_parts_of_hits_go_with_their_hits(client: httpx.AsyncClient) -> None:
    options = {"explain": True, "highlight": True}
    plain = {hit["id"]: hit for hit in (await ask(client, reranker=None, **options))["hits"]}
    for hit in (await ask(client, **options))["hits"]:
        for part in ("explanation", "highlights", "title_highlights"):
            assert hit[part] == plain[hit["id"]][part]
    (first, *_) = (await ask(client, include=["scores"]))["hits"]
    assert set(first) == {"id", "score", "scores"}


async def test_a_page_is_reordered_by_itself(client: httpx.AsyncClient) -> None:
    plain = [hit["id"] for hit in (await ask(client, reranker=None))["hits"]]
    pages = [(await ask(client, top_k=2, offset=offset))["hits"] for offset in (0, 2, 4)]
    for offset, page in zip((0, 2, 4), pages, strict=True):
        assert {hit["id"] for hit in page} == set(plain[offset : offset + 2])
        logits = [hit["scores"]["reranker"] for hit in page]
        assert logits == sorted(logits, reverse=True)
    assert (await ask(client, offset=100))["hits"] == []
    status, _, param, message = await refusal(client, search_after={"score": 1.0, "id": "tea"})
    assert (status, param, "use offset" in message) == (422, "search_after", True)


async def test_ready_representations_need_the_text(client: httpx.AsyncClient) -> None:
    embedded = await client.post("/embed", json={"inputs": "hot tea", "input_type": "query"})
    ready = embedded.json()["embeddings"][0]
    assert (await refusal(client, query=ready))[:3] == (422, "no_text", "query")
    assert (await refusal(client, query={**ready, "text": " "}))[:3] == (422, "no_text", "query")
    assert (await refusal(client, query=None, queries=["tea", ready]))[2] == "queries.1"
    with_text = (await ask(client, query={**ready, "text": "hot tea"}))["hits"]
    assert [hit["id"] for hit in with_text] == [hit["id"] for hit in (await ask(client))["hits"]]


async def test_of_a_long_document_the_best_window_is_read(
    client: httpx.AsyncClient, judge: Path, data: Path, tiny: Any, tmp_path: Path
) -> None:
    source = tmp_path / "long.jsonl"
    text = "the train leaves a station " * 10 + "green leaf black steam"
    documents = [{"id": "story", "title": "hot tea", "text": text}, {"id": "note", "text": "water"}]
    source.write_text("\n".join(map(json.dumps, documents)))
    build_collection(LocalDocuments(tiny), data / "collections", "long", source, window=WindowSettings(16, 4))
    for hit in (await ask(client, collection="long", query="green leaf"))["hits"]:
        start, end = hit["window"]["start"], hit["window"]["end"]
        assert (start > 0) == (hit["id"] == "story")
        read = text_of({**hit, "text": hit["text"][start:end]})
        assert hit["scores"]["reranker"] == pytest.approx(logit(judge, "green leaf", read), abs=1e-5)


async def test_a_document_without_text_is_named(client: httpx.AsyncClient, data: Path, tiny: Any) -> None:
    with Collection.open(data / "collections", "demo").writer() as writer:
        documents = [Document("vectors", " "), Document("tea", "hot tea", None, {"kind": "drink"})]
        writer.add(documents, encode(tiny, ["hot tea", "hot tea"]))
        writer.publish()
    status, code, param, message = await refusal(client)
    assert (status, code, param) == (422, "no_text", "reranker")
    assert "document 'vectors'" in message
    assert (await ask(client, filter={"eq": {"kind": "drink"}}))["hits"][0]["id"] == "tea"


async def test_an_unknown_name_is_404_and_names_the_known_ones(client: httpx.AsyncClient) -> None:
    for name in ("jury", "judge2"):
        assert await refusal(client, reranker=name) == (
            404,
            "reranker_not_found",
            "reranker",
            f"no re-ranker {name!r}; there are judge",
        )
    for wrong in ("", "..", "../judge", "Judge", 3, ["judge"]):
        assert (await refusal(client, reranker=wrong))[::2] == (422, "reranker")


async def test_one_that_cannot_be_used_tells_no_path(
    client: httpx.AsyncClient, judge: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (judge / "model.safetensors").write_bytes(b"nothing")
    status, code, param, message = await refusal(client)
    assert (status, code, param) == (503, "reranker_unusable", "reranker")
    assert str(judge) not in message
    assert str(judge) in caplog.text


async def test_a_folder_elsewhere_and_limits(
    make_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reranker(tmp_path / "elsewhere" / "judge")
    monkeypatch.setenv("TERCET_RERANKERS", str(tmp_path / "elsewhere"))
    async with make_client(max_documents=7, queue_tokens=60) as client:
        status, _, param, message = await refusal(client)
        assert (status, param, "the limit is 7 (setting max_documents)" in message) == (422, "top_k", True)
        assert (await refusal(client, query=None, queries=["tea", "hot"], top_k=4))[::2] == (422, "top_k")
        status, code, param, message = await refusal(client, top_k=7)
        assert (status, code, param) == (413, "request_too_large", "top_k")
        assert "at most 60 at once (setting queue_tokens)" in message
        assert len((await ask(client, top_k=1))["hits"]) == 1


async def test_workers_elsewhere_are_told_of(judge: Path, data: Path) -> None:
    settings = Settings(data=data, encoder_urls=("http://localhost:1",))
    with pytest.raises(RerankerNotServedError, match="encoder_urls") as raised:
        await Rerankers(settings).named("judge", NO_DEADLINE)
    failure = failure_of(raised.value)
    assert (failure.status, failure.code, failure.param) == (422, "reranker_not_served", "reranker")


async def test_what_waits_for_a_re_ranker_has_a_deadline(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tercet.models.cross_encoder import CrossEncoder

    begun, gate, scores = threading.Event(), threading.Event(), CrossEncoder.scores

    def held(*given: Any) -> Any:
        begun.set()
        assert gate.wait(60)
        return scores(*given)

    await ask(client)
    monkeypatch.setattr(CrossEncoder, "scores", held)
    first = asyncio.create_task(ask(client))
    await asyncio.to_thread(begun.wait, 60)
    late = await client.post("/search", json=BY_JUDGE, headers={"X-Request-Timeout": "0.3"})
    assert (late.status_code, late.json()["error"]["code"]) == (429, "deadline_exceeded")
    assert (await ask(client, reranker=None))["hits"]  # others are answered meanwhile
    gate.set()
    assert (await first)["hits"]
