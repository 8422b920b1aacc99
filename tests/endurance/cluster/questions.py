"""Documents divided over shards, searches of many kinds, and what one server with all of them answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from benchmarks.recording import ROOT
from benchmarks.serving.cranfield import texts_of
from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.ingest.target import open_or_create
from tercet.models.checkpoint import ENGLISH
from tercet.models.encoder import EncoderInfo, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Int64, Representations

NAME = "abstracts"
FIELDS = {"part": "keyword", "kind": "keyword", "tags": "keyword", "year": "integer"}
VOLATILE = ("took_ms", "snapshot", "collection")
KINDS = ("plain", "ranks", "filter", "groups", "facets", "page", "after", "several", "words")
WITHOUT_PARTIAL = ("words",)
"""A shard that begins anew has the router forget what it knew of words. Where another is lost then, BM25 goes
by what the others have, and a partial answer by no rule that can be checked from outside."""

Value = dict[str, Any]
Lost = frozenset[int]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents with their representations. shards: int64[N], where each belongs."""

    info: EncoderInfo
    documents: Sequence[Document]
    encoded: Representations
    shards: Int64

    def write(self, data: Path, rows: Int64, name: str = NAME) -> Collection:
        """A collection of some documents below a data root, in place of one that is there."""
        settings = {"dense_kind": "flat", "lexical": "idf", "bm25": True, "fields": FIELDS}
        (data / "collections").mkdir(parents=True, exist_ok=True)
        collection, _ = open_or_create(data / "collections", name, self.info, settings)
        with collection.writer() as writer:
            writer.add([self.documents[row] for row in rows.tolist()], self.encoded.take(rows))
            writer.publish()
        return collection


def corpus(documents: int, shards: int) -> Corpus:
    """The first abstracts of Cranfield, with values that are made from their numbers."""
    encoder = load_encoder(str(ROOT / "checkpoints" / ENGLISH))
    texts = texts_of("corpus")[:documents]
    parts = [encode(encoder, texts[start : start + 256]) for start in range(0, len(texts), 256)]
    ids = [f"a{row}" for row in range(len(texts))]
    places = Placement.evenly(shards).shards_of(ids)
    made = [
        Document(id, text, None, _fields(row, int(places[row])))
        for row, (id, text) in enumerate(zip(ids, texts, strict=True))
    ]
    return Corpus(encoder.info, made, Representations.concatenate(parts), places)


def _fields(row: int, shard: int) -> Value:
    return {
        "part": str(shard),
        "kind": ("air", "heat", "wing", "jet", "plate")[row * row % 5],
        "tags": [name for name, divisor in (("two", 2), ("three", 3), ("five", 5)) if row % divisor == 0],
        "year": 1950 + row % 17,
    }


@dataclass(frozen=True, slots=True)
class Question:
    """A search. expected: by the shards that are lost."""

    kind: str
    body: Value
    expected: dict[Lost, Value]

    def lacking(self, lost: Lost) -> Value:
        """The search that one server answers as the shards answer this that are not lost."""
        if not lost:
            return self.body
        there = {"not": {"in": {"part": [str(shard) for shard in sorted(lost)]}}}
        wanted = self.body.get("filter")
        return {**self.body, "filter": there if wanted is None else {"and": [there, wanted]}}

    def differing(self, answer: Value, lost: Lost) -> list[str]:
        """The parts of an answer that are not as expected, where these shards are lost.

        Facets, and each of several results, may have what a shard told before it was lost.
        """
        got = lasting(answer, partial=bool(lost))
        ways = [way for way in self.expected if way <= lost]

        def is_right(name: str) -> bool:
            found = got.get(name)
            if name == "facets":
                return any(found == self.expected[way][name] for way in ways)
            if name == "results":
                return isinstance(found, list) and all(
                    any(each == lasting(self.expected[way][name][place], partial=bool(lost)) for way in ways)
                    for place, each in enumerate(found)
                )
            return bool(found == self.expected[lost][name])

        missing = [name for name in got if name not in self.expected[lost]]
        return missing + [name for name in self.expected[lost] if not is_right(name)]


