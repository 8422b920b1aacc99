"""Verification finds every altered byte and every inconsistency, and names the file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet.index.candidates import Document
from tercet.index.catalog.manifest import FileEntry, Manifest
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError, DamagedIndexError, InvalidNameError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.content import sha256_of
from tercet.index.files.packed_arrays import write_packed
from tercet.index.segments.files import PACKED_FILE
from tercet.index.sparse.term_statistics import FREQUENCIES, MASSES
from tercet.index.verify import verify
from tercet.models.representations import Int64

FIELDS = {"year": "integer", "tags": "keyword"}


@pytest.fixture(autouse=True, params=["files", "packed"])
def packed(request: pytest.FixtureRequest) -> bool:
    """Whether the arrays of a segment are one file; each has its own otherwise."""
    if request.param == "files":
        request.getfixturevalue("segments_of_files")
    return bool(request.param == "packed")


@pytest.fixture
def collection(build: Any, random_corpus: Any) -> Collection:
    """Two segments with fields; the ids of the first segment precede those of the second."""
    documents, encoded = random_corpus(30, 1)
    documents = sorted(documents, key=lambda document: document.id)
    for row in (3, 7):
        documents[row] = dataclasses.replace(
            documents[row], metadata={**documents[row].metadata, "year": [3, 1, 2]}
        )
    collection: Collection = build((documents, encoded), segment=20, fields=FIELDS)
    return collection


@pytest.mark.slow
def test_sound_collections_have_no_problems(build: Any, random_corpus: Any, root: Path, three: Any) -> None:
    for kind, codec in (("flat", "int8"), ("hnsw", "float16"), ("ivfpq", "none")):
        corpus = random_corpus(1100, 3)
        build(corpus, name=kind, dense_kind=kind, token_codec=codec, fields=FIELDS, segment=1050)
        assert verify(root, kind) == []


def test_a_collection_without_a_snapshot_is_sound(root: Path, three: Any, make_settings: Any) -> None:
    Collection.create(root, "demo", make_settings(three[1], "demo"))
    assert verify(root, "demo") == []
    with pytest.raises(CollectionNotFoundError):
        verify(root, "none")
    with pytest.raises(InvalidNameError):
        verify(root, "../demo")


def test_a_lost_current_file_is_found(build: Any, three: Any, root: Path) -> None:
    collection = build(three)
    collection.layout.current.unlink()
    (problem,) = verify(root, "demo")
    assert "CURRENT is missing, but" in problem
    assert "restore it with the one line 000001" in problem


def test_a_publication_meanwhile_is_no_damage(
    build: Any, three: Any, root: Path, publish_at_next_reading: Any
) -> None:
    collection = build(three)
    publish_at_next_reading(three)
    assert verify(root, "demo") == []
    assert collection.current() == "000002"


def test_a_segment_that_a_publication_removes_meanwhile_is_no_damage(
    build: Any, three: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its files were read, and before their names are."""
    collection, listed = build(three), Path.iterdir

    def removed_before(folder: Path) -> Iterator[Path]:
        monkeypatch.setattr(Path, "iterdir", listed)
        build(three)
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", removed_before)
    assert verify(root, "demo") == []
    assert collection.current() == "000002"


@pytest.mark.slow
def test_a_flipped_bit_in_any_file_is_found(collection: Collection, root: Path, packed: bool) -> None:
    random = np.random.default_rng(4)
    collection.layout.verified.unlink()  # a note about the folder, none of its contents
    files = [path for path in collection.layout.folder.rglob("*") if path.is_file() and path.stat().st_size]
    assert len(files) == 6 if packed else len(files) > 50
    for path in files:
        content = path.read_bytes()
        count = 100 if packed else 3
        for position in {0, len(content) - 1, *random.integers(0, len(content), count).tolist()}:
            damaged = bytearray(content)
            damaged[position] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            problems = verify(root, "demo")
            assert problems, f"{path} {position}"
            if path.suffix in (".npy", ".safetensors"):
                assert len(problems) == 1
                assert str(path) in problems[0]
        path.write_bytes(content)
    assert verify(root, "demo") == []


def test_missing_short_and_unknown_files_are_named(collection: Collection, root: Path, packed: bool) -> None:
    missing, *_, short = sorted(collection.layout.segments.glob("*/*"))
    assert (missing.name == short.name == PACKED_FILE) == packed
    stray = missing.with_name("stray")
    missing.unlink()
    short.write_bytes(b"short")
    stray.write_bytes(b"")
    problems = verify(root, "demo")
    assert len(problems) == 3
    for path in (missing, short, stray):
        assert sum(problem.startswith(f"{path} ") for problem in problems) == 1


