"""Documents in order of a field equal a plain sort of all of them, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError
from tercet.index.live.collection import LiveCollection
from tercet.index.reading.ordered import Order
from tercet.index.snapshot import Snapshot

FIELDS: dict[str, FieldType] = {
    "kind": "keyword",
    "year": "integer",
    "price": "number",
    "new": "boolean",
    "seen": "datetime",
}
DOCUMENTS = 120
YEARS = [-(2**63), 2**63 - 1, 0, 1, 2]


def metadata_of(random: np.random.Generator) -> dict[str, Any]:
    values: dict[str, Any] = {
        "kind": [str(each) for each in random.choice(["", "a", "b", "시", "z"], random.integers(0, 4))],
        "year": [int(each) for each in random.choice(YEARS, random.integers(1, 3))],
        "price": float(random.choice([-0.0, 0.0, 1.5, -1e300, 1e300])),
        "new": bool(random.integers(2)),
        "seen": f"20{random.integers(10, 14)}-01-01T00:00:00Z",
    }
    return {name: value for name, value in values.items() if random.random() < 0.8}


@pytest.fixture(params=[1, 7])
def snapshot(request: Any, root: Path, random_texts: Any, make_settings: Any) -> Any:
    """In one segment and in several, on the disk and in memory; some documents are deleted."""
    random = np.random.default_rng(request.param)
    settings = make_settings(random_texts(1, 0), "demo", fields=FIELDS)
    documents = [
        Document(f"d{n * 37 % 1000:03d}", "text", None, metadata_of(random)) for n in range(DOCUMENTS)
    ]
    with LiveCollection(Collection.create(root, "demo", settings)) as live:
        for number, start in enumerate(range(0, DOCUMENTS, DOCUMENTS // request.param)):
            some = documents[start : start + DOCUMENTS // request.param]
            live.put(some, random_texts(len(some), number))
            if number < 5:
                live.flush()
        live.delete([document.id for document in documents[::9]])
        yield live.snapshot()


def key_of(order: Order, metadata: Any) -> Any:
    value = metadata.get(order.field)
    if isinstance(value, list):
        values = [each.encode() if isinstance(each, str) else each for each in value]
        return (max if order.descending else min)(values) if values else None
    return value


def expected(documents: list[Document], order: Order) -> list[str]:
    keyed = [(key_of(order, document.metadata), document.id) for document in documents]
    there = sorted((each for each in keyed if each[0] is not None), key=lambda each: each[1])
    there.sort(key=lambda each: each[0], reverse=order.descending)
    return [id for _, id in there] + sorted(id for value, id in keyed if value is None)


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("descending", [False, True])
def test_pages_are_those_of_a_plain_sort(snapshot: Snapshot, field: str, descending: bool) -> None:
    order, everything = Order(field, descending), snapshot.page(None, DOCUMENTS)
    for limit in (1, 7, 50, 1000):
        for tree in (None, {"gte": {"year": 1}}):
            condition = None if tree is None else parse_filter(tree)
            listed: list[str] = []
            after = None
            while page := snapshot.ordered_page(order, after, limit, condition):
                listed += [snapshot.read(each).id for each in page]
                assert len(page) <= limit
                after = page[-1].at
            wanted = [each for each in everything if tree is None or max(each.metadata.get("year", [0])) >= 1]
            assert listed == expected(wanted, order)


def test_a_page_goes_on_where_its_last_document_is_gone(
    root: Path, random_texts: Any, make_settings: Any
) -> None:
    settings = make_settings(random_texts(1, 0), "demo", fields=FIELDS)
    with LiveCollection(Collection.create(root, "demo", settings)) as live:
        kinds = {"1": "a", "2": "b", "3": "b", "4": "c", "5": None}
        live.put(
            [Document(id, "text", None, {"kind": kind}) for id, kind in kinds.items()], random_texts(5, 1)
        )
        for last, order, following in (
            (b"2", Order("kind"), ["3", "4", "5"]),
            (b"3", Order("kind", descending=True), ["1", "5"]),
        ):
            page = live.snapshot().ordered_page(order, None, 5)
            live.delete([last.decode()])
            (at,) = (each.at for each in page if each.at.id == last)
            found = live.snapshot().ordered_page(order, at, 5)
            assert [each.at.id.decode() for each in found] == following


def test_other_fields_are_refused(snapshot: Snapshot) -> None:
    with pytest.raises(
        InvalidQueryError,
        match=r"order_by field 'nope' is not declared.*declared fields: kind, new, price, seen, year.*POST",
    ):
        snapshot.ordered_page(Order("nope"), None, 1)
