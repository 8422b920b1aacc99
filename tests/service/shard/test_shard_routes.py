"""What a shard answers to a router: wrong messages are refused, and what is kept for routers has bounds."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.search.facet_parts import NO_NAMES, WantedValues
from tercet.index.search.shard_search import ShardHits, ShardQuery
from tercet.models.representations import Representations
from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.exceptions import ShardStateGoneError
from tercet.service.requests.direct import DirectRoutes
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.messages import Message, checked, pack, unpack
from tercet.service.shard.pins import KEPT_SECONDS, MOST_SEARCHES, BegunSearch, Pins
from tercet.service.shard.records import (
    BoostsRequest,
    Candidates,
    CandidatesRequest,
    DocumentNames,
    ExamplesRequest,
    ExplanationsRequest,
    FacetsRequest,
    HitsRequest,
    PartsRequest,
    StatisticsRequest,
    TermFactors,
    TermReport,
)

PATH = "/shard/collections/demo"
BINARY = {"Content-Type": MEDIA_TYPE}
OPERATIONS = [
    "description",
    "candidates",
    "hits",
    "parts",
    "statistics",
    "facets",
    "explanations",
    "boosts",
    "examples",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
ARRAYS = st.sampled_from(
    [
        np.zeros(0, np.float32),
        np.ones(8, np.float32),
        np.full(8, np.nan, np.float32),
        np.ones((2, 4), np.float32),
        np.array([3, 2, 1], np.int32),
        np.array([5, 9], np.int64),
        np.array([0, -1], np.int64),
        np.zeros(1, np.float64),
        np.zeros((3, 3), np.uint8),
    ]
)


def query() -> ShardQuery:
    """A sound one."""
    vectors = Representations(
        np.zeros(1, np.int64), np.zeros(1, np.bool_), np.ones((1, 8), np.float32), None, None
    )
    return ShardQuery(vectors, None, Weights(1, 0, 0), CandidateLimits(5, 0, 0), DenseOptions())


ASKED = encode(CandidatesRequest(query()))
TEA = DocumentNames(("tea",), None)
SOUND = {
    "description": b"",
    "candidates": ASKED,
    "hits": encode(HitsRequest("x", 2, None, None, 0, None)),
    "parts": encode(PartsRequest("x", 0, np.array([1, 2]))),
    "statistics": encode(StatisticsRequest(terms=True, words=None)),
    "facets": encode(FacetsRequest((WantedValues("lang", 5, 1, NO_NAMES),), None)),
    "explanations": encode(
        ExplanationsRequest(TEA, query().query, TermFactors(np.zeros(1, np.int32), np.ones(1)), None)
    ),
    "boosts": encode(BoostsRequest(TEA, ())),
    "examples": encode(ExamplesRequest(TEA, None, 3)),
}


async def post(client: httpx.AsyncClient, operation: str, body: bytes, **query: str) -> httpx.Response:
    return await client.post(f"{PATH}/{operation}", content=body, headers=BINARY, params=query)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff" * 40, b"{}", checked(b"{}"), checked(save({"values": np.frombuffer(b"[1]", np.uint8)}))],
)
@pytest.mark.parametrize("operation", OPERATIONS[1:])
async def test_what_is_no_message_is_refused(client: httpx.AsyncClient, operation: str, body: bytes) -> None:
    answer = await post(client, operation, body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_safetensors"


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS[1:])
async def test_whatever_a_message_holds_is_no_internal_error(
    client: httpx.AsyncClient, operation: str
) -> None:
    sound = unpack(SOUND[operation], {})
    names = st.sampled_from(
        sorted([*sound.values, "query.boosts#", "query.boosts.0", "query.words", "documents.collections"])
    )
    others = sorted({*sound.arrays, "numbers", "query.token_ids", "query.words.idf", "query.words.counts"})
    bodies: list[bytes] = []

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(
        changes=st.dictionaries(names, VALUES, max_size=2),
        gone=st.lists(st.sampled_from(["words", *sound.values, *sound.arrays]), max_size=1),
        more=st.dictionaries(st.sampled_from(others), ARRAYS, max_size=3),
    )
    def make(changes: dict[str, Any], gone: list[str], more: dict[str, Any]) -> None:
        values = {name: value for name, value in {**sound.values, **changes}.items() if name not in gone}
        arrays = {name: value for name, value in {**sound.arrays, **more}.items() if name not in gone}
        try:
            bodies.append(pack(Message(values, arrays)))
        except TypeError:  # a number that JSON cannot carry
            return

    make()
    for body in bodies:
        answer = await post(client, operation, body)
        assert answer.status_code < 500, answer.text


async def test_keys_count_for_shards_too(make_client: Any) -> None:
    async with make_client(api_keys=("secret",)) as client:
        answer = await post(client, "candidates", ASKED)
        assert answer.status_code == 401


async def test_a_search_goes_on_with_what_it_proposed(client: httpx.AsyncClient) -> None:
    answer = await post(client, "candidates", ASKED)
    assert answer.status_code == 200, answer.text
    begun = decode(Candidates, answer.content).begun
    assert begun is not None
    assert len(begun.proposals) == 5
    wanted = HitsRequest(begun.search, 2, None, None, 0, np.array([1, 3, 4]))
    hits = await post(client, "hits", encode(wanted))
    assert len(decode(ShardHits, hits.content, N=2, S=3)) == 2
    for wrong in ([3, 1], [5], [1, 1], [-1, 1]):
        answer = await post(client, "hits", encode(replace(wanted, numbers=np.array(wrong))))
        assert answer.status_code == 422
    gone = await post(client, "hits", encode(replace(wanted, search="other", numbers=None)))
    assert (gone.status_code, gone.json()["error"]["code"]) == (409, "shard_state_gone")


async def test_a_router_that_knows_less_is_told(client: httpx.AsyncClient) -> None:
    changed = await post(client, "candidates", ASKED, tag="other")
    assert decode(Candidates, changed.content) == Candidates()
    begun = decode(Candidates, (await post(client, "candidates", ASKED)).content).begun
    assert begun is not None
    again = await post(client, "candidates", ASKED, state=begun.at.state)
    pinned = decode(Candidates, again.content).begun
    assert pinned is not None
    assert pinned.at == begun.at
    gone = await post(client, "candidates", ASKED, state="before")
    assert gone.json()["error"]["code"] == "shard_state_gone"


async def test_what_is_known_of_terms_is_not_told_again(make_client: Any) -> None:
    async with make_client() as client:
        await client.put("/collections/weighed", json={"lexical": "idf"})
        documents = [{"id": "a", "text": "hot tea"}]
        await client.put("/collections/weighed/documents", json={"documents": documents})
        path = PATH.replace("demo", "weighed")

        async def told(**known: str) -> TermReport:
            body = encode(StatisticsRequest(terms=True, words=None))
            answer = await client.post(f"{path}/statistics", content=body, headers=BINARY, params=known)
            return decode(TermReport, answer.content)

        first = await told()
        assert first.change is not None
        assert first.change.since is None
        assert (await told(known=first.at.state)).change is None
        documents[0]["text"] = "hot water"
        await client.put("/collections/weighed/documents", json={"documents": documents})
        later = await told(known=first.at.state)
        assert later.change is not None
        assert later.change.since == first.at.state
        assert sorted(later.change.frequencies.tolist()) == [-1, 1]  # tea went, water came


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"params": {"state": "gone"}},
        {"params": {"state": "x" * 101}},
        {"params": {"other": "1"}},
        {"params": [("state", "a"), ("state", "b")]},
        {"headers": {"X-Request-Timeout": "20"}},
        {"headers": {"X-Request-Timeout": "-1"}},
        {"headers": {"Content-Type": "application/json"}},
        {"url": "/shard/collections/none"},
        {"url": "/shard/collections/No Name"},
    ],
)
async def test_an_answer_is_that_of_the_framework(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, operation: str, changes: dict[str, Any]
) -> None:
    url = f"{changes.get('url', PATH)}/{operation}"
    headers = BINARY | changes.get("headers", {})

    async def told() -> tuple[int, Any]:
        answer = await client.post(
            url, content=SOUND[operation], headers=headers, params=changes.get("params")
        )
        if not answer.is_success:
            return answer.status_code, answer.json()
        found = unpack(answer.content, {})
        values = {name: value for name, value in found.values.items() if name != "begun.search"}
        return answer.status_code, (values, {name: each.tolist() for name, each in found.arrays.items()})

    direct = await told()
    monkeypatch.setattr(DirectRoutes, "find", lambda *_: None)
    assert direct == await told()


async def test_a_request_wakes_the_loop_once(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads hand it on from one to the next."""
    loop, woken = asyncio.get_running_loop(), list[Any]()
    wake = loop.call_soon_threadsafe

    def counted(callback: Any, *args: Any, **options: Any) -> Any:
        woken.append(callback)
        return wake(callback, *args, **options)

    await post(client, "candidates", ASKED)
    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    for _ in range(20):
        assert (await post(client, "candidates", ASKED)).is_success
    assert 20 <= len(woken) < 30  # and a few for what a server does beside


