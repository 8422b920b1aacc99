"""Word alignment by hand: das Haus, das Buch, ein Buch."""

from __future__ import annotations

import numpy as np

from training.multilingual.align import packed
from training.multilingual.alignment import expected_counts

DAS, HAUS, BUCH, EIN = 1, 2, 3, 4  # 0 is no word
THE, HOUSE, BOOK, A = range(4)


def test_words_find_their_translations() -> None:
    source = packed([[0, DAS, HAUS], [0, DAS, BUCH], [0, BUCH, EIN]])
    target = packed([[THE, HOUSE], [THE, BOOK], [BOOK, A]])
    counts = expected_counts(source, target, (5, 4), iterations=30).toarray()
    assert counts.sum() == np.float32(6)  # every English token comes from somewhere
    assert counts[DAS].argmax() == THE
    assert counts[HAUS].argmax() == HOUSE
    assert counts[BUCH].argmax() == BOOK
    assert counts[EIN].argmax() == A


def test_the_first_pass_shares_alike() -> None:
    counts = expected_counts(packed([[0, 1]]), packed([[0, 1]]), (2, 2), iterations=1).toarray()
    np.testing.assert_allclose(counts, [[0.5, 0.5], [0.5, 0.5]])