def test_wrong_statistics_of_terms_are_found(
    build: Any, random_corpus: Any, root: Path, packed: bool
) -> None:
    collection = build(random_corpus(30, 1), segment=20, lexical="idf")
    assert verify(root, "demo") == []
    folder = collection.layout.segments / Manifest.read(collection.layout.manifest("000001")).segments[1].id
    for name in (FREQUENCIES, MASSES):
        path = folder / PACKED_FILE / name if packed else folder / f"{name}.npy"
        sound = stored(collection, name, segment=1)
        forge(collection, name, np.roll(sound, 1), segment=1)
        assert verify(root, "demo") == [f"{path}: is not what the forward rows give"]
        forge(collection, name, sound - 2**30, segment=1)
        (problem,) = verify(root, "demo")
        assert problem.startswith(f"{path} ")
        with pytest.raises(DamagedIndexError, match=name):
            collection.snapshot()
        forge(collection, name, None, segment=1)
        with pytest.raises(DamagedIndexError, match=f"{name}.* is missing"):
            collection.snapshot()
        forge(collection, name, sound, segment=1)
    assert verify(root, "demo") == []


@pytest.mark.parametrize(
    ("name", "place", "value", "fault"),
    [
        ("bm25_terms", 0, ord("z"), "terms are not distinct and in order"),
        ("bm25_lengths", 0, 5, "a length is not the sum of its document's frequencies"),
        ("bm25_lengths", 0, -1, "holds a length below 0"),
        ("bm25_forward_weights", 0, 1.5, "a frequency is no whole number"),
        ("bm25_forward_weights", 0, 0, "a weight is not finite and above 0"),
        ("bm25_forward_token_ids", 1, 0, "token ids do not ascend within a document"),
        ("bm25_forward_token_ids", 1, 5, "a token id is outside the vocabulary of 5"),
        ("bm25_frequencies", 0, 2, "is not what the forward rows give"),
        ("bm25_frequencies", 0, 4, "counts documents that a segment of 3 cannot have"),
        ("bm25_inverted_columns", (0, 0), 3, "is not what the forward rows give"),
    ],
)
def test_wrong_bm25_files_are_found(
    build: Any, random_texts: Any, root: Path, name: str, place: Any, value: float, fault: str
) -> None:
    texts = {"a": "tea milk tea", "b": "milk", "c": "tea sugar honey lemon"}
    documents = [Document(id, text) for id, text in texts.items()]
    collection = build((documents, random_texts(3, 1)), bm25=True, bm25_language="none")
    assert verify(root, "demo") == []
    array = stored(collection, name)
    array[place] = value
    forge(collection, name, array)
    problems = verify(root, "demo")
    assert fault in problems[0]
    assert name in problems[0]


def forge(collection: Collection, name: str, array: Any, segment: int = 0) -> None:
    """Replaces an array of a segment, or removes it, and corrects the manifest, as a faulty writer would."""
    path = collection.layout.manifest("000001")
    manifest = Manifest.read(path)
    entry = manifest.segments[segment]
    folder = collection.layout.segment(entry.id)
    if PACKED_FILE in entry.files:
        arrays = load_file(folder / PACKED_FILE)
        (folder / PACKED_FILE).unlink()
        arrays.pop(name, None)
        write_packed(folder / PACKED_FILE, arrays if array is None else {**arrays, name: array})
    else:
        (folder / f"{name}.npy").unlink(missing_ok=True)
        if array is not None:
            ArrayFolder(folder).write(name, array)
    files = {file.name: FileEntry(file.stat().st_size, sha256_of(file)) for file in folder.iterdir()}
    segments = list(manifest.segments)
    segments[segment] = dataclasses.replace(entry, files=files)
    dataclasses.replace(manifest, segments=tuple(segments)).write(path)


def stored(collection: Collection, name: str, segment: int = 0) -> Any:
    manifest = Manifest.read(collection.layout.manifest("000001"))
    folder = collection.layout.segment(manifest.segments[segment].id)
    if (folder / PACKED_FILE).exists():
        return load_file(folder / PACKED_FILE)[name]
    return np.load(folder / f"{name}.npy")


def swapped(array: Any, left: int, right: int) -> Any:
    copy = array.copy()
    copy[[left, right]] = copy[[right, left]]
    return copy


