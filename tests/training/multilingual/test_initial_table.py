"""Embeddings of new pieces from those of English tokens."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from training.multilingual.initial_table import FALLBACK_WEIGHT, aligned_table, prefix_neighbours, sharpened

ENGLISH = np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], np.float32)


def test_a_piece_is_the_mean_of_what_it_is_aligned_with() -> None:
    counts = sparse.csr_matrix(np.array([[30.0, 30.0, 0.0], [0.0, 0.0, 0.0]], np.float32))
    fallback = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)
    table = aligned_table(counts, ENGLISH, fallback)
    assert table[0, 0] == table[0, 1]
    # Norms are those of the English rows, not of their mean, which is shorter.
    np.testing.assert_allclose(np.linalg.norm(table[0]), 2 * 60 / (60 + FALLBACK_WEIGHT), rtol=1e-5)
    np.testing.assert_allclose(table[1], fallback[1], rtol=1e-5)  # nothing is known of it


def test_rare_alignments_are_noise() -> None:
    counts = sparse.csr_matrix(np.array([[10.0, 0.9, 1.0]], np.float32))
    assert sharpened(counts).toarray().tolist() == [[10.0, 0.0, 1.0]]


def test_neighbours_begin_alike() -> None:
    pieces = ["maison", "maisons", "maire", "mai"]
    known = np.array([True, False, True, True])
    assert prefix_neighbours(pieces, known) == [[], [0], [], []]
