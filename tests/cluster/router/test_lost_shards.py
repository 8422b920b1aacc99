"""A shard that is lost, silent or answers garbage: an error that names it, or an answer that tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast, get_args

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster.router.aliases import KEPT_SECONDS
from cluster.router.app import create_router_app
from cluster.shards.placement import shard_of
from models.encoder import Encoder
from service.app import create_app
from service.settings import Settings
from service.shard_telemetry import FailureReason
from tests.cluster.router.faults import Fault, Relay, relay
from tests.service.conftest import real_server

WORDS = ["tea", "water", "rail", "steam", "leaf", "black"]
SEARCH = {"collection": "demo", "query": "hot tea", "top_k": 20}
SOON = {"X-Request-Timeout": "2"}
REASONS = {
    "closed": {"unavailable", "paused"},
    "half": {"unavailable"},
    "silent": {"silent"},
    "garbage": {"failed"},
    "page": {"failed"},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[tuple[str, Relay]]:
    """The address of a router over two shards with twelve documents, and the relay before the second."""
    with routed(tmp_path_factory.mktemp("lost"), tiny, 1) as served:
        yield served


@contextmanager
def routed(root: Path, tiny: Encoder, shard: int, **options: Any) -> Iterator[tuple[str, Relay]]:
    """The same with the relay before either shard."""
    with ExitStack() as stack:
        urls = [
            stack.enter_context(real_server(create_app(Settings(data=root / name), tiny)))
            for name in ("first", "second")
        ]
        faulty = stack.enter_context(relay(urls[shard]))
        urls[shard] = faulty.url
        settings = Settings(data=root / "router", shards=tuple(urls), **options)
        router = stack.enter_context(real_server(create_router_app(settings, tiny)))
        assert httpx.put(f"{router}/collections/demo", json={"lexical": "idf"}).status_code == 201
        documents = [{"id": f"d{row}", "text": f"{WORDS[row % 6]} {WORDS[row % 5]}"} for row in range(12)]
        assert httpx.put(f"{router}/collections/demo/documents", json={"documents": documents}).is_success
        yield router, faulty


@pytest.fixture(params=get_args(Fault)[1:])
def failing(request: Any, servers: tuple[str, Relay]) -> Iterator[tuple[str, Relay]]:
    """The same, while the second shard fails in one way; it answers again behind."""
    router, faulty = servers
    assert len(search(router).json()["hits"]) == 12
    faulty.fault = cast(Fault, request.param)
    yield router, faulty
    faulty.fault = "none"
    recovered(router)


def search(router: str, **changes: Any) -> httpx.Response:
    return httpx.post(f"{router}/search", json={**SEARCH, **changes}, headers=SOON, timeout=20)


def recovered(router: str) -> None:
    """Waits until all shards are asked again."""
    while search(router).status_code != 200:
        time.sleep(0.05)
    assert len(search(router).json()["hits"]) == 12


def test_a_shard_that_fails_is_named(failing: tuple[str, Relay]) -> None:
    router, faulty = failing
    for _ in range(3):
        answer = search(router)
        assert answer.status_code == 503, answer.text
        error = answer.json()["error"]
        assert error["code"] in ("shard_unavailable", "shard_timeout", "shard_failed")
        assert faulty.url in error["message"]


def test_failures_are_counted_by_their_reason(failing: tuple[str, Relay]) -> None:
    router, faulty = failing
    before = after = measured(router)

    def risen(name: str, **labels: str) -> bool:
        sample = (name, *sorted(labels.items()))
        return after[sample] > before[sample]

    def counted(url: str) -> set[str]:
        return {
            reason
            for reason in get_args(FailureReason)
            if risen("tercet_shard_failures_total", url=url, reason=reason)
        }

    while not REASONS[faulty.fault] <= counted(faulty.url):
        search(router)
        after = measured(router)
    (other,) = {dict(labels)["url"] for (_, *labels) in after} - {faulty.url}
    assert counted(other) <= {"deadline", "silent"}  # as on a machine that is busy
    assert risen("tercet_shard_seconds_count", url=other)
    for direction in ("sent", "received"):
        assert risen("tercet_shard_bytes_total", url=other, direction=direction)
    assert after["tercet_shard_up", ("url", other)] == 1
    if "paused" in REASONS[faulty.fault]:
        assert after["tercet_shard_up", ("url", faulty.url)] == 0


def measured(router: str) -> dict[Any, float]:
    """What the router tells of the servers of its shards, by names and labels."""
    families = text_string_to_metric_families(httpx.get(f"{router}/metrics", timeout=30).text)
    samples = [sample for family in families for sample in family.samples]
    return {
        (each.name, *sorted(each.labels.items())): each.value
        for each in samples
        if each.name.startswith("tercet_shard_") and "url" in each.labels
    }


def test_what_is_missing_is_told_where_that_is_allowed(failing: tuple[str, Relay]) -> None:
    router, faulty = failing
    for changes in ({}, {"fusion": "rrf"}, {"queries": ["tea", "rail"], "query": None, "top_k": 9}):
        answer = search(router, allow_partial=True, **changes)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["partial"] == {"shards": [faulty.url]}
        for result in found.get("results", [found]):
            ids = {hit["id"] for hit in result["hits"]}
            assert ids
            assert {shard_of(id, 2) for id in ids} == {0}
            assert not result["exhausted"]


def test_a_shard_that_is_lost_in_the_middle_takes_no_places_of_others(servers: tuple[str, Relay]) -> None:
    """Its candidates had a part in the cut."""
    router, faulty = servers
    few = {"candidates": {"dense": 4, "sparse": 0}, "allow_partial": True}
    assert {shard_of(hit["id"], 2) for hit in search(router, **few).json()["hits"]} == {0, 1}
    found = []
    for fault in ("closed", "half"):
        faulty.fault = cast(Fault, fault)
        found.append(search(router, **few).json())
    faulty.fault = "none"
    recovered(router)
    assert found[0]["partial"] == found[1]["partial"] == {"shards": [faulty.url]}
    assert len(found[0]["hits"]) == 4
    assert found[0]["hits"] == found[1]["hits"]


def test_answers_are_whole_where_all_shards_answer(servers: tuple[str, Relay]) -> None:
    router, _ = servers
    whole, allowed = search(router).json(), search(router, allow_partial=True).json()
    assert "partial" not in allowed
    assert whole["hits"] == allowed["hits"]


def test_a_silent_shard_ends_what_has_no_time_limit_of_its_own(tmp_path: Path, tiny: Encoder) -> None:
    with (
        routed(tmp_path, tiny, 1, shards_timeout_seconds=0.3) as (router, faulty),
        httpx.Client(base_url=router, timeout=30) as client,
    ):
        assert client.put("/aliases/now", json={"collection": "demo"}).is_success
        faulty.fault = "silent"
        for method, path, body in (
            ("GET", "/collections", None),
            ("GET", "/collections/now", None),
            ("GET", "/collections/demo/stats", None),
            ("GET", "/collections/demo/backups", None),
            ("PUT", "/collections/new", {}),
            ("PUT", "/aliases/other", {"collection": "demo"}),
            ("DELETE", "/aliases/now", None),
            ("POST", "/collections/demo/merge", None),
        ):
            error = client.request(method, path, json=body).json()["error"]
            assert error["code"] in ("shard_timeout", "shard_unavailable"), (path, error)
            assert faulty.url in error["message"]
        assert client.get("/aliases").json()["aliases"] == [
            {"alias": "now", "collection": "demo", "collections": ["demo"]}
        ]
        faulty.fault = "none"
        recovered(router)
        assert [each["name"] for each in client.get("/collections").json()["collections"]] == ["demo"]


def test_a_first_shard_that_is_silent_keeps_no_request_beyond_its_time(tmp_path: Path, tiny: Encoder) -> None:
    """The aliases, too, are asked of it, now and then; what it told of them goes on to count."""
    with routed(tmp_path, tiny, 0) as (router, faulty), ThreadPoolExecutor(10) as pool:
        assert httpx.put(f"{router}/aliases/now", json={"collection": "demo"}).is_success
        assert len(search(router, collection="now").json()["hits"]) == 12
        faulty.fault = "silent"
        time.sleep(KEPT_SECONDS)
        asked = [
            pool.submit(search, router, collection="now", allow_partial=number > 4) for number in range(10)
        ]
        answers = [each.result() for each in asked]
        assert {answer.status_code for answer in answers[:5]} == {503}
        assert [answer.json()["partial"] for answer in answers[5:]] == [{"shards": [faulty.url]}] * 5
        faulty.fault = "none"
