"""The threads that help a search: one core each, every segment once, and failures that reach the caller."""

import threading

import pytest

from tercet.index.search.threads import DOCUMENTS_PER_THREAD, SegmentThreads, in_parts

LARGE = [DOCUMENTS_PER_THREAD] * 6


def named(place: int) -> tuple[int, str]:
    return place, threading.current_thread().name


def test_each_segment_is_searched_once_and_answers_keep_their_order() -> None:
    searched: list[int] = []

    def work(place: int) -> int:
        searched.append(place)
        return place * place

    assert SegmentThreads(3).map(work, LARGE) == [0, 1, 4, 9, 16, 25]
    assert sorted(searched) == [0, 1, 2, 3, 4, 5]


def test_as_many_threads_search_at_a_time_as_there_are_cores() -> None:
    together = threading.Barrier(3)  # passed only where three are in it at once

    def work(_: int) -> int:
        return together.wait(10)

    assert sorted(SegmentThreads(3).map(work, LARGE[:3])) == [0, 1, 2]


def test_a_search_beside_others_has_no_helper() -> None:
    threads, inside, leave = SegmentThreads(2), threading.Barrier(2), threading.Event()

    def other(_: int) -> None:
        inside.wait(10)
        leave.wait(10)

    first = threading.Thread(target=threads.map, args=(other, LARGE[:1]))
    first.start()
    inside.wait(10)
    own = threading.current_thread().name
    assert [name for _, name in threads.map(named, LARGE)] == [own] * 6
    leave.set()
    first.join(10)
    assert threads._free == 2


def test_small_segments_are_left_to_the_calling_thread() -> None:
    own = threading.current_thread().name
    small = [DOCUMENTS_PER_THREAD // 6 - 1] * 6
    assert [name for _, name in SegmentThreads(2).map(named, small)] == [own] * 6


def test_no_segments_give_nothing() -> None:
    assert SegmentThreads(2).map(named, []) == []


@pytest.mark.parametrize("cores", [1, 2])
def test_a_failure_reaches_the_caller_and_gives_the_cores_back(cores: int) -> None:
    threads = SegmentThreads(cores)

    def work(place: int) -> None:
        if place == 3:
            raise ValueError(f"segment {place}")

    with pytest.raises(ValueError, match="segment 3"):
        threads.map(work, LARGE)
    assert threads._free == cores


class Parted:
    """Finds the squares below a number, one a part."""

    def __init__(self, below: int) -> None:
        self.costs = [DOCUMENTS_PER_THREAD] * below

    def part(self, number: int) -> int:
        return number * number


def test_each_search_gets_what_its_own_parts_find() -> None:
    assert in_parts([Parted(3), Parted(0), Parted(2)]) == [[0, 1, 4], [], [0, 1]]
    assert in_parts([]) == []
