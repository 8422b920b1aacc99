"""Standard input: what it is found to be, packed or not, by its content alone."""

import bz2
import gzip
import io
import json
import lzma
import sys
from pathlib import Path

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from tercet.index.candidates import Document
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.stdin import kept

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RECORDS = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]
EXPECTED = [Document("a", "one"), Document("b", "two")]
LINES = "\n".join(map(json.dumps, RECORDS)).encode()


def tables() -> dict[str, bytes]:
    table, parquet, file, stream = (
        pyarrow.Table.from_pylist(RECORDS),
        io.BytesIO(),
        io.BytesIO(),
        io.BytesIO(),
    )
    pyarrow.parquet.write_table(table, parquet)
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return {"parquet": parquet.getvalue(), "file": file.getvalue(), "stream": stream.getvalue()}


TEXTS = {
    "lines": LINES,
    "lines after a mark and a break": b"\xef\xbb\xbf\n" + LINES,
    "array": json.dumps(RECORDS).encode(),
    "array over lines": json.dumps(RECORDS, indent=1).encode(),
    "array within": json.dumps({"of": RECORDS}, indent=1).encode(),
    "array within, on one line": json.dumps({"of": RECORDS}).encode(),
    "csv": b"id,text\na,one\nb,two\n",
    "tsv": b"id\ttext\na\tone\nb\ttwo\n",
    "utf-16": "id,text\na,one\nb,two\n".encode("utf-16"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TEXTS, "parquet", "file", "stream"])
def test_content_tells_what_it_is(tmp_path: Path, name: str) -> None:
    path = kept(io.BytesIO({**TEXTS, **tables()}[name]), tmp_path)
    assert list(DocumentReader(path)) == EXPECTED
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd.compress])
def test_packed_content_is_recognised(tmp_path: Path, pack: object) -> None:
    for name in ("lines", "csv"):
        path = kept(io.BytesIO(pack(TEXTS[name])), tmp_path)  # type: ignore[operator]
        assert list(DocumentReader(path)) == EXPECTED


def test_lines_of_objects_that_hold_arrays_are_lines(tmp_path: Path) -> None:
    posts = [{"key": 1, "body": "one", "said": [{"by": "x"}]}, {"key": 2, "body": "two", "said": []}]
    for lines in (posts, [{"of": [{"no": 1}]}, *posts]):
        path = kept(io.BytesIO("\n".join(map(json.dumps, lines)).encode()), tmp_path)
        reader = DocumentReader(path, on_error="skip")
        with pytest.raises(SourceError, match="name one with --id-field"):
            next(iter(reader))
        assert reader.total == len(lines)


def test_a_bad_first_line_is_one(tmp_path: Path) -> None:
    path = kept(io.BytesIO(b'{"id": "z", "text": NaN}\n' + LINES), tmp_path)
    reader = DocumentReader(path, on_error="skip")
    assert list(reader) == EXPECTED
    assert reader.skips[0].reason == '"text" is nan: JSON has no such number; use null'


def test_nothing_is_a_source_without_documents(tmp_path: Path) -> None:
    assert list(DocumentReader(kept(io.BytesIO(b""), tmp_path))) == []


def test_what_is_packed_and_damaged_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the gz data is damaged or cut off after its beginning"):
        kept(io.BytesIO(gzip.compress(LINES)[:20]), tmp_path)
