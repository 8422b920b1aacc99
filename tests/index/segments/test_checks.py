"""Batches: everything that cannot be stored is refused before anything is written."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.documents.fields import ScalarColumn
from tercet.index.errors import InvalidDocumentError
from tercet.index.segments.checks import check_batch


def with_value(array: Any, place: Any, value: float) -> Any:
    """A copy of the array with one value changed."""
    copy = array.copy()
    copy[place] = value
    return copy


def altered(encoded: Any, part: str, **changes: Any) -> Any:
    """The representations with some arrays of one part replaced."""
    return dataclasses.replace(encoded, **{part: dataclasses.replace(getattr(encoded, part), **changes)})


def test_good_batches_are_taken_apart_and_cut(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    batch = check_batch(documents, encoded, make_settings(encoded, "demo", fields={"year": "integer"}))
    assert batch.dense.dtype == np.float16
    assert batch.ids.take(np.arange(3)) == [b"a", b"b", b"c"]
    year = batch.columns["year"]
    assert isinstance(year, ScalarColumn)
    assert (year.values.tolist(), year.present.tolist()) == ([2020, 2021, 0], [True, True, False])
    assert batch.span(0, 3) is batch
    part = batch.span(1, 3)
    assert part.ids.take(np.arange(2)) == [b"b", b"c"]
    assert part.sparse.indptr.tolist() == [0, 1, 3]
    assert part.tokens is not None
    assert part.tokens.offsets.tolist() == [0, 2, 3]


def test_codec_none_takes_documents_without_token_vectors(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    settings = make_settings(encoded, "demo", token_codec="none")
    assert check_batch(documents, dataclasses.replace(encoded, colbert=None), settings).tokens is None
    assert check_batch(documents, encoded, settings).tokens is None


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ("dense", "dense vectors are missing"),
        ("sparse", "sparse weights are missing"),
        ("colbert", "token vectors are missing"),
    ],
)
def test_every_output_is_needed(three: Any, make_settings: Any, part: str, problem: str) -> None:
    documents, encoded = three
    with pytest.raises(InvalidDocumentError, match=problem):
        check_batch(documents, dataclasses.replace(encoded, **{part: None}), make_settings(encoded, "demo"))


def test_each_document_has_one_representation(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    with pytest.raises(InvalidDocumentError, match="2 documents came with 3 representations"):
        check_batch(documents[:2], encoded, make_settings(encoded, "demo"))


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ((1, 0), np.nan, "'b': a dense value is not finite"),
        ((2, 1), 70_000, "'c': a dense value is not finite in float16"),
        ((0, 1), -np.inf, "'a': a dense value is not finite"),
    ],
)
def test_dense_values_are_finite(
    three: Any, make_settings: Any, place: Any, value: float, problem: str
) -> None:
    documents, encoded = three
    bad = dataclasses.replace(encoded, dense=with_value(encoded.dense, place, value))
    with pytest.raises(InvalidDocumentError, match=problem):
        check_batch(documents, bad, make_settings(encoded, "demo"))


def test_dense_vectors_have_the_dimension(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    bad = dataclasses.replace(encoded, dense=encoded.dense[:, :1])
    with pytest.raises(InvalidDocumentError, match=r"shape \(3, 1\); the collection needs \(3, 2\)"):
        check_batch(documents, bad, make_settings(encoded, "demo"))


@pytest.mark.parametrize(
    ("array", "place", "value", "problem"),
    [
        ("weights", 2, 0, "'b': a sparse weight is not finite and above 0"),
        ("weights", 0, np.inf, "'a': a sparse weight"),
        ("weights", 4, np.nan, "'c': a sparse weight"),
        ("token_ids", 2, 60, "'b': a sparse token id is outside the vocabulary of 60"),
        ("token_ids", 0, -1, "'a': a sparse token id is outside"),
        ("token_ids", 4, 1, "'c': sparse token ids do not ascend"),
        ("indptr", 1, 4, "sparse indptr must ascend from 0 to 5 in 4 steps"),
        ("indptr", 0, 1, "sparse indptr must ascend"),
        ("indptr", 3, 4, "sparse indptr must ascend"),
    ],
)
def test_sparse_rows_are_sound(
    three: Any, make_settings: Any, array: str, place: int, value: float, problem: str
) -> None:
    documents, encoded = three
    bad = altered(encoded, "sparse", **{array: with_value(getattr(encoded.sparse, array), place, value)})
    with pytest.raises(InvalidDocumentError, match=problem):
        check_batch(documents, bad, make_settings(encoded, "demo"))


def test_sparse_weights_match_token_ids(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    bad = altered(encoded, "sparse", weights=encoded.sparse.weights[:-1])
    with pytest.raises(InvalidDocumentError, match="5 sparse token ids came with 4 weights"):
        check_batch(documents, bad, make_settings(encoded, "demo"))


@pytest.mark.parametrize(
    ("codec", "array", "place", "value", "problem"),
    [
        ("int8", "vectors", (3, 1), np.nan, "'c': a token vector is not finite in int8"),
        ("int8", "vectors", (1, 1), np.inf, "'b': a token vector"),
        (
            "int8",
            "vectors",
            (1, 1),
            2e6,
            "'b': a token vector is not finite in int8, which takes values up to",
        ),
        ("float16", "vectors", (0, 0), 70_000, "'a': a token vector is not finite in float16"),
        ("int8", "offsets", 3, 3, "colbert offsets must ascend from 0 to 4 in 4 steps"),
    ],
)
def test_token_vectors_are_sound(
    three: Any, make_settings: Any, codec: str, array: str, place: Any, value: float, problem: str
) -> None:
    documents, encoded = three
    bad = altered(encoded, "colbert", **{array: with_value(getattr(encoded.colbert, array), place, value)})
    with pytest.raises(InvalidDocumentError, match=problem):
        check_batch(documents, bad, make_settings(encoded, "demo", token_codec=codec))


@pytest.mark.parametrize("length", [0, 0.98, 1.02, 1e20])
@pytest.mark.parametrize("changes", [{"token_codec": "sign"}, {"token_codec": "int8", "token_pooling": 2}])
def test_where_directions_are_stored_vectors_have_length_1(
    plain_representations: Any, make_settings: Any, changes: dict[str, Any], length: float
) -> None:
    one = [1.0] + 7 * [0.0]
    documents = [Document("a", "x"), Document("b", "y")]
    wrong = plain_representations([[1, 0]] * 2, [{}, {}], [[one], [one, [length, *one[1:]]]], 8)
    with pytest.raises(InvalidDocumentError, match="'b': a token vector is not"):
        check_batch(documents, wrong, make_settings(wrong, "demo", **changes))
    sound = plain_representations([[1, 0]] * 2, [{}, {}], [[one], [one, one]], 8)
    check_batch(documents, sound, make_settings(sound, "demo", **changes))


def test_token_vectors_have_the_dimension(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    bad = altered(encoded, "colbert", vectors=encoded.colbert.vectors[:, :1])
    with pytest.raises(InvalidDocumentError, match=r"shape \(4, 1\); the collection needs 2 values each"):
        check_batch(documents, bad, make_settings(encoded, "demo"))


def test_fields_of_another_type_are_refused_by_document(three: Any, make_settings: Any) -> None:
    documents, encoded = three
    with pytest.raises(
        InvalidDocumentError, match=r"'a': field 'year' is declared as keyword, but holds 2020"
    ):
        check_batch(documents, encoded, make_settings(encoded, "demo", fields={"year": "keyword"}))