async def test_a_key_has_its_collections_for_routers_too(make_client: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    keys.write_text(json.dumps({"key": "secret", "access": "read", "collections": ["other"]}), "utf-8")
    keys.chmod(0o600)
    async with make_client({"Authorization": "Bearer secret"}, keys_file=keys) as client:
        answer = await post(client, "candidates", ASKED)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "collection_not_allowed")


class Found:
    """A search of so many bytes."""

    def __init__(self, size_bytes: int = 0) -> None:
        self.size_bytes = size_bytes


def test_what_is_kept_has_bounds() -> None:
    now = 0.0
    pins = Pins(lambda: now)
    search: Any = Found()
    first = pins.begin(BegunSearch("demo", search))
    assert pins.search(first, "demo") is search
    with pytest.raises(ShardStateGoneError):
        pins.search(first, "other")
    for _ in range(MOST_SEARCHES):
        last = pins.begin(BegunSearch("demo", search))
    with pytest.raises(ShardStateGoneError):
        pins.search(first, "demo")
    now += KEPT_SECONDS
    with pytest.raises(ShardStateGoneError):
        pins.search(last, "demo")
    large: Any = Found(40 << 20)
    names = [pins.begin(BegunSearch("demo", large)) for _ in range(2)]
    assert pins.search(names[1], "demo") is large
    with pytest.raises(ShardStateGoneError):
        pins.search(names[0], "demo")
