"""Pieces of mapped files: where they lie, and that the disk is asked for those that are not in memory."""

from __future__ import annotations

import os
import tempfile
import time
from mmap import PAGESIZE
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Weights
from tercet.index.files import pieces as pieces_module
from tercet.index.files.pieces import LOOKS, DiskWatch, Pieces, read_ahead

PAGES = 64


@pytest.fixture
def cold() -> np.ndarray:
    """A mapped array of one row a page, none in memory: its file is where those of other tests may not be."""
    rows = np.arange(PAGES * PAGESIZE, dtype=np.int64).astype(np.uint8).reshape(PAGES, PAGESIZE)
    with tempfile.NamedTemporaryFile() as file:
        file.write(rows.tobytes())
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        mapped: np.ndarray = np.memmap(file.name, np.uint8, "r", shape=rows.shape).view(np.ndarray)
    if all_of(mapped).in_memory():
        pytest.skip("this file system keeps all in memory, or does not tell")
    return mapped


def all_of(array: np.ndarray) -> Pieces:
    rows = np.arange(len(array))
    return Pieces.of(array, rows, rows + 1)


def test_where_rows_lie() -> None:
    array = np.zeros((10, 3), np.float16)
    address = array.__array_interface__["data"][0]
    found = Pieces.of(array, np.array([0, 4]), np.array([2, 4]))
    assert (found.starts - address).tolist() == [0, 24]
    assert (found.ends - address).tolist() == [12, 24]
    both = found.joined_with(found)
    assert both.starts.tolist() == found.starts.tolist() * 2


def test_stretches_of_pages_have_each_page_once() -> None:
    page = PAGESIZE
    starts = np.array([5 * page + 1, 0, 10, 2 * page - 1, 9 * page])
    ends = np.array([5 * page + 2, 8, page + 1, 2 * page, 9 * page])  # the last is empty
    assert Pieces(starts, ends)._in_pages() == ([0, 5 * page], [2 * page, 6 * page])
    nothing = np.empty(0, np.int64)
    assert Pieces(nothing, nothing)._in_pages() == ([], [])


def test_what_is_asked_for_comes_without_being_read(cold: np.ndarray) -> None:
    wanted = np.array([3, 20, 21, 60])
    some = Pieces.of(cold, wanted, wanted + 1)
    some.ask_for()
    until = time.monotonic() + 30
    while not some.in_memory() and time.monotonic() < until:
        time.sleep(0.01)
    assert some.in_memory()
    assert not all_of(cold).in_memory()


def test_nothing_is_asked_for_where_all_is_in_memory(
    cold: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[int]] = []
    monkeypatch.setattr(Pieces, "ask_for", lambda some: asked.append(some.starts.tolist()))
    monkeypatch.setattr(DiskWatch, "waits", lambda _: True)
    segments, rows = np.repeat(np.arange(10), 6), np.arange(60)

    def pieces_of(_: int, some: np.ndarray) -> Pieces:
        return Pieces.of(cold, some, some + 1)

    read_ahead(segments, rows, pieces_of)
    together = [start for some in asked for start in some]
    assert together == pieces_of(0, rows).starts.tolist(), "of however many segments"
    read_ahead(segments[:3], rows[:3], pieces_of)
    assert len(asked) == 10, "few rows are read as they come"
    assert cold.sum() > 0  # which reads all
    read_ahead(segments, rows, pieces_of)
    assert len(asked) == 10


def test_pieces_are_looked_at_from_the_first_waits_on(cold: np.ndarray) -> None:
    watch = DiskWatch()
    watch.waits()  # which may count what was before
    for _ in range(LOOKS):
        watch.saw(all_in_memory=True)
    assert not watch.waits()
    assert cold[::8].sum() > 0  # a system reads some pages more than it has to, but not all
    if watch.waits():  # else this machine's disk is memory
        for _ in range(LOOKS - 1):
            watch.saw(all_in_memory=True)
        assert watch.waits()
        watch.saw(all_in_memory=True)
        assert not watch.waits()
        watch.saw(all_in_memory=False)
        assert watch.waits()


def test_a_search_asks_for_all_that_it_reads_of_its_candidates(
    random_corpus: Any, random_texts: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, query = build(random_corpus(300, 5), bm25=True).snapshot(), random_texts(1, 6)
    warm = snapshot.search(query, text="text 1", weights=Weights(1, 1, 1, 1)).hits
    asked: list[Pieces] = []
    monkeypatch.setattr(DiskWatch, "waits", lambda _: True)
    monkeypatch.setattr(Pieces, "in_memory", lambda _: False)
    monkeypatch.setattr(Pieces, "ask_for", lambda some: asked.append(some))
    assert snapshot.search(query, text="text 1", weights=Weights(1, 1, 1, 1)).hits == warm
    (segment,) = snapshot._opened()
    assert segment.token_vectors is not None
    assert segment.bm25 is not None
    read = (
        segment.vectors,
        segment.forward.weights,
        segment.bm25.forward.weights,
        segment.token_vectors.codes,
    )
    for array in read:
        first = array.__array_interface__["data"][0]
        inside = [((each.starts >= first) & (each.ends <= first + array.nbytes)).sum() for each in asked]
        assert max(inside) >= 200


def test_a_machine_that_does_not_tell_is_taken_to_have_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        @staticmethod
        def mincore(*_: object) -> int:
            return -1

    monkeypatch.setattr(pieces_module, "libc", lambda: Refusing)
    assert all_of(np.zeros((2, 3))).in_memory()
