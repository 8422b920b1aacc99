"""Representations of a batch's documents, brought along or encoded, in the order of the documents."""

import numpy as np

from tercet.models.representations import Representations, SparseRows, TokenVectors
from tercet.service.documents.batch import EncodedDocuments, joined


def texts(*numbers: int) -> Representations:
    """Of each number a text: its dense vector, its one term and its one token vector are this number."""
    values = np.array(numbers, np.float32)
    indptr = np.arange(len(numbers) + 1)
    return Representations(
        np.array(numbers, np.int64),
        np.zeros(len(numbers), np.bool_),
        values[:, None],
        SparseRows(indptr, np.array(numbers, np.int32), values),
        TokenVectors(values[:, None], indptr),
    )


def test_parts_are_joined_in_the_order_of_the_documents() -> None:
    """Documents 1 and 3 have two windows and one; 0 and 2 were encoded apart, 2 in three windows."""
    ready = EncodedDocuments(
        np.array([1, 3]), texts(10, 11, 30), np.array([0, 2, 3]), np.array([[0, 5], [4, 9], [0, 7]])
    )
    encoded = EncodedDocuments(
        np.array([0, 2]),
        texts(1, 20, 21, 22),
        np.array([0, 1, 4]),
        np.array([[0, 1], [0, 2], [1, 3], [2, 4]]),
    )
    whole = joined([ready, encoded])
    expected = [1, 10, 11, 20, 21, 22, 30]
    assert whole.positions.tolist() == [0, 1, 2, 3]
    assert whole.offsets.tolist() == [0, 1, 3, 6, 7]
    assert whole.spans.tolist() == [[0, 1], [0, 5], [4, 9], [0, 2], [1, 3], [2, 4], [0, 7]]
    representations = whole.representations
    assert representations.tokens.tolist() == expected
    assert representations.dense is not None
    assert representations.dense[:, 0].tolist() == expected
    assert representations.sparse is not None
    assert representations.sparse.token_ids.tolist() == expected
    assert representations.colbert is not None
    assert representations.colbert.vectors[:, 0].tolist() == expected


def test_one_part_out_of_order_is_put_in_order() -> None:
    only = EncodedDocuments(np.array([1, 0]), texts(1, 0), np.arange(3), np.array([[0, 1], [0, 2]]))
    whole = joined([only])
    assert (whole.positions.tolist(), whole.representations.tokens.tolist()) == ([0, 1], [0, 1])
    assert whole.spans.tolist() == [[0, 2], [0, 1]]
