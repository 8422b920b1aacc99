"""The one check of representations: each rule by a record of two texts that breaks it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tercet.models.encoder import EncoderInfo, encode, encode_tokens
from tercet.models.errors import UnsoundRepresentationsError
from tercet.models.representations import OUTPUTS, Representations, Route, SparseRows, TokenVectors
from tercet.models.soundness import Expected, Fault, as_token_ids, faults, first_fault

SPARSE = SparseRows(np.array([0, 2, 3]), np.array([1, 3, 2], np.int32), np.array([0.5, 1, 2], np.float32))
COLBERT = TokenVectors(np.eye(3, dtype=np.float32), np.array([0, 1, 3]))
SOUND = Representations(
    np.array([2, 3]),
    np.array([False, True]),
    np.array([[1, 0], [0.6, 0.8]], np.float32),
    SPARSE,
    COLBERT,
    (None, Route(("a", None), (0.25, 0.75))),
)


@dataclass(frozen=True)
class Sizes:
    name: str = "m"
    dense_dimension: int = 2
    colbert_dimension: int = 3
    vocabulary_size: int = 4


EXPECTED = Expected(2, OUTPUTS, Sizes(), max_length=3)


def changed(array: Any, place: Any, value: Any) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


def sparse(**changes: Any) -> Representations:
    return replace(SOUND, sparse=replace(SPARSE, **changes))


def colbert(**changes: Any) -> Representations:
    return replace(SOUND, colbert=replace(COLBERT, **changes))


def vectors(value: float) -> Any:
    return changed(COLBERT.vectors, (1, 1), value)


@pytest.mark.parametrize(
    ("found", "array", "text"),
    [
        (replace(SOUND, tokens=np.array([2])), "tokens", None),
        (replace(SOUND, tokens=np.array([2.0, 3.0])), "tokens", None),
        (replace(SOUND, tokens=np.array([2, -1])), "tokens", 1),
        (replace(SOUND, tokens=np.array([4, 3])), "tokens", 0),
        (replace(SOUND, truncated=np.array([0, 1])), "truncated", None),
        (replace(SOUND, truncated=np.array([True] * 3)), "truncated", None),
        (replace(SOUND, dense=None), "dense", None),
        (replace(SOUND, dense=SOUND.dense[:1]), "dense", None),
        (replace(SOUND, dense=SOUND.dense[:, :1]), "dense", None),
        (replace(SOUND, dense=SOUND.dense[0]), "dense", None),
        (replace(SOUND, dense=SOUND.dense.astype(np.float64)), "dense", None),
        (replace(SOUND, dense=SOUND.dense * 7), "dense", 0),
        (replace(SOUND, dense=changed(SOUND.dense, 1, 0)), "dense", 1),
        (replace(SOUND, dense=changed(SOUND.dense, (1, 1), np.nan)), "dense", 1),
        (replace(SOUND, dense=changed(SOUND.dense, (1, 1), np.inf)), "dense", 1),
        (replace(SOUND, dense=changed(SOUND.dense, (1, 1), 3e38)), "dense", 1),
        (replace(SOUND, dense=SOUND.dense * np.float32(1.02)), "dense", 0),
        (replace(SOUND, sparse=None), "sparse", None),
        (sparse(indptr=np.array([0, 2])), "sparse_indptr", None),
        (sparse(indptr=np.array([0, 2, 4])), "sparse_indptr", None),
        (sparse(indptr=np.array([1, 2, 3])), "sparse_indptr", None),
        (sparse(indptr=np.array([0, 4, 3])), "sparse_indptr", None),
        (sparse(indptr=np.array([0, 2, 3], np.int32)), "sparse_indptr", None),
        (sparse(token_ids=SPARSE.token_ids[:2]), "sparse_weights", None),
        (sparse(token_ids=SPARSE.token_ids.astype(np.int64)), "sparse_token_ids", None),
        (sparse(token_ids=SPARSE.token_ids[:, None]), "sparse_token_ids", None),
        (sparse(token_ids=changed(SPARSE.token_ids, 2, 4)), "sparse_token_ids", 1),
        (sparse(token_ids=changed(SPARSE.token_ids, 0, -1)), "sparse_token_ids", 0),
        (sparse(token_ids=changed(SPARSE.token_ids, 0, 3)), "sparse_token_ids", 0),
        (sparse(weights=SPARSE.weights.astype(np.float16)), "sparse_weights", None),
        *((sparse(weights=changed(SPARSE.weights, 2, bad)), "sparse_weights", 1) for bad in (-1, 0, 2e4)),
        *((sparse(weights=changed(SPARSE.weights, 2, bad)), "sparse_weights", 1) for bad in (np.nan, np.inf)),
        (replace(SOUND, colbert=None), "colbert", None),
        (colbert(vectors=COLBERT.vectors[:, :2]), "colbert", None),
        (colbert(vectors=COLBERT.vectors[:2]), "colbert_offsets", None),
        (colbert(offsets=np.array([0, 3])), "colbert_offsets", None),
        (colbert(offsets=np.array([0, 4, 3])), "colbert_offsets", None),
        (colbert(offsets=np.array([0, 3, 3])), "colbert", 0),  # three vectors for two tokens
        *((colbert(vectors=vectors(bad)), "colbert", 1) for bad in (7, 0, np.nan, np.inf)),
        (replace(SOUND, routes=(None,)), "routes", None),
        (replace(SOUND, routes=(None, Route(("a", "b"), (0.5, 0.6)))), "routes", 1),
        (replace(SOUND, routes=(None, Route(("a",), (np.nan,)))), "routes", 1),
        (replace(SOUND, routes=(Route((), ()), None)), "routes", 0),
        (replace(SOUND, routes=(Route((5,), (1.0,)), None)), "routes", 0),  # type: ignore[arg-type]
    ],
)
def test_each_fault_is_named(found: Representations, array: str, text: int | None) -> None:
    fault = first_fault(found, EXPECTED)
    assert fault is not None
    assert (fault.array, fault.text) == (array, text), str(fault)


def test_what_is_sound_is_let_through() -> None:
    assert list(faults(SOUND, EXPECTED)) == []
    nearly = replace(SOUND, dense=SOUND.dense * np.float32(1.009))
    assert first_fault(nearly, EXPECTED) is None
    nothing = SOUND.take(np.zeros(0, np.int64))
    assert first_fault(replace(nothing, routes=None), Expected(0, OUTPUTS, Sizes(), 3)) is None
    assert first_fault(SOUND.keep(["dense"]), Expected(2, ["dense"], Sizes(), 3)) is None


def test_a_side_that_was_not_asked_for_is_a_fault() -> None:
    """Joined with answers that lack it, it would belong to other texts."""
    assert first_fault(SOUND, Expected(2, ["dense"], Sizes(), 3)) == Fault("sparse", "was not asked for")


def test_a_query_may_have_any_length_but_no_value_beyond_all() -> None:
    expected = Expected(2, OUTPUTS, Sizes(), unit=False)
    assert first_fault(replace(SOUND, dense=SOUND.dense * 7), expected) is None
    for bad in (1.1e4, np.nan, np.inf):
        fault = first_fault(replace(SOUND, dense=changed(SOUND.dense, (1, 0), bad)), expected)
        assert (fault and fault.array, fault and fault.text) == ("dense", 1)


def test_all_texts_at_fault_are_given() -> None:
    found = list(faults(replace(SOUND, dense=SOUND.dense * 7), EXPECTED))
    assert [fault.text for fault in found] == [0, 1]
    assert str(found[1]) == "dense of text 1 has a vector of length 7; give unit vectors, as /embed does"


def test_ids_that_do_not_fit_are_in_no_vocabulary() -> None:
    ids = as_token_ids(np.array([5, -7, 2**31, 2**32 + 5]))
    assert (ids.tolist(), ids.dtype) == ([5, -1, -1, -1], np.int32)


def test_what_an_encoder_of_this_process_makes_is_checked(tiny: Any) -> None:
    class Broken(type(tiny)):  # type: ignore[misc]
        def encode_tokens(self, *args: Any) -> Representations:
            found = super().encode_tokens(*args)
            return replace(found, dense=found.dense * np.float32(np.nan))

    with pytest.raises(UnsoundRepresentationsError, match=r"tiny made .* dense of text 0"):
        encode(Broken(), ["tea"])
    batch = tiny.tokenizer.tokenize(["tea", "hot water"])
    assert len(encode_tokens(tiny, batch)) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fingerprint", None),
        ("fingerprint", ""),
        ("name", 7),
        ("dense_dimension", -1),
        ("dense_dimension", "8"),
        ("colbert_dimension", True),
        ("vocabulary_size", 2**31),
        ("max_length", -1),
        ("max_length", 32.0),
        ("lexical", "loud"),
        ("adapter", 5),
    ],
)
def test_what_another_process_says_of_its_encoder_is_checked(tiny: Any, name: str, value: Any) -> None:
    fields: Sequence[str] = EncoderInfo.__dataclass_fields__.keys()
    values = {field: getattr(tiny.info, field) for field in fields}
    assert EncoderInfo.from_json(values) == tiny.info
    with pytest.raises(ValueError, match=name):
        EncoderInfo.from_json({**values, name: value})
