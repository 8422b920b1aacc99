"""Partitions: what one may be, what keeps it, and which ones a filter names."""

from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.partitions import (
    kept_partition,
    partition_of,
    partitions_allowed,
    within_partition,
)
from tercet.index.errors import InvalidDocumentError


def of(value: Any) -> str:
    return partition_of(Document("a", "text", None, {"partition": value}))


@pytest.mark.parametrize("value", [None, "", 7, ["t"], "x" * 513, "é" * 257])
def test_a_partition_is_a_text_of_1_to_512_bytes(value: Any) -> None:
    with pytest.raises(InvalidDocumentError, match=r"'a': partition is .*a text of 1 to 512 bytes") as raised:
        of(value)
    assert raised.value.part == "partition"


def test_both_forms_of_a_text_are_one_partition() -> None:
    assert of("x" * 512) == "x" * 512
    assert of("e\u0301") == of("é") == "é"


def test_changed_metadata_keep_the_partition() -> None:
    present = {"partition": "t", "year": 1}
    assert kept_partition(present, {"year": 2}) == {"partition": "t", "year": 2}
    assert kept_partition(present, present) == present
    with pytest.raises(InvalidDocumentError, match="stays in its partition, 't'"):
        kept_partition(present, {"partition": "u"})


@pytest.mark.parametrize(
    ("tree", "allowed"),
    [
        ({"eq": {"partition": "t"}}, {"t"}),
        ({"in": {"partition": ["t", "u"]}}, {"t", "u"}),
        (
            {"and": [{"eq": {"year": 1}}, {"in": {"partition": ["t", "u"]}}, {"eq": {"partition": "u"}}]},
            {"u"},
        ),
        ({"or": [{"eq": {"partition": "t"}}, {"eq": {"partition": "u"}}]}, {"t", "u"}),
        ({"or": [{"eq": {"partition": "t"}}, {"eq": {"year": 1}}]}, None),
        ({"not": {"eq": {"partition": "t"}}}, None),
        ({"gte": {"partition": "t"}}, None),
        ({"eq": {"year": 1}}, None),
    ],
)
def test_the_partitions_that_a_filter_names(tree: Any, allowed: set[str] | None) -> None:
    assert partitions_allowed(parse_filter(tree)) == allowed


def test_a_filter_within_a_partition() -> None:
    year = parse_filter({"eq": {"year": 1}})
    assert within_partition(year, None) is year
    assert within_partition(None, "t") == parse_filter({"eq": {"partition": "t"}})
    assert within_partition(year, "t") == parse_filter(
        {"and": [{"eq": {"partition": "t"}}, {"eq": {"year": 1}}]}
    )
