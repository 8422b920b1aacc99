"""Which pairs come into a batch together."""

import numpy as np
import pytest

from training.frozen.batches import neighbours_together


@pytest.mark.parametrize("count", [1, 3, 100])
def test_each_pair_comes_once_and_runs_of_neighbours_stay(count: int) -> None:
    pairs = np.arange(50, dtype=np.int64) * 2
    order = neighbours_together(pairs, count, np.random.default_rng(1))
    assert sorted(order.tolist()) == pairs.tolist()
    # Runs end at their last pair, so at most every `count`-th step, and at the two ends, is no neighbour's.
    breaks = np.count_nonzero(np.diff(order) != 2)
    assert breaks <= len(pairs) // count + 1
    assert count == 100 or (order != pairs).any()


def test_where_runs_begin_differs_from_epoch_to_epoch() -> None:
    pairs = np.arange(30, dtype=np.int64)
    generator = np.random.default_rng(1)
    epochs = [neighbours_together(pairs, 5, generator) for _ in range(8)]
    firsts = {int(pair) % 5 for order in epochs for pair in order[1:][np.diff(order) != 1]}
    assert len(firsts) > 1


def test_no_pairs_give_no_batch() -> None:
    assert len(neighbours_together(np.empty(0, np.int64), 4, np.random.default_rng(1))) == 0
