"""Token ids written as texts come: what is taken equals tokenizing directly."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tercet.models.representations import TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.token_store import TEXTS_AT_ONCE, TokenWriter


@pytest.mark.parametrize("count", [1, TEXTS_AT_ONCE, 2 * TEXTS_AT_ONCE + 7])
def test_taken_texts_equal_tokenizing_directly(tmp_path: Path, tokenizer: Tokenizer, count: int) -> None:
    draw = random.Random(1)
    texts = [" ".join(f"word{draw.randrange(40)}" for _ in range(draw.randint(0, 12))) for _ in range(count)]
    tokenize = partial(tokenizer.tokenize, input_type="document", max_length=8)
    calls = []

    def counted(block: list[str]) -> TokenBatch:
        calls.append(len(block))
        return tokenize(block)

    with TokenWriter(tmp_path / "texts.tokens", counted) as writer:
        for text in texts:
            writer.add(text)
        store = writer.store()
    assert max(calls) <= TEXTS_AT_ONCE
    assert len(store) == count
    rows = np.random.default_rng(2).permutation(count).astype(np.int64)
    direct = tokenize([texts[row] for row in rows])
    taken = store.take(rows)
    np.testing.assert_array_equal(taken.token_ids, direct.token_ids)
    np.testing.assert_array_equal(taken.offsets, direct.offsets)
    np.testing.assert_array_equal(store.lengths[rows], direct.lengths)
    assert len(store.take(rows[:0])) == 0
    assert (store.take(rows[[0, 0]]).lengths == store.lengths[rows[0]]).all()


def test_a_store_without_texts(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with TokenWriter(tmp_path / "texts.tokens", tokenizer.tokenize) as writer:
        store = writer.store()
    assert len(store) == 0
    assert len(store.take(np.zeros(0, np.int64))) == 0
