"""Reading documents: formats, bad records, duplicates, bounds."""

import bz2
import datetime
import gzip
import json
import lzma
import sys
from pathlib import Path

import psutil
import pyarrow
import pyarrow.parquet
import pytest

from tercet.index.candidates import Document
from tercet.index.errors import DuplicateDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.files import source_files
from tercet.ingest.sources.reader import DocumentReader

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


def write(path: Path, *lines: str | bytes) -> Path:
    content = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    path.write_bytes(PACK.get(path.suffix.lower(), bytes)(content))
    return path


THREE = (
    '{"id": "a", "text": "one"}',
    '{"_id": "b", "title": "Two", "text": "two", "metadata": {"year": 1999}}',
    '{"id": 3, "text": "drei", "lang": "de", "metadata": null}',
)
EXPECTED = [
    Document("a", "one"),
    Document("b", "two", "Two", {"year": 1999}),
    Document("3", "drei", None, {"lang": "de"}),
]


@pytest.mark.parametrize(
    "name", ["x.jsonl", "x.ndjson", "X.JSONL", *(f"x.jsonl{each}" for each in PACK), "X.JSONL.GZ"]
)
def test_json_lines(tmp_path: Path, name: str) -> None:
    reader = DocumentReader(write(tmp_path / name, *THREE, ""))
    assert list(reader) == EXPECTED
    assert reader.fraction == 1.0
    assert reader.total == (None if Path(name).suffix.lower() in PACK else 3)


@pytest.mark.slow
def test_beir_folder_and_parquet_parts(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl.gz", *THREE)
    write(tmp_path / "queries.jsonl", '{"_id": "q", "text": "query"}')
    assert list(DocumentReader(tmp_path)) == EXPECTED
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("b", "a"):
        table = pyarrow.table({"id": [name], "text": [f"text {name}"]})
        pyarrow.parquet.write_table(table, parts / f"{name}.parquet")
    reader = DocumentReader(parts)
    assert [document.id for document in reader] == ["a", "b"]
    assert reader.total == 2


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", b'\xef\xbb\xbf{"id": "a", "text": "one"}\r', b'{"id": "b", "text": ""}\r'
    )
    assert list(DocumentReader(path)) == [Document("a", "one"), Document("b", "")]


def test_half_a_character_is_left_to_the_index(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"id": "a", "text": "cut \\ud83d"}')
    assert list(DocumentReader(path)) == [Document("a", "cut \ud83d")]


BAD_LINES = [
    ('{"id": "b", "text": ', "not valid JSON at character"),
    ('{"id": "b", "text": NaN}', '"text" is nan: JSON has no such number; use null'),
    ('{"id": "b", "text": "x", "at": [{"x.y": -Infinity}]}', '"at.0.x.y" is -inf: JSON has no such number'),
    ('{"id": "b", "text": "x", "k": 1e999}', '"k" is inf: JSON has no such number'),
    ('{"id": "b", "text": xyz}', "not valid JSON at character 21"),
    (
        '{"id": "b", "text": "x", "k": 12345678901234567890123}',
        "metadata.k is wrong: the integer 12345678901234567890123 does not fit",
    ),
    (
        '{"id": "b", "text": "x", "k": -9223372036854775809}',
        "the integer -9223372036854775809 does not fit in 64",
    ),
    ('{"id": "b", "text": "x", "k": %s}' % ("[" * 65 + "]" * 65), "nests deeper than 64 levels"),
    ('{"id": "b", "text": "x", "k": %s}' % ("[" * 1100 + "]" * 1100), "metadata may have 64 levels"),
    ('{"id": "b", "text": "\\ud800", "k": %s}' % ("[" * 1100 + "]" * 1100), "metadata may have 64 levels"),
    ('{"id": "\\ud800", "text": NaN}', '"text" is nan: JSON has no such number; use null'),
    (b'{"id": "b", "text": "\xff"}', "not valid UTF-8 at byte 22"),
    ("[1]", "expected a JSON object, got an array"),
    ("null", "expected a JSON object, got null"),
    ('{"id": "b"}', '"text" is missing'),
    ('{"id": "b", "text": 5}', '"text" must be a string, got a number'),
    ('{"id": "b", "text": "x", "title": []}', '"title" must be a string or null, got an array'),
    ('{"id": "b", "text": "x", "metadata": "y"}', '"metadata" must be an object or null, got a string'),
    ('{"text": "x"}', '"id" (or "_id") is missing'),
    ('{"id": "", "text": "x"}', '"id" is empty'),
    ('{"id": 1.5, "text": "x"}', '"id" must be a string or a whole number, got a number'),
    ('{"id": true, "text": "x"}', '"id" must be a string or a whole number, got a boolean'),
    ('{"id": "b", "_id": "c", "text": "x"}', '"id" is "b" but "_id" is "c"'),
    ('{"id": "%s", "text": "x"}' % ("i" * 513), "has 513 bytes"),
    ('{"id": "b", "text": "%s"}' % ("x" * 5000), "longer than 4096 bytes"),
    ('{"id": "b", "text": "x", "year": "1999"}', "field 'year' is declared as integer"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES, ids=[reason for _, reason in BAD_LINES])
def test_a_bad_line_is_named_or_skipped(tmp_path: Path, line: str | bytes, reason: str) -> None:
    path = write(tmp_path / "x.jsonl", '{"id": "a", "text": "x"}', line, '{"id": "z", "text": "x"}')
    with pytest.raises(SourceError) as caught:
        list(DocumentReader(path, fields={"year": "integer"}, line_bytes=4096))
    assert str(caught.value).startswith(f"{path} line 2: ")
    assert reason in str(caught.value)

    reader = DocumentReader(path, on_error="skip", fields={"year": "integer"}, line_bytes=4096)
    assert [document.id for document in reader] == ["a", "z"]
    assert reader.skipped == 1
    assert reader.total == 2
    assert reader.skips[0].position == f"{path} line 2"
    assert reason in reader.skips[0].reason


def test_duplicates_name_both_places(tmp_path: Path) -> None:
    lines = ['{"id": "a", "text": "first"}', '{"id": "b", "text": "x"}', '{"id": "a", "text": "second"}']
    path = write(tmp_path / "x.jsonl", *lines)
    with pytest.raises(DuplicateDocumentError, match=r"line 3: the id 'a' occurs already at .*line 1"):
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert [(document.id, document.text) for document in reader] == [("a", "first"), ("b", "x")]
    assert "line 3" in str(reader.skips[0])


def test_only_the_first_skips_are_listed(tmp_path: Path) -> None:
    reader = DocumentReader(write(tmp_path / "x.jsonl", *["{}"] * 50), on_error="skip")
    assert list(reader) == []
    assert reader.skipped == 50
    assert [skip.position[-6:] for skip in reader.skips[:2]] == ["line 1", "line 2"]
    assert len(reader.skips) == 20


@pytest.mark.slow
@pytest.mark.parametrize("suffix", PACK)
def test_packed_data_that_is_cut_off_or_none_stops(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.jsonl{suffix}"
    lines = b"\n".join(b'{"id": "%d", "text": "%s"}' % (n, bytes([97 + n % 26]) * 40) for n in range(9000))
    path.write_bytes(PACK[suffix](lines)[:-20])
    with pytest.raises(SourceError, match=rf"the {suffix[1:]} data is damaged or cut off after line \d"):
        list(DocumentReader(path, on_error="skip"))
    path.write_bytes(b"none of it")
    with pytest.raises(SourceError, match="data is damaged or cut off after line 0"):
        list(DocumentReader(path, on_error="skip"))


def test_damaged_gzip_stops_even_when_skipping(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b'{"id": "%d", "text": "%x"}\n' % (i, i**40) for i in range(3000)))
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"damaged or cut off after line [1-9]\d*"):
        list(DocumentReader(path, on_error="skip"))
    path.write_bytes(b'{"id": "a", "text": "not packed"}\n')
    with pytest.raises(SourceError, match="damaged or cut off after line 0"):
        list(DocumentReader(path))


