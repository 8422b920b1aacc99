"""Which stored documents are former passages of a document."""

from bisect import bisect_right
from typing import Any

from tercet.ingest.passages.former import PAGE, NewPassages

PASSAGE = {"source": "a", "start": 0, "end": 1}


def former(stored: dict[str, Any], new: list[str]) -> list[str]:
    passages, ids = NewPassages(), sorted(stored)
    for id in new:
        passages.add(id, PASSAGE)

    def page(after: str, limit: int) -> list[tuple[str, Any]]:
        begin = bisect_right(ids, after)
        return [(id, stored[id]) for id in ids[begin : begin + limit]]

    return sorted(passages.former(page))


def test_passages_that_a_document_no_longer_has_are_former_ones() -> None:
    stored = {f"a#{number}": PASSAGE for number in range(3 * PAGE)}
    assert former(stored, ["a#0", "a#1", "a#new"]) == sorted(stored.keys() - {"a#0", "a#1"})
    assert former(stored, []) == []


def test_what_only_looks_like_a_passage_is_none() -> None:
    stored = {
        "a": PASSAGE,
        "a#": {"source": "a"},
        "a#b#1": {"source": "a#b", "start": 0, "end": 1},
        "a#gone": PASSAGE,
        "b#1": PASSAGE,
        "a#text": {"source": ["a"], "start": 0, "end": 1},
    }
    assert former(stored, ["a#0"]) == ["a#gone"]
