"""What follows from a query before anything is searched: how much each side proposes, how much is enough."""

from typing import Any

import pytest

from tercet.index.candidates import CandidateLimits, Cursor, Page, Weights
from tercet.index.documents.boosts import FilterBoost
from tercet.index.documents.filters import Exists
from tercet.index.search.snapshot_query import SnapshotQuery
from tests.index.conftest import random_representations

DENSE = Weights(1, 0, 0)
BEHIND = Page(after=Cursor(0.5, "a"))
BOOSTS = (FilterBoost(Exists("year"), 0.5),)


def test_documents_that_are_no_candidates_leave_room_for_others() -> None:
    asked = SnapshotQuery(
        random_representations(1, 1), candidates=CandidateLimits(5, 0, 7), without=("a", "b")
    )
    assert asked.limits == CandidateLimits(7, 0, 0)  # BM25 has no weight


@pytest.mark.parametrize(
    ("options", "nearest", "wanted"),
    [
        ({}, None, 13),
        ({"weights": DENSE}, 13, 13),
        ({"weights": DENSE, "without": ("a", "b")}, 15, 13),
        ({"weights": DENSE, "boosts": BOOSTS}, None, 13),
        ({"weights": DENSE, "group_by": "kind"}, None, None),
        ({"weights": DENSE, "page": BEHIND}, None, None),
        ({"weights": DENSE, "fusion": "rrf"}, 13, None),
    ],
)
def test_how_many_are_enough(options: dict[str, Any], nearest: int | None, wanted: int | None) -> None:
    asked = SnapshotQuery(random_representations(1, 1), **{"page": Page(offset=3), **options})
    assert (asked.nearest, asked.wanted) == (nearest, wanted)
