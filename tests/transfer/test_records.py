"""What leaves a snapshot, and in what parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tercet.index.documents.filters import parse_filter
from tercet.transfer.errors import TransferError
from tercet.transfer.records import DocumentLimits, stored_documents


@pytest.mark.parametrize("kind", ["plain", "windows"])
def test_all_documents_that_are_not_deleted_leave_in_bounded_parts(make: Any, kind: str) -> None:
    snapshot = make(kind).snapshot()
    parts = list(stored_documents(snapshot, documents=8, tokens=60))
    assert sum(map(len, parts)) == snapshot.documents == 57
    ids = {document.id for part in parts for document in part.documents}
    assert len(ids) == 57
    assert "new/0 é" in ids
    assert "d/7 é" not in ids
    for part in parts:
        assert len(part) <= 8
        assert part.colbert is not None
        assert len(part.colbert.vectors) <= 60 or len(part) == 1
        for row, document in enumerate(part.documents):
            stored = snapshot.stored(document.id)[1]
            assert stored is not None
            texts = part.encodings(row)
            assert np.array_equal(part.dense[texts.start : texts.stop], stored.dense)
            weights: dict[str, float] = {}
            for text in range(len(texts)):
                for term, weight in zip(*stored.sparse.row(text), strict=True):
                    weights[str(term)] = max(weights.get(str(term), 0.0), float(weight))
            assert part.terms(row) == weights
            assert stored.colbert is not None
            assert np.array_equal(part.token_vectors(row), stored.colbert.vectors)


def test_a_filter_says_which_documents_leave(make: Any) -> None:
    snapshot = make("plain").snapshot()
    latest = parse_filter({"gte": {"year": 2058}})
    parts = list(stored_documents(snapshot, 8, 60, latest))
    assert sorted(document.id for part in parts for document in part.documents) == ["d/58 é", "d/59 é"]
    with pytest.raises(TransferError, match="token vectors; X takes 0"):
        DocumentLimits(token_vectors=0).check(snapshot, "X", latest)
    DocumentLimits(token_vectors=0).check(snapshot, "X", parse_filter({"gte": {"year": 3000}}))


def test_a_document_beyond_a_limit_is_named_before_anything_is_written(make: Any) -> None:
    snapshot = make("plain").snapshot()
    DocumentLimits(part_bytes=1000, token_vectors=100).check(snapshot, "X")
    with pytest.raises(
        TransferError, match=r"document 'd/\d+ é' has \d+ token vectors; X takes 5 of a document"
    ):
        DocumentLimits(token_vectors=5).check(snapshot, "X")
    with pytest.raises(TransferError, match=r"document 'd/\d+ é' has \d+ bytes of text; X takes 100"):
        DocumentLimits(part_bytes=100).check(snapshot, "X")