def questions(
    url: str, shards: int, queries: int, name: str = NAME, kinds: Sequence[str] = KINDS
) -> list[Question]:
    """Searches of these kinds, with the answers of the server at a URL that has all documents.

    shards: that may be lost, not all at once; 0 where only whole answers are wanted.
    """
    texts = texts_of("queries")[:queries]
    with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(2) as pool:
        ask = partial(_answer, client)
        made = [
            Question(kind, {"collection": name, **_body(kind, texts, number, ask, name)}, {})
            for number in range(len(texts))
            for kind in kinds
        ]
        wanted = [
            (one, frozenset(lost))
            for one in made
            for size in range(max(1, shards))
            for lost in combinations(range(shards), size)
            if not lost or one.kind not in WITHOUT_PARTIAL
        ]
        answers = pool.map(lambda each: ask(each[0].lacking(each[1])), wanted)
        for (one, lost), answer in zip(wanted, answers, strict=True):
            one.expected[lost] = lasting(answer, partial=bool(lost))
    return made


def _answer(client: httpx.Client, body: Value) -> Value:
    answer = client.post("/search", json=body)
    answer.raise_for_status()
    found: Value = answer.json()
    return found


def _body(kind: str, texts: Sequence[str], number: int, ask: Any, name: str) -> Value:
    query: Value = {"query": texts[number], "top_k": 10}
    if kind == "ranks":
        return {**query, "fusion": "rrf"}
    if kind == "filter":
        return {**query, "filter": {"and": [{"eq": {"kind": "heat"}}, {"gte": {"year": 1955}}]}}
    if kind == "groups":
        return {**query, "group_by": "kind"}
    if kind == "facets":
        return {**query, "facets": {"tags": 5, "kind": 3}}
    if kind == "page":
        return {**query, "offset": 10}
    if kind == "after":
        last = ask({"collection": name, **query})["hits"][-1]
        return {**query, "search_after": {"score": last["score"], "id": last["id"]}}
    if kind == "several":
        return {"queries": [texts[number], texts[number - 1]], "top_k": 5}
    if kind == "words":
        return {**query, "weights": {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 1}}
    return query


def lasting(answer: Value, *, partial: bool) -> Value:
    """What of an answer is the same each time. partial: of shards, of which one was lost."""
    kept = {name: value for name, value in answer.items() if name not in VOLATILE and name != "partial"}
    if partial:
        kept.pop("exhausted", None)
    if "results" in kept:
        kept["results"] = [lasting(result, partial=partial) for result in kept["results"]]
    return kept


@dataclass(frozen=True, slots=True)
class Sent:
    """A question as it is sent. seconds: that it is given, None for those of the server; fresh: over a
    connection of its own.
    """

    question: Question
    allows_partial: bool
    seconds: float | None
    fresh: bool

    @property
    def body(self) -> bytes:
        """Of the request."""
        return json.dumps(
            {**self.question.body, **({"allow_partial": True} if self.allows_partial else {})}
        ).encode()

    @property
    def headers(self) -> list[str]:
        """Besides those of every request."""
        return [] if self.seconds is None else [f"X-Request-Timeout: {self.seconds:g}"]


def mixed(made: Sequence[Question], count: int, seconds: float, random: Random) -> list[Sent]:
    """So many requests of all kinds: half of them allow partial answers, half have a deadline of their own,
    a fifth comes over a new connection.
    """
    return [
        Sent(
            one,
            one.kind not in WITHOUT_PARTIAL and random.random() < 0.5,
            seconds if random.random() < 0.5 else None,
            random.random() < 0.2,
        )
        for one in random.choices(made, k=count)
    ]


def rows_of(corpus: Corpus, shard: int) -> Int64:
    """The documents of a shard."""
    return np.flatnonzero(corpus.shards == shard)
