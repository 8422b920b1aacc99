"""Random searches between random writes: what a router answers, one server with all documents does, too."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.router.app import create_router_app
from tercet.cluster.shards.placement import Placement
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

DEMO = "/collections/demo"
FIELDS = {
    "year": "integer",
    "tags": "keyword",
    "kind": "keyword",
    "new": "boolean",
    "seen": "datetime",
    "price": "number",
}
KINDS: dict[str, dict[str, Any]] = {
    "windows": {"bm25": True, "lexical": "idf", "window": {"tokens": 16, "overlap": 4}},
    "plain": {"lexical": "plain"},
}
WORDS = ["tea", "train", "water", "rail", "green", "steam", "leaf", "black", "station", "kettle"]
IDS = [*(f"d{number}" for number in range(30)), "a/b", "이차", "Z z"]
SHARDS = 3
LOST = SHARDS - 1
BOOSTS: list[dict[str, Any]] = [
    {"filter": {"exists": "kind"}, "add": 0.25},
    {"field": "year", "decay": "exp", "origin": 2000, "scale": 3, "add": 0.5},
    {"field": "seen", "decay": "gauss", "origin": "2020-01-01", "scale": "400d", "add": -0.3},
    {"field": "price", "decay": "linear", "origin": 1, "scale": 3, "add": 0.1},
]


class Draws:
    """Documents, filters and searches by chance."""

    def __init__(self, kind: str) -> None:
        self._pick = random.Random(kind)
        self._bm25 = "bm25" in KINDS[kind]

    def happens(self, share: float) -> bool:
        return self._pick.random() < share

    def document(self, id: str) -> dict[str, Any]:
        pick = self._pick
        metadata = {
            "year": pick.randint(1990, 2010),
            "tags": pick.sample("abcdefg", pick.randint(0, 4)),
            "kind": pick.choice(["odd", "even", "Ü", "z"]),
            "new": pick.random() < 0.5,
            "seen": f"20{pick.randint(10, 30)}-05-17T09:30:00Z",
            "price": pick.choice([0, 1.5, -2.0, 1e9]),
        }
        some = {name: value for name, value in metadata.items() if self.happens(0.7)}
        text = " ".join(pick.choices(WORDS, k=pick.choice([1, 2, 5, 30])))
        return {"id": id, "text": text, "title": pick.choice([None, "tea leaf"]), "metadata": some}

    def write(self) -> tuple[str, str, dict[str, Any]]:
        """Method, path below the documents, and body."""
        ids = self._pick.sample(IDS, 5)
        return self._pick.choice(
            [
                ("PUT", "", {"documents": [self.document(id) for id in ids]}),
                ("POST", "/delete", {"ids": ids[:2]}),
                ("POST", "/update", {"filter": self.filter(), "metadata": {"kind": "z"}, "merge": True}),
            ]
        )

    def filter(self, depth: int = 0) -> dict[str, Any]:
        pick = self._pick
        leaf = pick.choice(
            [
                {"eq": {"kind": pick.choice(["odd", "even", "none"])}},
                {"in": {"tags": pick.sample("abcdefg", 2)}},
                {"gte": {"year": pick.randint(1990, 2010)}},
                {"exists": pick.choice(list(FIELDS))},
                {"lt": {"seen": "2020-01-01"}},
                {"eq": {"new": True}},
                {"lte": {"price": 1.5}},
            ]
        )
        if depth == 2 or self.happens(0.6):
            return leaf
        if self.happens(0.3):
            return {"not": self.filter(depth + 1)}
        return {pick.choice(["and", "or"]): [leaf, self.filter(depth + 1)]}

    def search(self, last: Sequence[dict[str, Any]], *, texts: bool) -> dict[str, Any]:
        """last: hits of one before, to page behind; texts: whether the query is no stored document."""
        pick = self._pick
        body: dict[str, Any] = {"collection": "demo", "top_k": pick.choice([1, 3, 10, 50])}
        text, ids = " ".join(pick.choices([*WORDS, "zzz"], k=3)), pick.sample(IDS, 3)
        query = pick.choice([text, text, {"id": ids[0]}, {"like": ids[:2], "unlike": ids[2:]}])
        body["query"] = text if texts else query
        sides = ("dense", "sparse", "colbert", *(["bm25"] if self._bm25 else []))
        options: dict[str, Any] = {
            "weights": {side: pick.choice([0, 0.3, 1]) for side in sides} | {"dense": 1},
            "candidates": {"dense": pick.choice([1, 5, 20]), "sparse": pick.choice([0, 4, 15])},
            "filter": self.filter(),
            "group_by": pick.choice(["tags", "kind"]),
            "fusion": "rrf",
            "boosts": pick.sample(BOOSTS, 2),
            "facets": {field: pick.choice([1, 2, 9]) for field in ("tags", "kind", "new")},
            "min_score": pick.choice([-0.5, 0.1, 0.6]),
            "highlight": True,
            "explain": True,
            "include": pick.choice([["scores"], ["text"], [], ["metadata", "title"]]),
            "allow_partial": True,
        }
        body |= {name: value for name, value in options.items() if self.happens(0.25)}
        if last and self.happens(0.3):
            hit = pick.choice(last)
            body["search_after"] = {"score": hit["score"], "id": hit["id"] + pick.choice(["", "!"])}
        elif self.happens(0.3):
            body["offset"] = pick.choice([1, 3, 20])
        return body


class Compared:
    """A router before shards, one server with the same documents, and one without those of the last shard."""

    def __init__(self, root: Path, encoder: Encoder) -> None:
        self.stack = ExitStack()
        self.last_shard = ExitStack()
        stacks = [self.stack] * LOST + [self.last_shard]
        urls = [
            stack.enter_context(real_server(create_app(Settings(data=root / f"{number}"), encoder)))
            for number, stack in enumerate(stacks)
        ]
        before = Settings(data=root / "router", shards=tuple(urls))
        self.router = self.stack.enter_context(real_server(create_router_app(before, encoder)))
        self.one, self.rest = (
            self.stack.enter_context(real_server(create_app(Settings(data=root / name), encoder)))
            for name in ("one", "rest")
        )
        self._client = self.stack.enter_context(httpx.Client(timeout=60))
        self._positions: dict[str, Any] = {}

    def close(self) -> None:
        self.last_shard.close()
        self.stack.close()

    def write(self, method: str, path: str, body: dict[str, Any]) -> None:
        own = dict(body)
        for name in {"ids", "documents"} & body.keys():
            own[name] = [
                each
                for each in body[name]
                if Placement.evenly(SHARDS).shard_of(each if name == "ids" else each["id"]) != LOST
            ]
        for url, content in ((self.router, body), (self.one, body), (self.rest, own)):
            if all(content.get(name) != [] for name in ("ids", "documents")):
                answer = self._client.request(method, f"{url}{DEMO}{path}", json=content)
                assert answer.is_success, answer.text
                if "position" in answer.json():
                    self._positions[url] = answer.json()["position"]

    def search(self, body: dict[str, Any], expected_of: str) -> list[Any]:
        """The hits of the router, which answers what another server does, once both have what was written;
        none where both refuse it.
        """
        found, expected = (
            self._client.post(
                f"{url}/search",
                json=body if expected_of == self.rest else {**body, "min_position": self._positions[url]},
            )
            for url in (self.router, expected_of)
        )
        assert found.status_code == expected.status_code, (body, found.text, expected.text)
        if not expected.is_success:
            assert found.json() == expected.json(), body
            return []
        assert told(found.json()) == told(expected.json()), body
        hits: list[Any] = found.json()["hits"]
        return hits


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """All that does not tell of time, version, or a lost shard."""
    left_out = ("took_ms", "snapshot", "partial", "exhausted")
    return {name: value for name, value in answer.items() if name not in left_out}


@pytest.fixture(params=sorted(KINDS))
def drawn(request: Any, tmp_path: Path, tiny: Encoder) -> Iterator[tuple[Compared, Draws]]:
    """Servers with documents of a kind of collection, and what is to be drawn of it."""
    compared, draws = Compared(tmp_path, tiny), Draws(request.param)
    compared.write("PUT", "", {"fields": FIELDS, "dense_kind": "flat", **KINDS[request.param]})
    compared.write("PUT", "/documents", {"documents": [draws.document(id) for id in IDS]})
    yield compared, draws
    compared.close()


@pytest.mark.slow
def test_answers_are_those_of_one_server(drawn: tuple[Compared, Draws], request: Any) -> None:
    """Without the last shard those of the others' documents, where no score depends on all."""
    compared, draws = drawn
    last: list[Any] = []
    for _ in range(60):
        if draws.happens(0.2):
            method, path, body = draws.write()
            compared.write(method, f"/documents{path}", body)
        last = compared.search(draws.search(last, texts=False), compared.one) or last
    if "plain" in request.node.name:
        compared.last_shard.close()
        for _ in range(20):
            body = draws.search([], texts=True) | {"allow_partial": True}
            compared.search(body, compared.rest)
