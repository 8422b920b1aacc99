"""What is known of terms follows from what servers told, whichever of them answers a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.cluster.router.term_states import COMBINATIONS, TermStates
from tercet.cluster.router.terms import KnownTerms
from tercet.index.bm25.query import WordCounts
from tercet.index.sparse.term_totals import TermTotals
from tercet.service.shard.records import CountChange, TermReport

TERMS = 4
ALL = np.arange(TERMS, dtype=np.int32)


def told(state: str, since: str | None, *counts: int, documents: int = 1) -> TermReport:
    """A shard's answer: what is added to n(t) of the first terms, and ten times that to M(t)."""
    numbers = np.array(counts, np.int64)
    terms = ALL[: len(counts)]
    return TermReport(state, state.upper(), documents, CountChange(since, terms, numbers, 10 * numbers))


def nothing(shards: int) -> KnownTerms:
    return KnownTerms.nothing(shards, TermTotals([], TERMS))


def counts_of(known: KnownTerms) -> list[int]:
    """n of all terms. The sums have to be those of the counts, as if they were counted anew."""
    assert known.totals is not None
    frequencies, masses = known.totals.counts()
    anew = TermTotals([], TERMS).changed(ALL, frequencies, masses)
    assert known.totals.sums == anew.sums
    counts: list[int] = frequencies.tolist()
    return counts


def test_what_is_told_leads_from_what_is_known() -> None:
    terms, servers = TermStates(nothing(2), [1, 1]), ["one", "two"]

    def after(began: KnownTerms, *answers: TermReport | None) -> KnownTerms | None:
        return terms.after(began, answers, servers)

    one = after(terms.at(servers), told("a", None, 3, documents=3), None)
    assert one is not None
    both = after(one, told("a", "a"), told("b", None, 2, documents=2))
    assert both is not None
    assert (both.states, both.version, both.documents) == (("a", "b"), "A,B", 5)
    assert counts_of(both)[0] == 5
    later = after(both, told("c", "a", 4), None)
    assert later is not None
    assert counts_of(later)[0] == 9
    assert counts_of(both)[0] == 5  # it stays as it was
    assert terms.at(servers) is later
    assert after(both, None, told("d", "x", 1)) is None  # of a state that is not known here
    assert after(both, None, told("d", None, 1)) is None  # a shard that begins anew


def test_servers_at_other_states_are_told_apart() -> None:
    terms = TermStates(nothing(2), [2, 1])
    first = terms.after(terms.nothing, [told("a", None, 3), told("x", None, 1)], ["one", "other"])
    assert first is not None
    assert terms.state_of(0, "two") is None
    assert terms.at(["two", "other"]) is first  # what the shard told, until the second server tells more
    second = terms.after(first, [told("b", None, 1, 7), told("x", "x")], ["two", "other"])
    assert second is not None
    assert counts_of(second) == [2, 7, 0, 0]
    first.words.keep(["tea"], WordCounts(1, 1, np.array([1], np.int64)))
    for _ in range(3):  # from one to the other nothing is asked, and words stay known
        assert terms.at(["one", "other"]) is first
        assert terms.at(["two", "other"]) is second
    assert first.words.of(["tea"]) is not None
    # The second has what the first one had, as it says; then they are one state.
    caught_up = terms.after(second, [told("a", "b", 2, -7), told("x", "x")], ["two", "other"])
    assert caught_up is first
    # A server of the first shard tells since its own state, while a search began at the other one's.
    moved = terms.after(second, [told("c", "a", 0, 0, 5), told("x", "x")], ["two", "other"])
    assert moved is not None
    assert counts_of(moved) == [4, 0, 5, 0]


@pytest.mark.slow
@given(
    writes=st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(0, 1), st.lists(st.integers(0, 3), min_size=TERMS, max_size=TERMS)
        ),
        max_size=25,
    ),
    reads=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=25, max_size=25),
)
def test_counts_are_those_of_the_servers_that_are_asked(
    writes: Sequence[tuple[int, int, list[int]]], reads: Sequence[tuple[int, int]]
) -> None:
    """Two shards of two servers; one of the four changes, and then any two are asked."""
    terms = TermStates(nothing(2), [2, 2])
    now = {
        (shard, server): (f"{shard}{server}", np.array([shard, server, 1, 2]))
        for shard in (0, 1)
        for server in (0, 1)
    }
    heard: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}

    def ask(*servers: int) -> KnownTerms:
        names = [f"{shard}-{server}" for shard, server in enumerate(servers)]
        began, answers = terms.at(names), []
        for shard, server in enumerate(servers):
            state, counts = now[shard, server]
            since = terms.state_of(shard, names[shard]) or began.states[shard]
            if since not in heard:
                since = None
            answers.append(told(state, since, *(counts - (0 if since is None else heard[since]))))
            heard[state] = counts
        found = terms.after(began, answers, names)
        assert found is not None
        return found

    for number, ((shard, server, counts), servers) in enumerate(zip(writes, reads, strict=False)):
        now[shard, server] = f"w{number}", np.array(counts)
        known = ask(*servers)
        assert counts_of(known) == sum(now[each][1] for each in enumerate(servers)).tolist()  # type: ignore[union-attr]
        assert len(terms._known) <= COMBINATIONS


def test_what_was_not_told_is_not_taken_for_nothing() -> None:
    terms = TermStates(nothing(1), [2])
    known = terms.after(terms.nothing, [told("a", None, 3)], ["one"])
    assert known is not None
    assert terms.after(known, [TermReport("b", "B", 1)], ["two"]) is None
    empty = terms.after(known, [told("b", None)], ["two"])
    assert empty is not None
    assert counts_of(empty) == [0, 0, 0, 0]
