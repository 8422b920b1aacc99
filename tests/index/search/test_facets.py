"""Facets count documents, not hits: all that a filter allows and that are not deleted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document, Facet, FacetValue
from tercet.index.documents.fields import KeywordColumn
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import DamagedIndexError, InvalidQueryError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live.collection import LiveCollection
from tercet.index.reading.ordered import Order, ordered_page
from tercet.index.search.facets import facets_of

FIELDS = {"year": "integer", "tags": "keyword", "sold": "boolean"}


def test_by_hand(build: Any, three: Any) -> None:
    documents, encoded = three
    documents[2] = Document("c", "cat", None, {"tags": ["red", "blue", "red"]})
    snapshot = build((documents, encoded), segment=2, fields=FIELDS).snapshot()
    assert snapshot.facets({"tags": 2, "sold": 5}) == {
        "tags": Facet([FacetValue("blue", 2), FacetValue("red", 2)], 3, 0),
        "sold": Facet([FacetValue(False, 1), FacetValue(True, 1)], 2, 1),
    }
    red = parse_filter({"eq": {"tags": "red"}})
    assert snapshot.facets({"tags": 1, "sold": 5}, red) == {
        "tags": Facet([FacetValue("red", 2)], 3, 0),
        "sold": Facet([FacetValue(True, 1)], 1, 1),
    }
    assert snapshot.facets({"tags": 1}, parse_filter({"eq": {"tags": "no"}})) == {"tags": Facet([], 0, 0)}


@pytest.mark.parametrize("segment", [100, 13])
def test_counts_equal_those_of_the_documents(build: Any, random_corpus: Any, segment: int) -> None:
    documents, encoded = random_corpus(60, 1)
    collection = build((documents, encoded), segment=segment, fields=FIELDS)
    with LiveCollection(collection) as live:
        live.delete([document.id for document in documents[:7]])
        changed = [Document(each.id, "x", None, {"year": 1, "tags": ["new"]}) for each in documents[7:20]]
        live.put(changed, encoded.take(np.arange(7, 20)))
        left = changed + documents[20:]
        for least in (0, 2002):
            condition = parse_filter({"gte": {"year": least}})
            kept = [each for each in left if each.metadata["year"] >= least]
            counts = Counter(tag for each in kept for tag in each.metadata["tags"])
            expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            facet = live.snapshot().facets({"tags": 3}, condition)["tags"]
            assert [(each.value, each.count) for each in facet.values] == expected[:3]
            assert facet.distinct == len(counts)
            assert facet.missing == sum(not each.metadata["tags"] for each in kept)


def test_an_empty_collection_has_no_values(build: Any, three: Any) -> None:
    documents, encoded = three
    collection = build((documents, encoded), fields=FIELDS)
    with LiveCollection(collection) as live:
        live.delete([document.id for document in documents])
        assert live.snapshot().facets({"tags": 1, "sold": 1}) == {
            "tags": Facet([], 0, 0),
            "sold": Facet([], 0, 0),
        }


def test_fields_without_values_to_count_are_refused(build: Any, three: Any) -> None:
    snapshot = build(three, fields=FIELDS).snapshot()
    for wanted, message in (
        (
            {"year": 3},
            "facets takes a field of type keyword or boolean, but 'year' is integer; such fields: sold, tags",
        ),
        ({"x": 3}, "'x' is not declared in this collection"),
        ({"tags": 0}, "facets of 'tags' are to have 0 values; use 1 to 1000"),
    ):
        with pytest.raises(InvalidQueryError, match=message):
            snapshot.facets(wanted)


def test_strings_that_are_no_text_are_damage(build: Any, three: Any) -> None:
    (segment,) = build(three, fields=FIELDS).snapshot().published_segments().values()
    column = segment.columns["tags"]
    assert isinstance(column, KeywordColumn)
    strings = PackedBytes.of([b"\xff"] * len(column.strings))
    damaged = [replace(segment, columns={"tags": replace(column, strings=strings)})]
    with pytest.raises(DamagedIndexError, match=r"field_\d+_strings holds what is not UTF-8"):
        facets_of(damaged, {"tags": 5}, None)
    with pytest.raises(DamagedIndexError, match=r"field_\d+_strings holds what is not UTF-8"):
        ordered_page(damaged, Order("tags"), None, 5, None)
