"""A shard that is lost, silent or answers garbage: an error that names it, or an answer that tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast, get_args

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

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
    "silent": {"silent"},
    "garbage": {"failed"},
    "page": {"failed"},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[tuple[str, Relay]]:
    """The address of a router over two shards with twelve documents, and the relay before the second."""
    root = tmp_path_factory.mktemp("lost")
    with ExitStack() as stack:
        urls = [
            stack.enter_context(real_server(create_app(Settings(data=root / name), tiny)))
            for name in ("first", "second")
        ]
        faulty = stack.enter_context(relay(urls[1]))
        settings = Settings(data=root / "router", shards=(urls[0], faulty.url))
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
    return httpx.post(f"{router}/search", json={**SEARCH, **changes}, headers=SOON, timeout=30)


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
    """What the router tells of its shards, by names and labels."""
    families = text_string_to_metric_families(httpx.get(f"{router}/metrics", timeout=30).text)
    samples = [sample for family in families for sample in family.samples]
    return {
        (each.name, *sorted(each.labels.items())): each.value
        for each in samples
        if each.name.startswith("tercet_shard_")
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


def test_answers_are_whole_where_all_shards_answer(servers: tuple[str, Relay]) -> None:
    router, _ = servers
    whole, allowed = search(router).json(), search(router, allow_partial=True).json()
    assert "partial" not in allowed
    assert whole["hits"] == allowed["hits"]
