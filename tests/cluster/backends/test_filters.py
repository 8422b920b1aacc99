"""Filters allow the same documents in an engine as here, whatever that engine can say of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tercet.cluster.backends.candidates import proposed_keys
from tercet.cluster.backends.engine import ProposingQuery
from tercet.index.candidates import CandidateLimits
from tercet.index.documents.conditions import condition_of
from tercet.index.documents.filters import parse_filter
from tercet.index.search.query import check_query
from tercet.models.encoder import encode

VALUES: dict[str, list[Any]] = {
    "year": [1990, 1995, 2005.0, 2010, 2010.5, 2030, 2034, 2100],
    "kind": ["a", "b", "c", "d", "\ud800"],
    "price": [0, 0.25, 3.75, 8, 1e22, -5e-324],
    "made": ["2024-05-17", "2024-05-17T09:30:00Z", "2023-01-01T00:00:00.123456", "1969-01-01", "0001-01-01"],
    "big": [2**53, 2**53 - 1, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1, 0],
    "a.b [0]": ["a", 'say "hot"\\\n', "café\t", ""],
    'a "quoted" one': ["b", 'say "hot"\\\n'],
}
RANGES = ("gte", "gt", "lte", "lt")


def random_filter(random: Random, depth: int = 0) -> dict[str, Any]:
    """A filter of a few levels."""
    if depth < 3 and random.random() < 0.5:
        kind = random.choice(["and", "or", "not"])
        if kind == "not":
            return {"not": random_filter(random, depth + 1)}
        return {kind: [random_filter(random, depth + 1) for _ in range(random.randint(1, 3))]}
    if random.random() < 0.1:
        return {"eq": {"sold": random.random() < 0.5}}
    field = random.choice([*VALUES])
    values = VALUES[field]
    kind = random.choice(["eq", "in", "exists", *RANGES])
    if kind == "exists":
        return {"exists": field}
    if kind == "in":
        return {"in": {field: random.sample(values, random.randint(0, len(values)))}}
    return {kind: {field: random.choice(values)}}


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "count"), [("qdrant", 400), ("milvus", 150)])
def test_both_ways_the_same_documents(pair: Callable[..., Any], tiny: Any, engine: str, count: int) -> None:
    both, random = pair(engine, "plain"), Random(5)
    fields, collection = both.own.settings.fields, both.there._collection
    dense = check_query(encode(tiny, ["hot tea"], "query"), both.own.settings).dense
    query = ProposingQuery(dense, {}, {})
    said, matched = 0, 0
    for _ in range(count):
        tree = random_filter(random)
        filter = parse_filter(tree)
        expected = {document.id for document in both.own.page(None, 1000, filter)}
        assert both.there.count(filter) == len(expected), tree
        found = {document.id for document in both.there.page(None, 1000, filter)}
        assert found == expected, tree
        condition = condition_of(filter, fields)
        keys = proposed_keys(collection, query, CandidateLimits(1000, 0), condition, fields)
        assert sorted(keys) == sorted(collection.keys_of([*expected])), tree
        said += collection.expresses(condition)
        matched += 0 < len(expected) < 61
    assert matched > count / 3
    # The rest was narrowed, and read, as all is where a field may be a path.
    assert said > count / (2.5 if engine == "qdrant" else 12)


@pytest.mark.slow
def test_pages_follow_each_other_to_the_end(pair: Callable[..., Any]) -> None:
    for engine in ("qdrant", "milvus"):
        there = pair(engine, "plain").there
        for filter in (
            None,
            parse_filter({"gte": {"year": 2010}}),
            parse_filter({"not": {"eq": {"kind": "c"}}}),
        ):
            seen: list[str] = []
            while True:
                page = there.page(seen[-1] if seen else None, 7, filter)
                seen += [document.id for document in page]
                if len(page) < 7:
                    break
            assert len(seen) == len(set(seen)) == there.count(filter)
