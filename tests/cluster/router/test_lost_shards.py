"""A shard that is lost, silent or answers garbage: an error that names it, or an answer that tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast, get_args

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tercet.cluster.router.aliases import KEPT_SECONDS
from tercet.cluster.router.app import create_router_app
from tercet.cluster.shards.placement import Placement
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.collections.shard_telemetry import FailureReason
from tercet.service.settings.settings import Settings
from tests.cluster.router.faults import Fault, Relay, relay
from tests.service.conftest import real_server

pytestmark = pytest.mark.slow

WORDS = ["tea", "water", "rail", "steam", "leaf", "black"]
SEARCH = {"collection": "demo", "query": "hot tea", "top_k": 20}
SOON_SECONDS, LATER_SECONDS = 2.0, 60.0
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
    """The same with the relay before either shard; options: of the router, but not of who writes to it."""
    with ExitStack() as stack:
        urls = [
            stack.enter_context(real_server(create_app(Settings(data=root / name), tiny)))
            for name in ("first", "second")
        ]
        faulty = stack.enter_context(relay(urls[shard]))
        urls[shard] = faulty.url
        settings = Settings(data=root / "router", shards=tuple(urls), max_wait_seconds=60)
        documents = [{"id": f"d{row}", "text": f"{WORDS[row % 6]} {WORDS[row % 5]}"} for row in range(12)]
        with real_server(create_router_app(settings, tiny)) as router:
            for path, body in (
                ("collections/demo", {"lexical": "idf"}),
                ("collections/demo/documents", {"documents": documents}),
                ("aliases/now", {"collection": "demo"}),
            ):
                assert httpx.put(f"{router}/{path}", json=body).is_success
        app = create_router_app(settings.model_copy(update=options), tiny)
        yield stack.enter_context(real_server(app)), faulty


@pytest.fixture(params=get_args(Fault)[1:])
def failing(request: Any, servers: tuple[str, Relay]) -> Iterator[tuple[str, Relay]]:
    """The same, while the second shard fails in one way; it answers again behind."""
    router, faulty = servers
    assert len(search(router).json()["hits"]) == 12
    faulty.fault = cast(Fault, request.param)
    yield router, faulty
    faulty.fault = "none"
    recovered(router)


def search(router: str, seconds: float = LATER_SECONDS, **changes: Any) -> httpx.Response:
    """seconds: that it is given."""
    headers = {"X-Request-Timeout": f"{seconds}"}
    return httpx.post(f"{router}/search", json={**SEARCH, **changes}, headers=headers, timeout=90)


def search_while_it_fails(
    router: str, faulty: Relay, is_as_wanted: Callable[[httpx.Response], bool], **changes: Any
) -> dict[str, Any]:
    """The answer that is wanted. Only where a shard is silent is there another one now and then, as on a
    machine that is too busy for what is left of a short time.
    """
    is_silent = faulty.fault == "silent"
    while not is_as_wanted(answer := search(router, SOON_SECONDS if is_silent else LATER_SECONDS, **changes)):
        assert is_silent, answer.text
    found: dict[str, Any] = answer.json()
    return found


def recovered(router: str) -> None:
    """Waits until all shards are asked again."""
    while search(router).status_code != 200:
        time.sleep(0.05)
    assert len(search(router).json()["hits"]) == 12


def test_a_shard_that_fails_is_named(failing: tuple[str, Relay]) -> None:
    router, faulty = failing

    def is_named(answer: httpx.Response) -> bool:
        return answer.status_code == 503 and faulty.url in answer.json()["error"]["message"]

    for _ in range(3):
        error = search_while_it_fails(router, faulty, is_named)["error"]
        assert error["code"] in ("shard_unavailable", "shard_timeout", "shard_failed")


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

    (other,) = {dict(labels)["url"] for (_, *labels) in before} - {faulty.url}
    while not (
        REASONS[faulty.fault] <= counted(faulty.url) and risen("tercet_shard_seconds_count", url=other)
    ):
        search_while_it_fails(router, faulty, lambda answer: answer.status_code == 503)
        after = measured(router)
    assert counted(other) <= {"deadline", "silent"}  # as on a machine that is busy
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

    def is_told(answer: httpx.Response) -> bool:
        return answer.status_code == 200 and answer.json().get("partial") == {"shards": [faulty.url]}

    for changes in ({}, {"fusion": "rrf"}, {"queries": ["tea", "rail"], "query": None, "top_k": 9}):
        found = search_while_it_fails(router, faulty, is_told, allow_partial=True, **changes)
        for result in found.get("results", [found]):
            ids = {hit["id"] for hit in result["hits"]}
            assert ids
            assert {Placement.evenly(2).shard_of(id) for id in ids} == {0}
            assert not result["exhausted"]


def test_a_shard_that_is_lost_in_the_middle_takes_no_places_of_others(servers: tuple[str, Relay]) -> None:
    """Its candidates had a part in the cut."""
    router, faulty = servers
    few = {"candidates": {"dense": 4, "sparse": 0}, "allow_partial": True}
    assert {Placement.evenly(2).shard_of(hit["id"]) for hit in search(router, **few).json()["hits"]} == {0, 1}
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
        routed(tmp_path, tiny, 1, shards_timeout_seconds=1.0) as (router, faulty),
        httpx.Client(base_url=router, timeout=30) as client,
    ):
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
            faulty.fault = "silent"
            error = client.request(method, path, json=body).json()["error"]
            assert error["code"] == "shard_timeout", (path, error)
            assert faulty.url in error["message"]
            faulty.fault = "none"
            recovered(router)
        assert client.get("/aliases").json()["aliases"] == [
            {"alias": "now", "collection": "demo", "collections": ["demo"]}
        ]
        assert [each["name"] for each in client.get("/collections").json()["collections"]] == ["demo"]


def test_a_first_shard_that_is_silent_keeps_no_request_beyond_its_time(tmp_path: Path, tiny: Encoder) -> None:
    """The aliases, too, are asked of it, now and then; what it told of them goes on to count."""
    with routed(tmp_path, tiny, 0) as (router, faulty), ThreadPoolExecutor(10) as pool:
        assert len(search(router, collection="now").json()["hits"]) == 12
        faulty.fault = "silent"
        time.sleep(KEPT_SECONDS)
        asked = [
            pool.submit(search, router, 6.0, collection="now", allow_partial=number > 4)
            for number in range(10)
        ]
        answers = [each.result() for each in asked]
        assert {answer.status_code for answer in answers[:5]} == {503}
        assert [answer.json()["partial"] for answer in answers[5:]] == [{"shards": [faulty.url]}] * 5
        faulty.fault = "none"
