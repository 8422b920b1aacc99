"""Fixtures of this folder's tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations

Windowed = tuple[list[Document], Representations, DocumentWindows]


@pytest.fixture
def two(plain_representations: Any) -> Windowed:
    """A document of three windows and one of a single window, in two dimensions.

    For the query of `three_query`, dense (1, 0), terms 1 (weight 2) and 2 (weight 1), token vectors (1, 0)
    and (0, 1), the windows of "book" by themselves have

    | window | dense | lexical | token vectors | sum |
    | 0 | 0 | 2 · 0.5 = 1 | (0 + 1) / 2 | 1.5 |
    | 1 | 1 | 0 | (1 + 0) / 2 | 1.5 |
    | 2 | 0.5 | 2 · 0.25 + 1 · 1 = 1.5 | (0.5 + 0.5) / 2 | 2.5 |

    and the book 1 + (2 · 0.5 + 1 · 1) + 0.5 = 3.5. "note" has 0.5 + 0 + 0.25 = 0.75.
    """
    documents = [
        Document("book", "one two three", "Numbers", {"year": 2001}),
        Document("note", "four", None, {"year": 2002}),
    ]
    encoded = plain_representations(
        [[0, 1], [1, 0], [0.5, 0.5], [0.5, 0]],
        [{1: 0.5, 4: 1.0}, {5: 3.0}, {1: 0.25, 2: 1.0}, {7: 1.0}],
        [[[0, 1]], [[1, 0]], [[0.5, 0.5]], [[0.5, 0]]],
    )
    spans = np.array([[0, 4], [4, 8], [8, 13], [0, 4]], np.int64)
    return documents, encoded, DocumentWindows(np.array([0, 3, 4], np.int64), spans)
