"""Arrays of objects in JSON files: alone, within an object, long, broken, too large."""

import json
from pathlib import Path

import pytest

from index.candidates import Document
from ingest.errors import SourceError
from ingest.sources.reader import DocumentReader

TWO = [{"id": "a", "text": "one", "n": 1.5}, {"_id": 3, "text": "두 번째", "big": 2**60}]
EXPECTED = [Document("a", "one", None, {"n": 1.5}), Document("3", "두 번째", None, {"big": 2**60})]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(TWO),
        json.dumps({"posts": TWO}),
        json.dumps({"count": 2, "tags": [], "page": {"ids": [3, 4], "items": TWO}}),
        "\ufeff" + json.dumps(TWO, indent=2, ensure_ascii=False),
        json.dumps({"version": {"list": [1]}, "documents": TWO, "more": []}, indent=1),
        "\n".join(map(json.dumps, TWO)),  # JSONL by another name
    ],
)
def test_arrays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    assert list(DocumentReader(path)) == EXPECTED


def test_a_bad_object_is_named_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([TWO[0], 5, {"id": "c", "text": None}, TWO[1]]))
    with pytest.raises(SourceError, match=r"x\.json record 2: expected a JSON object, got a number"):
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert list(reader) == EXPECTED
    assert (reader.skipped, reader.fraction) == (2, 1.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no valid JSON"),
        ("[", "no valid JSON after record 0"),
        ('[{"id": "a", "text": "x"}, {"id"', "no valid JSON after record 1"),
        ('[{"id": "a", "text": NaN}]', "no valid JSON"),
        ("{\n}", "no array of objects is in it"),
        ("7", "no array of objects is in it"),
        ('[{"id": "a", "text": "' + "x" * 300_000 + '"}]', "an object takes more than 4096 bytes"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(SourceError, match=said):
        list(DocumentReader(path, line_bytes=4096))


def test_a_long_array_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write("[" + ",".join(json.dumps({"id": str(n), "text": "tea " * 50}) for n in range(2000)) + "]")
    reader = DocumentReader(path)
    documents = iter(reader)
    next(documents)
    assert 0 < reader.fraction < 1
    assert len(list(documents)) == 1999
