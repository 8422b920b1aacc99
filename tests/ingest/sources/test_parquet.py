"""Parquet files that unpack to far more than they hold: what is read or refused, in bounded memory."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.parquet
import pytest

from ingest.errors import SourceError
from ingest.sources import parquet
from ingest.sources.reader import DocumentReader

MEBIBYTE = 2**20
ROWS = 400

READ = """
import resource, sys
from pathlib import Path
from ingest.sources.reader import DocumentReader

reader = DocumentReader(Path(sys.argv[1]), on_error="skip", line_bytes=2**20)
read = [document.id for document in reader]
own = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
peak = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(read, reader.skipped, reader.skips[0], peak // 1024, sep="|")
"""


def write_repeated(path: Path, text_bytes: int) -> Path:
    """A file of a few kB: the text is the same in every row but the first, and stored once."""
    rows = pyarrow.array([0] + [1] * (ROWS - 1), pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(rows, pyarrow.array(["short", "a" * text_bytes]))
    table = pyarrow.table({"id": [f"d{row}" for row in range(ROWS)], "text": texts})
    options: Any = {"store_schema": False, "dictionary_pagesize_limit": 2**30}
    pyarrow.parquet.write_table(table, path, compression="zstd", **options)
    return path


def test_a_small_file_of_6_gigabytes_is_read_in_bounded_memory(tmp_path: Path, repository: Path) -> None:
    path = write_repeated(tmp_path / "x.parquet", 16 * MEBIBYTE)
    assert path.stat().st_size < 10_000
    result = subprocess.run(
        [sys.executable, "-c", READ, str(path)], cwd=repository, capture_output=True, text=True, check=True
    )
    read, skipped, first, peak_mebibytes = result.stdout.strip().split("|")
    assert (read, int(skipped)) == ("['d0']", ROWS - 1)
    assert first == f"{path} row 2: longer than 1048576 bytes, the limit for one document"
    assert int(peak_mebibytes) < 1200


def test_rows_that_do_not_fit_together_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MEMORY_BYTES", 256 * MEBIBYTE)
    reader = DocumentReader(write_repeated(tmp_path / "x.parquet", MEBIBYTE))
    assert [(document.id, len(document.text)) for document in reader] == [
        ("d0", 5),
        *((f"d{row}", MEBIBYTE) for row in range(1, ROWS)),
    ]


@pytest.mark.parametrize(
    ("column", "use_dictionary"),
    [
        (pyarrow.array([["t" * MEBIBYTE] * 300, ["z"]]), True),
        (pyarrow.array(["t" * 300 * MEBIBYTE, "z"]), False),
        (pyarrow.array([[("t" * MEBIBYTE, 1)] * 300, []], pyarrow.map_("string", "int64")), True),
    ],
    ids=["list", "page", "map"],
)
def test_a_row_of_more_than_the_memory_ends_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: pyarrow.Array, use_dictionary: bool
) -> None:
    monkeypatch.setattr(parquet, "MEMORY_BYTES", 256 * MEBIBYTE)
    path = tmp_path / "x.parquet"
    table = pyarrow.table({"id": ["a", "b"], "text": ["x", "y"], "more": column})
    pyarrow.parquet.write_table(table, path, compression="zstd", use_dictionary=use_dictionary)
    with pytest.raises(SourceError, match=f"^{path}: .*takes more than 256 MiB of memory"):
        list(DocumentReader(path, on_error="skip"))


def test_dictionary_columns_count_each_row_alone(tmp_path: Path) -> None:
    kinds = pyarrow.array([f"{row} " + "k" * 1000 for row in range(100)]).dictionary_encode()
    table = pyarrow.table({"id": [f"d{row}" for row in range(100)], "text": ["x"] * 100, "kind": kinds})
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(table, path)
    documents = list(DocumentReader(path, line_bytes=2000))
    assert [document.metadata["kind"] for document in documents] == kinds.to_pylist()


def test_what_json_cannot_hold_is_the_fault_of_its_row(tmp_path: Path) -> None:
    deep = '{"a": ' * 600 + "1" + "}" * 600
    table = pyarrow.table({"id": ["a", "b"], "text": ["x", "y"], "metadata": [None, deep]})
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(table, path)
    reader = DocumentReader(path, on_error="skip")
    assert [document.id for document in reader] == ["a"]
    assert "none of JSON" in reader.skips[0].reason


def test_a_reader_that_is_killed_is_told(tmp_path: Path) -> None:
    path = write_repeated(tmp_path / "x.parquet", MEBIBYTE)
    documents = iter(DocumentReader(path))
    next(documents)
    (child,) = [
        each for each in psutil.Process().children() if "ingest.sources.parquet_lines" in each.cmdline()
    ]
    child.kill()
    with pytest.raises(SourceError, match=r"ended with exit code -9 after row \d+"):
        list(documents)


def test_reading_that_stops_early_leaves_no_process(tmp_path: Path) -> None:
    documents = iter(DocumentReader(write_repeated(tmp_path / "x.parquet", MEBIBYTE)))
    next(documents)
    before = psutil.Process().children()
    documents.close()  # type: ignore[attr-defined]
    assert [each for each in before if each.is_running()] == []
