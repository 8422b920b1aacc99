"""The threads that help a search: one core each, every segment once, and failures that reach the caller."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest

from tercet.index.search.threads import DOCUMENTS_PER_THREAD, SegmentThreads

LARGE = [DOCUMENTS_PER_THREAD] * 6

Result = TypeVar("Result")


def run(threads: SegmentThreads, work: Callable[[int], Result], costs: Sequence[int]) -> list[Result]:
    """What a function gives for the place of each part."""
    return threads.run([partial(work, place) for place in range(len(costs))], costs)


def named(place: int) -> tuple[int, str]:
    return place, threading.current_thread().name


def test_each_segment_is_searched_once_and_answers_keep_their_order() -> None:
    searched: list[int] = []

    def work(place: int) -> int:
        searched.append(place)
        return place * place

    assert run(SegmentThreads(3), work, LARGE) == [0, 1, 4, 9, 16, 25]
    assert sorted(searched) == [0, 1, 2, 3, 4, 5]


def test_as_many_threads_search_at_a_time_as_there_are_cores() -> None:
    together = threading.Barrier(3)  # passed only where three are in it at once

    def work(_: int) -> int:
        return together.wait(10)

    assert sorted(run(SegmentThreads(3), work, LARGE[:3])) == [0, 1, 2]


def test_a_search_beside_others_has_no_helper() -> None:
    threads, inside, leave = SegmentThreads(2), threading.Barrier(2), threading.Event()

    def other(_: int) -> None:
        inside.wait(10)
        leave.wait(10)

    first = threading.Thread(target=run, args=(threads, other, LARGE[:1]))
    first.start()
    inside.wait(10)
    own = threading.current_thread().name
    assert [name for _, name in run(threads, named, LARGE)] == [own] * 6
    leave.set()
    first.join(10)
    assert threads._free == 2


def test_small_segments_are_left_to_the_calling_thread() -> None:
    own = threading.current_thread().name
    small = [DOCUMENTS_PER_THREAD // 6 - 1] * 6
    assert [name for _, name in run(SegmentThreads(2), named, small)] == [own] * 6


def test_no_segments_give_nothing() -> None:
    assert run(SegmentThreads(2), named, []) == []


@pytest.mark.parametrize("cores", [1, 2])
def test_a_failure_reaches_the_caller_and_gives_the_cores_back(cores: int) -> None:
    threads = SegmentThreads(cores)

    def work(place: int) -> None:
        if place == 3:
            raise ValueError(f"segment {place}")

    with pytest.raises(ValueError, match="segment 3"):
        run(threads, work, LARGE)
    assert threads._free == cores
