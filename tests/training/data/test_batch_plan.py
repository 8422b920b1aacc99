"""Batches of pairs: which come together, in which order, and which passages are negatives of whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tercet.models.representations import offsets_of
from tercet.training.data.batch_plan import allowed_passages, pair_batch, plan_epoch
from tercet.training.data.pair_table import PairTable, RaggedRows, ScoredRows
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks
from tercet.training.settings.data import LengthGroup, PairBatches, PairSource

GROUPS = (LengthGroup(tokens=10, batch=4), LengthGroup(tokens=20, batch=2))


def ragged(rows: Sequence[Sequence[int]]) -> RaggedRows:
    return RaggedRows.pack([np.array(row, np.int64) for row in rows])


def table(lengths: Sequence[int]) -> PairTable:
    """Pair n has passage n of so many tokens as its positive."""
    offsets = offsets_of(np.array(lengths, np.int64))
    store = TokenStore(np.zeros(offsets[-1], np.int32), offsets)
    pairs = np.arange(len(lengths), dtype=np.int64)
    none = np.zeros(0, np.int64)
    rows = ragged([[n] for n in range(len(lengths))])
    source = PairSource(path="p", title="P", licence="CC0 1.0")
    nothing = ragged([[]] * len(lengths))
    scored = ScoredRows(nothing, np.zeros(0, np.float32))
    return PairTable(source, store, store, rows, nothing, pairs, none, none, scored)


TABLES = [table([5, 15] * 22), table([20] * 9)]  # 22 short and 22 long, 9 long


def plan(epoch: int = 0, seed: int = 1, devices: int = 1, **settings: Any) -> list[tuple[int, list[int]]]:
    found = plan_epoch(TABLES, PairBatches(groups=GROUPS, **settings), devices, seed, epoch)
    return [(source, pairs.tolist()) for source, pairs in found.batches]


def test_every_pair_comes_once_but_for_what_fills_no_batch() -> None:
    batches = plan()
    for source, lengths in ((0, 44), (1, 9)):
        pairs = [pair for number, batch in batches if number == source for pair in batch]
        assert len(set(pairs)) == len(pairs)
        assert set(pairs) <= set(range(lengths))
    assert len(batches) == 22 // 4 + 22 // 2 + 9 // 2
    assert sum(len(batch) for _, batch in batches) == 20 + 22 + 8


def test_a_batch_has_one_source_and_one_length() -> None:
    for source, batch in plan():
        lengths = TABLES[source].passage_tokens(np.array(batch))
        assert len(set(lengths.tolist())) == 1
        assert len(batch) == (4 if lengths[0] <= 10 else 2)


def test_several_devices_share_a_batch() -> None:
    assert {len(batch) for _, batch in plan(devices=3)} == {12, 6}


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    assert plan() == plan()
    assert plan() != plan(seed=2)
    assert plan() != plan(epoch=1)
    assert len(plan()) == len(plan(epoch=1))


def test_neighbours_come_together() -> None:
    long = [table([15] * 40)]
    found = plan_epoch(long, PairBatches(groups=(LengthGroup(tokens=20, batch=8),), neighbours=4), 1, 1, 0)
    for _, pairs in found.batches:
        first = pairs[::4]
        assert (first % 4 == 0).all()
        assert pairs.tolist() == [pair + n for pair in first for n in range(4)]


POSITIVES = ragged([[0], [1, 2], [2], [3]])
NEGATIVES = ragged([[4, 5, 6], [0, 7], [], [2, 4]])


def batch_of(count: int, ranks: Ranks = Ranks(), seed: int = 1) -> Any:  # noqa: B008  # frozen
    generator = np.random.default_rng(seed)
    return pair_batch(0, np.arange(4), POSITIVES, NEGATIVES, count, ranks, generator)


def test_a_batch_begins_with_a_positive_of_each_pair() -> None:
    for seed in range(20):
        batch = batch_of(7, seed=seed)
        own = batch.passages[:4].tolist()
        assert own[0] == 0
        assert own[1] in (1, 2)
        assert own[2:] == [2, 3]
        # All negatives of all pairs, each once, and none that is somebody's positive column already.
        assert batch.passages[4:].tolist() == sorted({0, 2, 4, 5, 6, 7} - set(own))
    assert {batch_of(7, seed=seed).passages[1] for seed in range(20)} == {1, 2}


def test_so_many_negatives_come_and_others_another_time() -> None:
    assert len(batch_of(0).passages) == 4
    found = {tuple(batch_of(1, seed=seed).passages[4:]) for seed in range(20)}
    assert len(found) > 1
    assert all(len(others) <= 3 for others in found)


def test_devices_take_their_shares_in_order() -> None:
    shares = [batch_of(7, Ranks(rank, 2)) for rank in range(2)]
    assert [share.pairs.tolist() for share in shares] == [[0, 1], [2, 3]]
    assert shares[0].passages[0] == 0
    assert shares[1].passages[:2].tolist() == [2, 3]


def test_another_positive_of_the_same_pair_is_no_negative_and_each_passage_counts_once() -> None:
    passages, pairs = np.array([0, 1, 2, 2, 5]), np.array([0, 1, 2])
    # Pair 1 has passages 1, its own here, and 2, twice in the batch. Pair 2 has passage 2.
    expected = [[1, 1, 1, 0, 1], [1, 1, 0, 0, 1], [1, 1, 1, 0, 1]]
    found = allowed_passages(POSITIVES, pairs, passages, np.array([0, 1, 2]))
    np.testing.assert_array_equal(found, np.array(expected, np.bool_))
    # Its own column is the later one, as where another device has the passage, too.
    expected[2] = [1, 1, 0, 1, 1]
    found = allowed_passages(POSITIVES, pairs, passages, np.array([0, 1, 3]))
    np.testing.assert_array_equal(found, np.array(expected, np.bool_))
