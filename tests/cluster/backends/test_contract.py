"""One series of operations on every kind of server: whatever holds documents, the answers are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tercet.cluster.backends.app import create_backend_app
from tercet.cluster.router.app import create_router_app
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.backends.conftest import FIELDS, WORDS
from tests.cluster.backends.test_filters import random_filter
from tests.service.conftest import real_server

IDS = [f"d/{number} é" for number in range(40)]
COLLECTIONS: dict[str, dict[str, Any]] = {
    "plain": {"window": False, "token_codec": "float16"},
    "weighed": {"window": False, "lexical": "idf", "bm25": True, "token_codec": "sign"},
}
JSON = {"Content-Type": "application/json"}
DOCUMENTS = "/collections/{name}/documents"
# What answers may say differently: how long they took, positions, and how far each copy is.
OWN = {"took_ms", "snapshot", "position", "next"}


@pytest.fixture
def servers(eight: Any, tmp_path: Path) -> Iterator[dict[str, httpx.Client]]:
    """Clients of an embedded store's server, a router over two, and servers before both engines."""
    with ExitStack() as opened:

        def served(app: Any) -> str:
            return opened.enter_context(real_server(app))

        def engine(name: str, place: str) -> Any:
            settings = Settings(data=tmp_path / name, backend=name, backend_url=str(tmp_path / place))
            return create_backend_app(settings, eight)

        shards = [served(create_app(Settings(data=tmp_path / f"shard{n}"), eight)) for n in range(2)]
        apps = {
            "embedded": create_app(Settings(data=tmp_path / "own"), eight),
            "router": create_router_app(Settings(data=tmp_path / "router", shards=shards), eight),
            "qdrant": engine("qdrant", "points"),
            "milvus": engine("milvus", "rows.db"),
        }
        yield {
            name: opened.enter_context(httpx.Client(base_url=served(app), timeout=60))
            for name, app in apps.items()
        }


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.endurance)])
def test_the_same_operations_answer_alike(
    servers: dict[str, httpx.Client], count: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.milvus.written.FLUSHED_AT", 20)
    for name, settings in COLLECTIONS.items():
        made = {"fields": FIELDS, **settings}
        assert all(
            server.put(f"/collections/{name}", json=made).status_code == 201 for server in servers.values()
        )
    random, checked = Random(11), dict.fromkeys(("searches", "hits", "writes", "refused"), 0)
    positions: dict[str, Any] = {}
    for step in range(count):
        name = random.choice([*COLLECTIONS])
        method, path, body = operation(random, name, step)
        answers = {}
        for key, server in servers.items():
            own = body
            if (key, path) == ("router", "/search") and positions.get(name):
                own = {**body, "min_position": positions[name]}  # else terms may be counted a second ago
            content = None if own is None else json.dumps(own)  # which may hold a lone surrogate
            answers[key] = server.request(method, path, content=content, headers=JSON)
        positions[name] = answers["router"].json().get("position", positions.get(name))
        expected = answers.pop("embedded")
        told = comparable(expected)
        for key, answer in answers.items():
            assert answer.status_code == expected.status_code, (step, key, method, path, body, answer.text)
            if expected.status_code == 200:
                assert comparable(answer) == told, (step, key, method, path, body)
            else:
                assert answer.json()["error"]["code"] == told["error"]["code"], (step, key, path, body)
        checked["searches"] += path == "/search"
        checked["hits"] += len(told.get("hits", ()))
        checked["writes"] += "position" in expected.json()
        checked["refused"] += expected.status_code != 200
    assert checked["searches"] > count / 5
    assert checked["hits"] > count
    assert checked["writes"] > count / 4
    assert 0 < checked["refused"] < count / 4


def operation(random: Random, name: str, step: int) -> tuple[str, str, Any]:
    """A random request."""
    documents, id = DOCUMENTS.format(name=name), random.choice(IDS)
    ids = random.sample(IDS, random.randint(1, 4))
    filter, merge = random_filter(random), random.random() < 0.5
    kind = random.choice(
        ["put"] * 3
        + ["search"] * 6
        + ["patch", "delete", "delete_ids", "delete_filter", "update", "update_filter"]
        + ["count", "get", "get_all", "list"]
    )
    if step < 12 or kind == "put":
        some = [document(random, id) for id in ids]
        return "PUT", documents, {"documents": some, "idempotency_key": f"{name} {step}"}
    if kind == "patch":
        return "PATCH", f"{documents}/{id}", {"metadata": metadata(random), "merge": merge}
    if kind == "delete":
        return "DELETE", f"{documents}/{id}", None
    if kind == "delete_ids":
        return "POST", f"{documents}/delete", {"ids": ids}
    if kind == "delete_filter":
        rare = {"and": [filter, {"eq": {"year": random.randint(1990, 1999)}}]}
        return "POST", f"{documents}/delete", {"filter": rare}
    if kind.startswith("update"):
        chosen = {"ids": ids} if kind == "update" else {"filter": filter}
        return "POST", f"{documents}/update", {**chosen, "metadata": metadata(random), "merge": merge}
    if kind == "count":
        return "POST", f"{documents}/count", {"filter": filter}
    if kind == "get":
        return "GET", f"{documents}/{id}", None
    if kind == "get_all":
        return "POST", f"{documents}/get", {"ids": [*ids, "none"]}
    if kind == "list":
        return "GET", f"{documents}?limit=1000", None
    weights = {side: random.choice([0.5, 1, 2]) for side in ("dense", "sparse", "colbert")}
    if name == "weighed" and random.random() < 0.5:
        weights["bm25"] = 1
    search: dict[str, Any] = {
        "collection": name,
        "query": " ".join(random.choices(WORDS, k=random.randint(1, 5))),
        "weights": weights,
        "top_k": random.choice([1, 5, 50]),
        "explain": random.random() < 0.2,
    }
    if random.random() < 0.3:
        search["filter"] = filter
    return "POST", "/search", search


def document(random: Random, id: str) -> dict[str, Any]:
    """One of few words, so that many scores are equal; now and then one without any."""
    text = " ".join(random.choices(WORDS, k=random.choice([0, 1, 3, 8, 20])))
    return {"id": id, "title": random.choice([None, "steam"]), "text": text, "metadata": metadata(random)}


def metadata(random: Random) -> dict[str, Any]:
    """Values of declared fields, some of which are of a wrong type."""
    values: dict[str, Any] = {
        "year": random.randint(1990, 2030),
        "kind": random.choice(["a", "b", "c", ["a", "b"]]),
        "price": random.choice([0, 0.25, 8, 1e22]),
        "sold": random.random() < 0.5,
        "made": random.choice(["2024-05-17", "2024-05-17T09:30:00Z"]),
        "other": {"x": [1, None]},
    }
    if random.random() < 0.03:
        values["year"] = "late"
    return {key: values[key] for key in random.sample([*values], random.randint(1, 4))}


def comparable(answer: httpx.Response) -> Any:
    """An answer without what each server says of itself; lists of documents in order of id."""
    told = answer.json()
    if isinstance(told.get("documents"), list):
        told["documents"].sort(key=lambda each: each["id"].encode())
    return {key: value for key, value in told.items() if key not in OWN}


@pytest.mark.slow
def test_facets_are_counted_where_the_engine_counts(servers: dict[str, httpx.Client]) -> None:
    random = Random(3)
    some = [
        document(random, id) | {"metadata": {"kind": random.choice(["a", "b", ["a", "c"]])}} for id in IDS
    ]
    answers = {}
    for key in ("embedded", "qdrant", "milvus"):
        server = servers[key]
        server.put("/collections/plain", json={"fields": FIELDS, **COLLECTIONS["plain"]})
        assert server.put(DOCUMENTS.format(name="plain"), json={"documents": some}).status_code == 200
        wanted = {"collection": "plain", "query": "tea", "facets": {"kind": 2, "sold": 2}}
        answers[key] = server.post("/search", json=wanted).json()
    assert answers["qdrant"]["facets"] == answers["embedded"]["facets"]
    assert answers["embedded"]["facets"]["kind"]["distinct"] == 3
    assert answers["milvus"]["error"]["code"] == "not_in_backend"
