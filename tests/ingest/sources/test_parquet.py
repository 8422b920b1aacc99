"""Parquet files that unpack to far more than they hold: what is read or refused, in bounded memory."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.parquet
import pytest

from tercet.ingest.errors import SourceError
from tercet.ingest.sources import arrow_rows
from tercet.ingest.sources.reader import DocumentReader

pytestmark = pytest.mark.slow

MEBIBYTE = 2**20
ROWS = 400

READ = """
import resource, sys
from pathlib import Path
from tercet.ingest.sources.reader import DocumentReader

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
    assert int(peak_mebibytes) < 900


def test_rows_that_do_not_fit_together_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_rows, "MEMORY_BYTES", 256 * MEBIBYTE)
    reader = DocumentReader(write_repeated(tmp_path / "x.parquet", MEBIBYTE))
    assert [(document.id, len(document.text)) for document in reader] == [
        ("d0", 5),
        *((f"d{row}", MEBIBYTE) for row in range(1, ROWS)),
    ]


@pytest.mark.parametrize(
    ("column", "use_dictionary"),
    [
        (lambda: pyarrow.array([["t" * MEBIBYTE] * 300, ["z"]]), True),
        (lambda: pyarrow.array(["t" * 300 * MEBIBYTE, "z"]), False),
        (lambda: pyarrow.array([[("t" * MEBIBYTE, 1)] * 300, []], pyarrow.map_("string", "int64")), True),
    ],
    ids=["list", "page", "map"],
)
def test_a_row_of_more_than_the_memory_ends_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: Callable[[], pyarrow.Array], use_dictionary: bool
) -> None:
    monkeypatch.setattr(arrow_rows, "MEMORY_BYTES", 256 * MEBIBYTE)
    path = tmp_path / "x.parquet"
    table = pyarrow.table({"id": ["a", "b"], "text": ["x", "y"], "more": column()})
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


def test_what_metadata_cannot_hold_is_the_fault_of_its_row(tmp_path: Path) -> None:
    deep, very_deep = ('{"a": ' * levels + "1" + "}" * levels for levels in (600, 2000))
    table = pyarrow.table(
        {
            "id": ["a", "b", "c", "d"],
            "text": ["x"] * 4,
            "metadata": ['{"n": 18446744073709551615}', deep, very_deep, '{"n": 18446744073709551616}'],
        }
    )
    reader = read(tmp_path, table)
    assert [document.metadata for document in reader] == [{"n": 2**64 - 1}]
    reasons = [skip.reason for skip in reader.skips]
    assert "deeper than 64 levels" in reasons[0]
    assert "metadata may have 64 levels" in reasons[1]
    assert "metadata.n is wrong: the integer 18446744073709551616 does not fit in 64 bits" in reasons[2]


def read(tmp_path: Path, table: pyarrow.Table) -> DocumentReader:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(table, path)
    return DocumentReader(path, on_error="skip")


MOMENT = 1715938200123456789  # 2024-05-17T09:30:00.123456789Z


VALUES: list[tuple[pyarrow.Array, Any]] = [
    (pyarrow.array([MOMENT], pyarrow.timestamp("ns")), "2024-05-17T09:30:00.123456789"),
    (pyarrow.array([MOMENT], pyarrow.timestamp("ns", "UTC")), "2024-05-17T09:30:00.123456789+00:00"),
    (
        pyarrow.array([MOMENT], pyarrow.timestamp("ns", "Asia/Seoul")),
        "2024-05-17T18:30:00.123456789+09:00",
    ),
    (pyarrow.array([MOMENT - 789], pyarrow.timestamp("ns")), "2024-05-17T09:30:00.123456"),
    (pyarrow.array([10**18], pyarrow.timestamp("ns")), "2001-09-09T01:46:40"),
    (pyarrow.array([-1], pyarrow.timestamp("ns")), "1969-12-31T23:59:59.999999999"),
    (pyarrow.array([MOMENT // 1000], pyarrow.timestamp("us")), "2024-05-17T09:30:00.123456"),
    (pyarrow.array([3_600_000_000_001], pyarrow.time64("ns")), "01:00:00.000000001"),
    (pyarrow.array([3_600_000_000_000], pyarrow.time64("ns")), "01:00:00"),
    (pyarrow.array([19_860], pyarrow.date32()), "2024-05-17"),
    (pyarrow.array([1_500_000_000], pyarrow.duration("ns")), "PT1.5S"),
    (pyarrow.array([-1], pyarrow.duration("ns")), "-PT0.000000001S"),
    (pyarrow.array([90_061], pyarrow.duration("s")), "PT90061S"),
    (pyarrow.array([Decimal("12345.60")], pyarrow.decimal128(10, 2)), 12345.6),
    (pyarrow.array([Decimal("123456789012345678")], pyarrow.decimal128(18, 0)), 123456789012345678),
    (pyarrow.array([Decimal("1234567890123456789")], pyarrow.decimal128(19, 0)), "1234567890123456789"),
    (pyarrow.array([Decimal("0.10")], pyarrow.decimal128(38, 2)), "0.10"),
    (pyarrow.array([2**64 - 1], pyarrow.uint64()), 2**64 - 1),
    (pyarrow.array([MOMENT], pyarrow.int64()), MOMENT),
    (pyarrow.array([0.1], pyarrow.float32()), 0.10000000149011612),
    (pyarrow.array([True]), True),
    (pyarrow.array([[1, None]]), [1, None]),
    (
        pyarrow.array([[MOMENT]], pyarrow.list_(pyarrow.timestamp("ns"))),
        ["2024-05-17T09:30:00.123456789"],
    ),
    (
        pyarrow.array([{"a": MOMENT, "b": None}], pyarrow.struct([("a", "int64"), ("b", "int8")])),
        {"a": MOMENT},
    ),
    (pyarrow.array([[("k", [1])]], pyarrow.map_("string", pyarrow.list_(pyarrow.int64()))), {"k": [1]}),
]


def test_values_are_those_of_json_exactly(tmp_path: Path) -> None:
    columns = {str(place): values for place, (values, _) in enumerate(VALUES)}
    reader = read(tmp_path, pyarrow.table({"id": ["a"], "text": ["x"], **columns}))
    (document,) = reader
    for place, (_, expected) in enumerate(VALUES):
        value = document.metadata[str(place)]
        assert (value, type(value)) == (expected, type(expected))
    assert reader.skips == []


def test_durations_are_seconds_where_a_number_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    kinds = {"long": "s", "short": "ms", "said": "s"}
    columns = {name: pyarrow.array([1500], pyarrow.duration(unit)) for name, unit in kinds.items()}
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "text": ["x"], **columns}), path)
    (document,) = DocumentReader(path, fields={"long": "integer", "short": "number"})
    assert document.metadata == {"long": 1500, "short": 1.5, "said": "PT1500S"}


