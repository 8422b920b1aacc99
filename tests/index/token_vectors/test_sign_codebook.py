"""The codec of one bit a value: codes by hand, scores, files and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Weights
from tercet.index.catalog.settings import CODEBOOK_FILE, CollectionSettings
from tercet.index.codebook import sign_codebook
from tercet.index.live.collection import LiveCollection
from tercet.index.token_vectors.coding import decode, encode
from tercet.index.verify import verify
from tercet.models.representations import Float32
from tests.index.search.test_ranking import ALL, ids_of, named, of_tokens

DOCUMENTS, LENGTH, DIMENSION = 40, 5, 16


def unit(*shape: int) -> Float32:
    vectors = np.random.default_rng(0).standard_normal(shape)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def test_a_code_has_the_signs_of_the_turned_vector() -> None:
    book, vectors = sign_codebook(DIMENSION), unit(50, DIMENSION)
    codes, centroids = encode(book, vectors)
    positive = vectors @ book.rotation.T > 0
    np.testing.assert_array_equal(codes, np.packbits(positive, axis=1))
    assert not centroids.any()
    signs = np.where(positive, 1, -1) / DIMENSION**0.5
    np.testing.assert_allclose(decode(book, codes, centroids), signs @ book.rotation, atol=1e-6)
    np.testing.assert_allclose(book.rotation @ book.rotation.T, np.eye(DIMENSION), atol=1e-6)


def test_a_collection_needs_no_sample_and_stores_no_centroids(build: Any) -> None:
    tokens, query = unit(DOCUMENTS, LENGTH, DIMENSION), unit(3, DIMENSION)
    collection = build((named(DOCUMENTS, 1), of_tokens(tokens)), segment=15, token_codec="sign")
    snapshot = collection.snapshot()
    book = sign_codebook(DIMENSION)
    decoded = decode(book, *encode(book, tokens.reshape(-1, DIMENSION))).reshape(tokens.shape)
    expected = (decoded @ query.T).max(axis=1).mean(axis=1)
    ids, scores = snapshot.score_all(of_tokens(query[None]))
    np.testing.assert_allclose(scores[:, 2], expected, atol=1e-5)
    found = snapshot.search(of_tokens(query[None]), weights=Weights(0, 0, 1), candidates=ALL).hits
    assert ids_of(found) == [ids[row] for row in np.argsort(-expected, kind="stable")[:10]]
    layout = collection.layout
    assert (layout.folder / CODEBOOK_FILE).exists()
    assert not list(layout.folder.rglob("token_centroids*"))
    assert CollectionSettings.read(layout.settings) == collection.settings
    verify(collection.layout.folder.parent, collection.settings.name)


def test_a_collection_that_begins_empty_takes_writes(build: Any) -> None:
    tokens = unit(DOCUMENTS, LENGTH, DIMENSION)
    names = named(DOCUMENTS, 1)
    collection = build((names[:1], of_tokens(tokens[:1])), token_codec="sign")
    query = of_tokens(unit(1, 3, DIMENSION))
    with LiveCollection(collection) as live:
        live.put(names[1:], of_tokens(tokens[1:]))
        before = live.snapshot().score_all(query)
    with LiveCollection(collection) as live:  # from the ledger
        again = live.snapshot().score_all(query)
        live.flush()
    after = collection.snapshot().score_all(query)
    for ids, scores in (again, after):
        assert ids == before[0]
        np.testing.assert_array_equal(scores, before[1])


@pytest.mark.parametrize("dimension", [0, 12])
def test_other_dimensions_are_refused(dimension: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"of (0|12) values cannot be cut into pieces of 8; use int8"):
        sign_codebook(dimension)
    with pytest.raises(ValueError, match=r"use int8|no token vectors; use none"):
        CollectionSettings("x", "e", "f", 8, dimension, 10, token_codec="sign")