def replaced(array: Any, place: Any, value: Any) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("dense", lambda a: replaced(a, (3, 2), np.nan), "not finite"),
        ("forward_indptr", lambda a: replaced(a, 3, a[-1] + 1), "does not ascend"),
        ("forward_token_ids", lambda a: replaced(a, 2, 60), "outside the vocabulary of 60"),
        ("forward_token_ids", lambda a: a[::-1].copy(), "do not ascend within"),
        ("forward_weights", lambda a: replaced(a, 2, 0), "above 0"),
        ("token_offsets", lambda a: replaced(a, 3, a[-1] + 1), "does not ascend"),
        ("token_scales", lambda a: replaced(a, 3, np.inf), "not finite"),
        ("ids_offsets", lambda a: replaced(a, 3, a[-1] + 1), "does not ascend"),
        ("documents_offsets", lambda a: replaced(a, 3, a[-1] + 1), "does not ascend"),
        ("documents", lambda a: replaced(a, 0, ord("[")), "no stored document in row 0"),
        ("id_order", lambda a: swapped(a, 4, 5), "'d0004' is out of order"),
        ("inverted_largest", lambda a: replaced(a, 0, 1e9), "not what the forward rows give"),
        ("inverted_largest", lambda a: replaced(a, 0, np.inf), "holds what is no largest weight"),
        ("inverted_documents", lambda a: np.full_like(a, 65_535), "not what the forward rows give"),
        ("id_order", lambda a: replaced(a, 4, a[5]), "do not occur once each"),
        ("id_order", lambda a: replaced(a, 4, 20), "names a row outside"),
        ("ids", lambda a: replaced(a, slice(5, 10), a[:5]), "'d0000' occurs twice"),
        ("field_000_codes", lambda a: replaced(a, 1, 9), "names a string outside"),
        ("field_000_rows", lambda a: replaced(a, -1, 20), "names a row outside"),
        ("field_000_rows", lambda a: a[::-1].copy(), "out of order"),
        ("field_000_strings", lambda a: a[::-1].copy(), "not distinct and in order"),
        ("field_001_further_rows", lambda a: a[::-1].copy(), "out of order, or have no first value"),
        ("field_001_further_rows", lambda a: replaced(a, -1, 20), "names a row outside"),
    ],
)
def test_inconsistent_contents_are_found(
    collection: Collection, root: Path, name: str, change: Any, fault: str
) -> None:
    forge(collection, name, change(stored(collection, name)))
    problems = verify(root, "demo")
    assert any(name in problem and fault in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("window_offsets", lambda a: replaced(a, 1, 0), "does not divide"),
        ("window_spans", lambda a: replaced(a, (0, 1), 31), "outside its document's text"),
        ("window_spans", lambda a: replaced(a, (0, 0), -1), "outside its document's text"),
        ("window_spans", lambda a: replaced(a, 0, (6, 8)), "before the one before"),
        ("window_lexical_indptr", lambda a: replaced(a, 3, a[-1] + 1), "does not ascend"),
        ("window_lexical_token_ids", lambda a: replaced(a, 2, 60), "outside the vocabulary of 60"),
        ("window_lexical_weights", lambda a: replaced(a, 2, 0), "above 0"),
        ("window_lexical_weights", lambda a: replaced(a, 2, 9), "are not the largest weights"),
        ("forward_weights", lambda a: a / 2, "are not the largest weights"),
    ],
)
def test_inconsistent_windows_are_found(
    build_windowed: Any, windowed_corpus: Any, root: Path, name: str, change: Any, fault: str
) -> None:
    collection = build_windowed(windowed_corpus(30, 1), segment=60)
    assert verify(root, "demo") == []
    forge(collection, name, change(stored(collection, name)))
    problems = verify(root, "demo")
    assert any(fault in problem for problem in problems), problems
    assert any("window" in problem for problem in problems)


@pytest.mark.slow
def test_rows_that_are_not_equal_are_found(build: Any, random_corpus: Any, root: Path) -> None:
    documents, encoded = random_corpus(1300, 1)
    encoded.dense[1100:] = encoded.dense[7]
    collection = build((documents, encoded), dense_kind="hnsw")
    assert verify(root, "demo") == []
    assert stored(collection, "dense_equal_rows").tolist() == [7, *range(1100, 1300)]
    forge(collection, "dense_equal_rows", np.array([8, *range(1100, 1300)]))
    assert any("does not name the rows of equal vectors" in problem for problem in verify(root, "demo"))


def test_ids_must_differ_between_segments(collection: Collection, root: Path) -> None:
    ids: Int64 = stored(collection, "ids")
    forge(collection, "ids", np.concatenate([ids[:45], np.frombuffer(b"d0029", np.uint8)]), segment=1)
    problems = verify(root, "demo")
    assert problems == [] or "two segments" in problems[0] or "id_order" in problems[0]
    forge(collection, "ids", ids[:50].copy(), segment=1)
    assert sum("is in two segments" in problem for problem in verify(root, "demo")) == 10


def test_counts_of_the_manifest_are_checked(collection: Collection, root: Path) -> None:
    path = collection.layout.manifest("000001")
    record = json.loads(path.read_text())
    record["segments"][0]["tokens"] += 1
    path.write_text(json.dumps(record))
    assert "but the manifest counts" in verify(root, "demo")[0]
    record["segments"][0]["documents"] += 1
    record["documents"] += 1
    path.write_text(json.dumps(record))
    assert verify(root, "demo")


def test_settings_changed_after_publishing_are_found(collection: Collection, root: Path) -> None:
    path = collection.layout.settings
    path.write_text(path.read_text().replace('"tiny"', '"huge"'))
    assert "collection.json was altered" in verify(root, "demo")[0]


@pytest.mark.parametrize(
    ("name", "row"),
    [("dense", 3), ("forward_weights", slice(None)), ("token_scales", slice(None))],
)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_no_search_returns_what_is_not_finite(
    collection: Collection, random_texts: Any, name: str, row: Any, value: float
) -> None:
    """Checksums are as they should be: who wrote the file wrote them, too."""
    query = random_texts(1, 5)
    assert len(collection.snapshot().search(query, top_k=30).hits) == 30
    forge(collection, name, replaced(stored(collection, name), row, value))
    with pytest.raises(DamagedIndexError, match=f"{name}.* has values that are not finite"):
        collection.snapshot().search(query, top_k=30)
