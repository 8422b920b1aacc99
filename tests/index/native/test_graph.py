"""Walks over a drawn graph beside the same walk in plain Python."""

import heapq
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels

WIDTHS = np.array([0, 6, 9, 12])
LEVELS = len(WIDTHS) - 1

Array = npt.NDArray[Any]


def drawn(seed: int, nodes: int) -> tuple[Array, Array, Array, int, int]:
    """Vectors of whole numbers, whose products are exact and hardly ever equal; links, offsets, the node to
    begin with, and its level.
    """
    random = np.random.default_rng(seed)
    levels = random.integers(1, LEVELS + 1, nodes)
    offsets = np.concatenate([[0], np.cumsum(WIDTHS[levels])])
    links = np.full(offsets[-1], -1, np.int32)
    for node in range(nodes):
        for level in range(levels[node]):
            others = np.flatnonzero(levels > level)
            count = min(int(random.integers(WIDTHS[level + 1] - WIDTHS[level] + 1)), len(others))
            first = offsets[node] + WIDTHS[level]
            links[first : first + count] = random.choice(others, count, replace=False)
    entry = int(np.argmax(levels))
    return (
        random.integers(-999, 1_000, (nodes, 5)).astype(np.float16),
        links,
        offsets,
        entry,
        levels[entry] - 1,
    )


def walked(
    vectors: Array, links: Array, offsets: Array, entry: int, top: int, query: Array, effort: int
) -> Any:
    """What a walk keeps that goes to the nearest node known before it compares the neighbours of another."""
    scores = vectors.astype(np.float32) @ query

    def neighbours(node: int, level: int) -> list[int]:
        first = offsets[node]
        found: list[int] = links[first + WIDTHS[level] : first + WIDTHS[level + 1]].tolist()
        return list(itertools.takewhile(lambda link: link >= 0, found))

    node, former = entry, -1
    for level in range(top, 0, -1):
        former = -1
        while node != former:
            former = node
            node = max([node, *neighbours(node, level)], key=lambda each: scores[each])
    seen, best, near, ahead = {node}, [(scores[node], node)], list[Any](), node

    def take_nearest() -> int:
        if not near or (len(best) == effort and -near[0][0] < best[0][0]):
            return -1
        taken: int = heapq.heappop(near)[1]
        return taken

    while ahead >= 0:
        fresh = [other for other in neighbours(ahead, 0) if other not in seen]
        ahead = take_nearest()
        for other in fresh:
            seen.add(other)
            if len(best) < effort or scores[other] > best[0][0]:
                heapq.heappush(best, (scores[other], other))
                heapq.heappush(near, (-scores[other], other))
                if len(best) > effort:
                    heapq.heappop(best)
        ahead = take_nearest() if ahead < 0 else ahead
    return sorted((node, score) for score, node in best)


def record(vectors: Array, links: Array, offsets: Array) -> Any:
    return (kernels.dense_graph(vectors, links.view(np.uint8), offsets.view(np.uint8), WIDTHS),)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 40, 400])
@pytest.mark.parametrize("effort", [1, 5, 50, 500])
def test_a_walk_finds_what_one_in_plain_python_finds(nodes: int, effort: int) -> None:
    for seed in range(20):
        vectors, links, offsets, entry, top = drawn(seed, nodes)
        query = np.random.default_rng(-seed % 97).integers(-99, 100, 5).astype(np.float32)
        expected = walked(vectors, links, offsets, entry, top, query, effort)
        for name in kernels.AVAILABLE_INSTRUCTIONS:
            walk = kernels.kernels_of(name)["walk_graph"]
            rows, scores = walk(record(vectors, links, offsets), query, entry, top, effort)
            assert sorted(zip(rows.tolist(), scores.tolist(), strict=True)) == expected


def test_links_may_lie_anywhere() -> None:
    vectors, links, offsets, entry, top = drawn(1, 40)
    shifted = [np.frombuffer(b"." + each.tobytes(), np.uint8)[1:] for each in (links, offsets)]
    moved = (kernels.dense_graph(vectors, *shifted, WIDTHS),)
    query = np.ones(5, np.float32)
    assert kernels.walk_graph(moved, query, entry, top, 9)[0].tolist() == (
        kernels.walk_graph(record(vectors, links, offsets), query, entry, top, 9)[0].tolist()
    )


@pytest.mark.parametrize(
    ("link", "offset", "entry", "top", "message"),
    [
        (3, 0, 0, 0, "a link in what walk_graph reads is 3, outside of 0 up to 3"),
        (1, 13, 0, 0, "the offset of a node's links in what walk_graph reads is 13"),
        (1, 0, 3, 0, "the node to begin with in what walk_graph reads is 3"),
        (1, 0, 0, 3, "the level to begin with in what walk_graph reads is 3"),
    ],
)
def test_what_leads_nowhere_is_refused(link: int, offset: int, entry: int, top: int, message: str) -> None:
    links, offsets = np.full(18, -1, np.int32), np.array([offset, 6, 12, 18])
    links[0] = link
    vectors, query = np.zeros((3, 5), np.float16), np.zeros(5, np.float32)
    with pytest.raises(DamagedIndexError, match=message):
        kernels.walk_graph(record(vectors, links, offsets), query, entry, top, 2)
