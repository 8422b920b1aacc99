"""Documents: checked, stored, and found again by id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.candidates import Document
from tercet.index.documents.store import MAX_CONTENT_BYTES, DocumentStore, DocumentWriter, encode_document
from tercet.index.errors import DamagedIndexError, InvalidDocumentError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.packed_bytes import PackedBytes


def store(folder: Path, documents: list[Document]) -> DocumentStore:
    writer = DocumentWriter(ArrayFolder(folder))
    ids, contents = zip(*map(encode_document, documents), strict=True)
    writer.append(PackedBytes.of(ids), PackedBytes.of(contents))
    writer.finish()
    return DocumentStore.open(ArrayFolder(folder), len(documents))


def test_documents_come_back_as_they_were(tmp_path: Path) -> None:
    documents = [
        Document("b", "second", "A title", {"list": [1, 2.5, None, True], "nested": {"시": "조"}}),
        Document("a/../c d", "", None, {}),
        Document("é" * 256, "NUL \x00 and emoji 🎼", "", {"": ""}),
    ]
    found = store(tmp_path, documents)
    assert len(found) == 3
    assert [found.get(row) for row in range(3)] == documents
    assert found.ids.take(np.array([1])) == [b"a/../c d"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.sets(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20), min_size=1, max_size=30))
def test_every_id_is_found_and_no_other(tmp_path_factory: pytest.TempPathFactory, ids: set[str]) -> None:
    order = list(ids)
    found = store(
        tmp_path_factory.mktemp("documents"), [Document(identifier, "text") for identifier in order]
    )
    encoded = [identifier.encode() for identifier in order]
    assert found.find_all(PackedBytes.of([b"", *encoded])).tolist() == [-1, *range(len(order))]
    others = [other for each in order for other in (each + "x", each[:-1]) if other not in ids]
    assert set(found.find_all(PackedBytes.of([other.encode() for other in others]))) <= {-1}


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    found = store(tmp_path, [Document("a", "x\ud800y", "\udfff", {"k\ud900": ["\udc00"]})])
    assert found.get(0) == Document("a", "x\ufffdy", "\ufffd", {"k\ufffd": ["\ufffd"]})


@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("", "0 bytes; use 1 to 512"),
        ("x" * 513, "513 bytes; use 1 to 512"),
        ("é" * 257, "514 bytes"),
        ("\ud800", "not UTF-8"),
        (7, "7 is not a string"),
        (None, "null is not a string"),
    ],
)
def test_bad_ids_are_refused(identifier: Any, problem: str) -> None:
    with pytest.raises(InvalidDocumentError, match=problem):
        encode_document(Document(identifier, "text"))


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"text": None}, "text is NoneType"),
        ({"text": b"bytes"}, "text is bytes"),
        ({"title": 3}, "title is int"),
        ({"metadata": [1]}, "metadata is \\[1\\]"),
        ({"metadata": {"x": float("nan")}}, "not JSON"),
        ({"metadata": {"x": [float("inf")]}}, "not JSON"),
        ({"metadata": {"x": {1: 2}}}, "key 1 is not a string"),
        ({"metadata": {"x": object()}}, "not JSON"),
        ({"metadata": {"x": {1, 2}}}, "not JSON"),
        ({"metadata": deep(100_000)}, "deeper than 64 levels"),
        ({"metadata": deep(65)}, "deeper than 64 levels"),
        (
            {"metadata": {"x": {"y": [0, 2**64]}}},
            r"metadata\.x\.y\.1 is wrong: the integer 18446744073709551616 does",
        ),
        (
            {"metadata": {"x": -(2**63) - 1}},
            r"metadata\.x is wrong: the integer -9223372036854775809 does not fit",
        ),
        ({"metadata": {"x": 10**5000}}, "the integer of 16610 bits does not fit in 64"),
        ({"text": "x" * MAX_CONTENT_BYTES}, "the limit is 16777216"),
    ],
)
def test_bad_parts_are_refused_by_id(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidDocumentError, match=f"document 'a'.*{problem}"):
        encode_document(Document(**{"id": "a", "text": "text", **changes}))


@pytest.mark.parametrize("content", [b"{", b"[]", b'"x"', b"{}", b"\xff"])
def test_altered_content_is_damage_not_a_crash(tmp_path: Path, content: bytes) -> None:
    store(tmp_path, [Document("a", "text")])
    for name, array in (
        ("documents", np.frombuffer(content, np.uint8)),
        ("documents_offsets", np.array([0, len(content)])),
    ):
        (tmp_path / f"{name}.npy").unlink()
        ArrayFolder(tmp_path).write(name, array)
    with pytest.raises(DamagedIndexError, match=r"documents\.npy holds no stored document in row 0"):
        DocumentStore.open(ArrayFolder(tmp_path), 1).get(0)


def test_content_is_plain_json(tmp_path: Path) -> None:
    found = store(tmp_path, [Document("a", "text", None, {"n": 1})])
    assert json.loads(found.contents[0]) == {"text": "text", "title": None, "metadata": {"n": 1}}
