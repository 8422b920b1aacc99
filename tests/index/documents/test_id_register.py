"""Ids of a build: duplicates are named, wherever the first one was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.index.documents import id_register
from tercet.index.documents.id_register import IdRegister
from tercet.index.errors import DuplicateDocumentError


def test_duplicates_are_named_within_a_batch_and_across() -> None:
    register = IdRegister()
    register.add([b"a", b"b"])
    with pytest.raises(DuplicateDocumentError, match="more than once: 'c'; give"):
        register.add([b"c", b"d", b"c"])
    with pytest.raises(DuplicateDocumentError, match="more than once: 'a', 'b'"):
        register.add([b"b", b"x", b"a"])
    assert len(register) == 2
    register.add([b"c", b"d", b"x"])
    register.add([])
    assert len(register) == 5


def test_many_duplicates_are_counted() -> None:
    register = IdRegister()
    register.add([b"%d" % number for number in range(12)])
    with pytest.raises(DuplicateDocumentError, match=r"'0', '1', '10', '11', '2', .*'7' and 2 more"):
        register.add([b"%d" % number for number in range(12)])


@settings(deadline=None)
@given(batches=st.lists(st.lists(st.integers(0, 60), max_size=8), max_size=15), recent=st.integers(1, 6))
def test_the_register_behaves_like_a_set(batches: list[list[int]], recent: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_register, "RECENT_LIMIT", recent)
        register, known = IdRegister(), set[int]()
        for batch in batches:
            if len(set(batch)) < len(batch) or known & set(batch):
                with pytest.raises(DuplicateDocumentError):
                    register.add([b"%d" % number for number in batch])
            else:
                register.add([b"%d" % number for number in batch])
                known |= set(batch)
            assert len(register) == len(known)