def test_durations_of_lines_are_seconds_too(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "x", "a": "-P1DT2H3M4.5S", "b": ["PT1M", "PT1H"], "c": "PT"}]
    (tmp_path / "x.jsonl").write_text(json.dumps(rows[0]))
    reader = DocumentReader(tmp_path / "x.jsonl", fields={"a": "number", "b": "integer", "c": "keyword"})
    assert [document.metadata for document in reader] == [{"a": -93784.5, "b": [60, 3600], "c": "PT"}]


def test_what_json_has_nothing_for_is_left_out_and_told(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "id": ["a", "b", "c"],
            "text": ["x", "y", "z"],
            "blob": [b"\x00", None, b""],
            "many": [[b"\x00"], None, None],
            "keyed": pyarrow.array([[(1, 2)], None, None], pyarrow.map_("int64", "int64")),
            "part": [{"kept": 1, "raw": b"\xff"}] * 3,
        }
    )
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(table, path)
    for on_error in ("stop", "skip"):
        reader = DocumentReader(path, on_error=on_error)  # type: ignore[arg-type]
        assert [document.metadata for document in reader] == [{"part": {"kept": 1}}] * 3
        assert reader.skipped == 0
        assert [str(skip).removeprefix(f"{path}: ").partition(":")[0] for skip in reader.skips] == [
            "'blob' of 2 documents",
            "'keyed' of 1 document",
            "'many' of 1 document",
            "'part.raw' of 3 documents",
        ]


def test_a_bad_value_is_the_fault_of_its_row_alone(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "id": ["a", "b", "c", "d"],
            "text": ["x"] * 4,
            "n": [1.5, math.nan, None, None],
            "at": pyarrow.array([0, 0, 2**60, None], pyarrow.timestamp("us")),
            "pairs": pyarrow.array([[], [], [], [("k", 1), ("k", 2)]], pyarrow.map_("string", "int64")),
        }
    )
    reader = read(tmp_path, table)
    assert [document.id for document in reader] == ["a"]
    assert [skip.reason.partition(" (")[0] for skip in reader.skips] == [
        '"n" is nan: use null for an unknown number',
        '"at" cannot be read',
        "\"pairs\" has the key 'k' twice",
    ]


def test_text_that_is_said_to_be_binary_is_text(tmp_path: Path) -> None:
    table = pyarrow.table({"id": [b"a", b"b"], "text": ["시".encode(), b"\xff"], "title": [b"t", None]})
    reader = read(tmp_path, table)
    assert [(document.id, document.title, document.text) for document in reader] == [("a", "t", "시")]
    assert reader.skips[0].reason == '"text" is binary, and no UTF-8 at byte 1'


def test_fields_of_moments_take_nanoseconds_and_numbers_no_long_integers(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    moments = pyarrow.array([MOMENT, MOMENT], pyarrow.timestamp("ns", "UTC"))
    table = pyarrow.table({"id": ["a", "b"], "text": ["x"] * 2, "at": moments, "n": [2**53, 2**53 + 1]})
    pyarrow.parquet.write_table(table, path)
    reader = DocumentReader(path, on_error="skip", fields={"at": "datetime", "n": "number"})
    assert [document.id for document in reader] == ["a"]
    assert "9007199254740993 is beyond ±9007199254740992" in reader.skips[0].reason


def test_a_reader_that_is_killed_is_told(tmp_path: Path) -> None:
    path = write_repeated(tmp_path / "x.parquet", MEBIBYTE)
    documents = iter(DocumentReader(path))
    next(documents)
    (child,) = [
        each for each in psutil.Process().children() if "tercet.ingest.sources.arrow_lines" in each.cmdline()
    ]
    child.kill()
    with pytest.raises(SourceError, match=r"ended with exit code -9 after row \d+"):
        list(documents)


def test_reading_that_stops_early_leaves_no_process(tmp_path: Path) -> None:
    others = psutil.Process().children()  # which other tests began
    documents = iter(DocumentReader(write_repeated(tmp_path / "x.parquet", MEBIBYTE)))
    next(documents)
    before = [each for each in psutil.Process().children() if each not in others]
    documents.close()  # type: ignore[attr-defined]
    assert before
    assert [each for each in before if each.is_running()] == []
