"""Word embeddings of new pieces, from the English word embeddings that they are aligned with."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from scipy import sparse

from models.representations import Float32

# English tokens below this share of a piece's best one are noise of the alignment.
LEAST_SHARE = 0.1
MOST_TOKENS = 8
# A fallback counts as much as so many alignments.
FALLBACK_WEIGHT = 0.3


def aligned_table(counts: Any, english: Float32, fallback: Float32) -> Float32:
    """Embeddings float32[F, D]: means of English ones by how often they are aligned, of the norm of those.

    counts: csr float32[F, E], expected alignments; english: float32[E, D]; fallback: float32[F, D], what a
    piece without alignments gets, and others a little of.
    """
    weights = sharpened(counts)
    totals = np.asarray(weights.sum(axis=1)).ravel()
    norms = np.linalg.norm(english, axis=1)
    mixed = weights @ english + FALLBACK_WEIGHT * fallback
    wanted = weights @ norms + FALLBACK_WEIGHT * np.linalg.norm(fallback, axis=1)
    lengths = np.linalg.norm(mixed, axis=1)
    scale = wanted / (totals + FALLBACK_WEIGHT) / np.maximum(lengths, 1e-9)
    return np.asarray(mixed * scale[:, None], np.float32)


def sharpened(counts: Any) -> Any:
    """The best MOST_TOKENS alignments of each row with at least LEAST_SHARE of the best one."""
    rows = []
    for row in range(counts.shape[0]):
        low, high = counts.indptr[row], counts.indptr[row + 1]
        values, columns = counts.data[low:high], counts.indices[low:high]
        if len(values):
            order = np.argsort(-values)[:MOST_TOKENS]
            order = order[values[order] >= LEAST_SHARE * values[order[0]]]
            values, columns = values[order], columns[order]
        rows.append((values, columns))
    data = np.concatenate([values for values, _ in rows])
    indices = np.concatenate([columns for _, columns in rows])
    starts = np.cumsum([0, *(len(values) for values, _ in rows)])
    return sparse.csr_matrix((data, indices, starts), shape=counts.shape)


def prefix_neighbours(pieces: list[str], known: Any, least: int = 4, share: float = 0.6) -> list[list[int]]:
    """For each piece the known ones that begin alike, most of them other forms of the same word.

    known: bool[F], the pieces that may be neighbours; least, share: characters, and part of the piece, that
    both must have in common. At most three neighbours in alphabetical order to either side count.
    """
    order = sorted((piece, row) for row, piece in enumerate(pieces) if known[row])
    words = [piece for piece, _ in order]
    found = []
    for row, piece in enumerate(pieces):
        place = bisect_left(words, piece)
        need = max(least, round(share * len(piece))) if len(piece) >= least else len(piece) + 1
        near = order[max(0, place - 3) : place + 4]
        found.append([other for word, other in near if other != row and word[:need] == piece[:need]])
    return found
