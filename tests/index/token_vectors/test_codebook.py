"""Codebooks against their definition, by hand and by brute force."""

from pathlib import Path

import numpy as np
import pytest

from tercet.index.catalog.settings import CODEBOOK_FILE, CollectionSettings
from tercet.index.codebook import Codebook, sign_codebook
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.scoring import near_packed_maxsim, packed_maxsim
from tercet.index.token_vectors.codebook_training import kept_dimensions, train_codebook
from tercet.index.token_vectors.coding import decode, encode
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.token_vectors.store import TokenVectorStore, TokenVectorWriter
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import Float32, TokenVectors, offsets_of


def clustered(count: int, dimension: int, seed: int = 0) -> Float32:
    """Vectors of length 1 around twenty directions."""
    generator = np.random.default_rng(seed)
    centers = np.random.default_rng(7).standard_normal((20, dimension))
    vectors = centers[generator.integers(20, size=count)] + 0.4 * generator.standard_normal(
        (count, dimension)
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def by_hand() -> Codebook:
    """Two centroids in a plane whose axes are exchanged, and entries along the diagonal of one piece."""
    rotation = np.array([[0, 1], [1, 0]], np.float32)
    centroids = np.array([[64 + 40, 64], [64, 64 + 40]], np.uint8)
    tables = np.full((1, 256, 2), 64, np.uint8)
    tables[0, 1], tables[0, 2] = (64 + 10, 64 + 10), (64 - 10, 64 - 10)
    return Codebook(rotation, centroids, tables, 0.01)


def test_a_vector_is_its_centroid_and_an_entry_made_one_long() -> None:
    book = by_hand()
    # Turned (0.5, 0.1) and (-0.05, 0.3), centroids (0.4, 0) and (0, 0.4), rests (0.1, 0.1) and (-0.05, -0.1).
    vectors = np.array([[0.1, 0.5], [0.3, -0.05]], np.float32)
    codes, nearest = encode(book, vectors)
    assert (codes.tolist(), nearest.tolist()) == ([[1], [2]], [0, 1])
    expected = np.array([[0.1, 0.5], [0.3, -0.1]]) / np.sqrt([[0.26], [0.10]])
    np.testing.assert_allclose(decode(book, codes, nearest), expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_codes_are_those_of_the_nearest_centroid_and_entries(bits: int) -> None:
    book = train_codebook(clustered(3000, 16), bits)
    vectors = clustered(50, 16, seed=1)
    codes, nearest = encode(book, vectors)
    turned = vectors @ book.rotation.T / book.step
    centroids, tables = book.centroids.astype(float) - 64, book.tables.astype(float) - 64
    distances = np.square(turned[:, None] - centroids).sum(axis=2)
    assert distances[np.arange(50), nearest].mean() < 1.005 * distances.min(axis=1).mean()
    pieces = (turned - centroids[nearest]).reshape(50, book.code_bytes, 1, -1)
    off = np.square(pieces - tables).sum(axis=3)
    chosen = np.take_along_axis(off, codes[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    np.testing.assert_allclose(chosen, off.min(axis=2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 7, 256])
def test_codes_do_not_depend_on_what_is_coded_beside(count: int) -> None:
    """The first value of each vector, once turned, is 0 but for rounding, whose sign is a bit of its code."""
    book = sign_codebook(64)
    vectors = np.random.default_rng(0).standard_normal((600, 64)).astype(np.float32)
    vectors -= np.outer(vectors @ book.rotation[0], book.rotation[0])
    codes, nearest = encode(book, vectors)
    decoded = decode(book, codes, nearest)
    for first in range(0, len(vectors), count):
        part = slice(first, first + count)
        np.testing.assert_array_equal(encode(book, vectors[part])[0], codes[part])
        np.testing.assert_array_equal(decode(book, codes[part], nearest[part]), decoded[part])


@pytest.mark.slow
def test_more_bits_come_nearer_and_the_rotation_has_right_angles() -> None:
    vectors, off = clustered(500, 32, seed=1), []
    for bits in (1, 2, 4):
        book = train_codebook(clustered(4000, 32), bits)
        np.testing.assert_allclose(book.rotation @ book.rotation.T, np.eye(32), atol=1e-5)
        assert book.code_bytes == 32 * bits // 8
        off.append(float(np.square(decode(book, *encode(book, vectors)) - vectors).sum(axis=1).mean()))
    assert off[0] > 2 * off[1] > 4 * off[2]
    assert off[0] < 0.3


@pytest.mark.slow
def test_long_vectors_lose_dimensions_and_keep_their_main_directions() -> None:
    assert [kept_dimensions(each) for each in (8, 128, 384, 1024)] == [8, 128, 176, 496]
    plane = np.zeros((2000, 384), np.float32)
    plane[:, 100:164] = clustered(2000, 64)
    book = train_codebook(plane, 4)
    assert book.rotation.shape == (176, 384)
    vectors = decode(book, *encode(book, plane[:100]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert (vectors * plane[:100]).sum(axis=1).min() > 0.95


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_scores_are_those_of_the_stored_vectors(tmp_path: Path, bits: int) -> None:
    book = train_codebook(clustered(3000, 24), bits)
    lengths = np.array([5, 0, 30, 8, 1])
    stored = TokenVectorStore.encode(
        TokenVectors(clustered(int(lengths.sum()), 24, 2), offsets_of(lengths)), "residual1", book
    )
    writer = TokenVectorWriter(ArrayFolder(tmp_path), "residual1", 24, book)
    for rows in (np.arange(2), np.arange(2, 5)):
        writer.append(stored.take(rows))
    writer.finish()
    store = TokenVectorStore.open(ArrayFolder(tmp_path), "residual1", 5, 24, book)
    query = clustered(20, 24, 3)
    tokens = QueryTokens.of(query, "residual1", book)
    scores = packed_maxsim(tokens, StoredTexts.of(store, np.arange(5)))
    for row in range(5):
        vectors = store.of(row).astype(np.float64)
        expected = (query.astype(np.float64) @ vectors.T).max(axis=1).mean() if len(vectors) else 0
        assert scores[row] == pytest.approx(expected, abs=2e-6)
    near, errors = near_packed_maxsim(tokens, StoredTexts.of(store, np.arange(5)))
    assert (np.abs(near - scores) <= errors).all()


def test_a_codebook_is_read_as_it_was_written(tmp_path: Path) -> None:
    book = by_hand()
    again = Codebook.of_content(book.content, "codebook")
    assert (again, hash(again)) == (book, hash(book))
    assert again != train_codebook(clustered(2000, 8), 1)
    with pytest.raises(DamagedIndexError, match="its file is no codebook"):
        Codebook.of_content(book.content[:-1], "its file")
    with pytest.raises(ValueError, match="make no codebook"):
        Codebook(book.rotation, book.centroids, book.tables[:, :, :1], 0.01)


def test_too_few_vectors_and_odd_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="1000 token vectors are too few for a codebook; give 1024"):
        train_codebook(clustered(1000, 8), 1)
    with pytest.raises(ValueError, match="12 values"):
        train_codebook(clustered(2000, 12), 1)


def settings(**changes: object) -> CollectionSettings:
    values: dict[str, object] = {
        "token_codec": "residual1",
        "codebook": train_codebook(clustered(2000, 8), 1),
    }
    return CollectionSettings("c", "tiny", "f", 8, 8, 100, **values | changes)  # type: ignore[arg-type]


def test_settings_keep_their_codebook_in_a_file_of_its_own(tmp_path: Path) -> None:
    wanted, path = settings(), tmp_path / "collection.json"
    wanted.write(path)
    assert CollectionSettings.read(path) == wanted
    book = tmp_path / CODEBOOK_FILE
    book.write_bytes(by_hand().content)
    with pytest.raises(DamagedIndexError, match=f"{CODEBOOK_FILE} is not the one that the settings name"):
        CollectionSettings.read(path)
    book.unlink()
    with pytest.raises(DamagedIndexError, match=f"{CODEBOOK_FILE} is missing"):
        CollectionSettings.read(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codebook": None}, "residual1 goes with a codebook"),
        ({"token_codec": "int8"}, "int8 goes without a codebook"),
        ({"codebook": by_hand()}, "the codebook is of 2 dimensions, colbert_dimension is 8"),
    ],
)
def test_codec_and_codebook_belong_together(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(**changes)