def test_an_endless_line_is_not_held(tmp_path: Path) -> None:
    """64 MB that unpack from 64 kB: only the limit is ever in memory."""
    path = tmp_path / "x.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b" " * 2**20)
        file.write(b'\n{"id": "a", "text": "after"}\n')
    reader = DocumentReader(path, on_error="skip", line_bytes=2**16)
    assert [document.id for document in reader] == ["a"]
    assert reader.skips[0].reason.startswith("longer than 65536 bytes")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.jsonl", "no such file"),
        ("x.xyz", "unknown kind of file"),
        ("x.docx", r"x\.docx: \.docx is not read; save it as PDF"),
        ("x.XLSX", r"\.XLSX is not read; save it as CSV"),
        ("empty", "holds no file"),
    ],
)
def test_what_is_no_source(tmp_path: Path, name: str, reason: str) -> None:
    for unread in ("x.xyz", "x.docx", "x.XLSX"):
        (tmp_path / unread).touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=reason):
        source_files(tmp_path / name)


@pytest.mark.slow
def test_a_folder_of_many_parts_keeps_no_file_open(tmp_path: Path) -> None:
    for part in range(30):
        table = pyarrow.table({"id": [f"d{part:02d}"], "text": ["tea"]})
        pyarrow.parquet.write_table(table, tmp_path / f"{part:02d}.parquet")
    reader = DocumentReader(tmp_path)
    opened = [file.path for file in psutil.Process().open_files() if file.path.endswith(".parquet")]
    assert opened == []
    assert reader.total == 30
    assert [document.id for document in reader] == [f"d{part:02d}" for part in range(30)]


def test_the_reason_for_a_skipped_record_is_short(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"id": "a", "text": "x"}', f'{{"id": "{"b" * 10_000}", "text": "x"}}')
    reader = DocumentReader(path, on_error="skip")
    assert [document.id for document in reader] == ["a"]
    assert len(str(reader.skips[0])) < 1000


@pytest.mark.slow
def test_parquet_columns(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "_id": [1, 2, 3],
            "text": ["one", "two", None],
            "title": ["", "Two", None],
            "day": [datetime.date(2020, 1, 2), None, None],
            "metadata": [json.dumps({"year": 5}), None, None],
            "weight": [0.5, float("nan"), None],
        }
    )
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(table, path)
    reader = DocumentReader(path, on_error="skip")
    assert list(reader) == [Document("1", "one", None, {"day": "2020-01-02", "weight": 0.5, "year": 5})]
    assert [str(skip).removeprefix(f"{path} ") for skip in reader.skips] == [
        'row 2: "weight" is nan: use null for an unknown number',
        'row 3: "text" is missing',
    ]


@pytest.mark.slow
def test_parquet_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(SourceError, match="not a readable Parquet file"):
        DocumentReader(path)
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "body": ["x"]}), path)
    assert list(DocumentReader(path)) == [Document("a", "x")]
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "words": ["x"]}), path)
    with pytest.raises(SourceError, match="the columns are id, words: name one with --text-field"):
        list(DocumentReader(path))


def test_parquet_without_its_extra_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tercet.ingest.sources.arrow_rows", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    path = tmp_path / "x.parquet"
    path.touch()
    with pytest.raises(SourceError, match=r"x\.parquet: Parquet needs pyarrow .* -e '\.\[cpu,parquet\]'"):
        list(DocumentReader(path))
