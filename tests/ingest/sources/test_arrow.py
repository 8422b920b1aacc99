"""Arrow IPC files and streams: the values of Parquet, the same bounds, and what is damaged."""

import json
import uuid
from pathlib import Path
from typing import Any, Literal

import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from tercet.index.candidates import Document
from tercet.ingest.errors import SourceError
from tercet.ingest.sources import arrow_rows
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

MEBIBYTE = 2**20
TABLE = pyarrow.table(
    {
        "id": [1, 2, 3],
        "text": ["one", "two", "three"],
        "at": pyarrow.array([0, None, 1], pyarrow.timestamp("ns", "UTC")),
        "kind": pyarrow.array(["a", "b", "a"]).dictionary_encode(),
        "sizes": [[1, 2], [], None],
    }
)
EXPECTED = [
    Document("1", "one", None, {"at": "1970-01-01T00:00:00+00:00", "kind": "a", "sizes": [1, 2]}),
    Document("2", "two", None, {"kind": "b", "sizes": []}),
    Document("3", "three", None, {"at": "1970-01-01T00:00:00.000000001+00:00", "kind": "a"}),
]


def write(
    path: Path,
    table: pyarrow.Table,
    form: Literal["file", "stream"] = "file",
    compression: str | None = None,
    rows: int = 2,
) -> Path:
    make = pyarrow.ipc.new_file if form == "file" else pyarrow.ipc.new_stream
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)  # type: ignore[call-arg]
    with make(str(path), table.schema, options=options) as writer:
        writer.write_table(table, rows)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form", "compression"),
    [
        ("x.arrow", "file", None),
        ("x.arrows", "file", "zstd"),
        ("X.IPC", "file", "lz4"),
        ("x.arrow", "stream", "zstd"),
        ("X.IPC", "stream", None),
        ("x.feather", "stream", "lz4"),
    ],
)
def test_files_and_streams_hold_what_parquet_does(
    tmp_path: Path, name: str, form: Literal["file", "stream"], compression: str | None
) -> None:
    """A process reads each, so not every name is combined with every compression."""
    reader = DocumentReader(write(tmp_path / name, TABLE, form, compression))
    assert list(reader) == EXPECTED
    assert reader.total == (3 if form == "file" else None)
    assert reader.fraction == 1.0


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, tmp_path / "x.parquet")
    assert list(DocumentReader(tmp_path / "x.parquet")) == EXPECTED


def test_feather_as_its_own_writer_makes_it(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(TABLE, str(tmp_path / "x.feather"))
    assert list(DocumentReader(tmp_path / "x.feather")) == EXPECTED
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    with pytest.raises(SourceError, match=r"old\.feather: .* Feather of version 1; write it as version 2"):
        DocumentReader(tmp_path / "old.feather")


@pytest.mark.slow
def test_a_folder_that_hugging_face_datasets_saved(tmp_path: Path) -> None:
    for part in range(2):
        write(tmp_path / f"data-{part:05d}-of-00002.arrow", TABLE.slice(2 * part, 2), "stream")
    write(tmp_path / "cache-0123456789abcdef.arrow", TABLE, "stream")  # what its map() left there
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": {}}))
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data"}]}))
    assert list(DocumentReader(tmp_path)) == EXPECTED


def test_a_stream_tells_how_far_it_is_read(tmp_path: Path) -> None:
    table = pyarrow.table({"id": [f"d{row}" for row in range(1000)], "text": ["x" * 100] * 1000})
    reader = DocumentReader(write(tmp_path / "x.arrow", table, "stream", rows=100))
    shares = [reader.fraction for _ in reader]
    assert shares == sorted(shares)
    assert (shares[0], len(set(shares))) == (0.0, 10)
    assert 0.4 < shares[500] < 0.6


@pytest.mark.slow
def test_a_batch_of_more_than_the_memory_is_read_where_it_is_not_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_rows, "MEMORY_BYTES", 256 * MEBIBYTE)
    table = pyarrow.table({"id": [f"d{row}" for row in range(400)], "text": ["x" * MEBIBYTE] * 400})
    documents = DocumentReader(write(tmp_path / "x.arrow", table, rows=400))
    assert sum(len(document.text) for document in documents) == 400 * MEBIBYTE
    (tmp_path / "x.arrow").unlink()
    packed = write(tmp_path / "packed.arrow", table, compression="zstd", rows=400)
    assert packed.stat().st_size < MEBIBYTE
    with pytest.raises(SourceError, match=r"packed\.arrow: .*takes more than 256 MiB of memory"):
        list(DocumentReader(packed, on_error="skip"))


@pytest.mark.slow
def test_what_points_outside_of_its_data_is_damaged(tmp_path: Path) -> None:
    offsets = pyarrow.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 10_000, 3)))
    texts = pyarrow.Array.from_buffers(
        pyarrow.string(), 2, [None, offsets, pyarrow.py_buffer(b"one" + bytes(61))]
    )
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(["a", "b"]), texts], ["id", "text"])
    for name, make in (("x.arrow", pyarrow.ipc.new_file), ("y.arrow", pyarrow.ipc.new_stream)):
        with make(str(tmp_path / name), batch.schema) as writer:
            writer.write_batch(batch)
        with pytest.raises(SourceError, match=rf"{name}: damaged \(.*\) after row 0"):
            list(DocumentReader(tmp_path / name, on_error="skip"))


@pytest.mark.parametrize("cut", [0, 4, 100, 700])
def test_what_is_cut_off_or_none_is_told(tmp_path: Path, cut: int) -> None:
    for form in ("file", "stream"):
        path = write(tmp_path / f"{form}.arrow", TABLE, form)  # type: ignore[arg-type]
        path.write_bytes(path.read_bytes()[:cut])
        with pytest.raises(SourceError, match=rf"{form}\.arrow: (not a readable Arrow file|damaged)"):
            list(DocumentReader(path, on_error="skip"))
    (tmp_path / "x.arrow").write_bytes(b"none of it, whatever it is")
    with pytest.raises(SourceError, match=r"x\.arrow: not a readable Arrow file"):
        DocumentReader(tmp_path / "x.arrow")


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(["a"])] * 3, ["id", "text", "text"])
    with pytest.raises(SourceError, match="the column 'text' is there twice; rename one"):
        DocumentReader(write(tmp_path / "x.arrow", pyarrow.Table.from_batches([batch])))


UUID = "9f6c2f0e-8a3b-4b7a-9a1e-000000000001"
SPARSE = pyarrow.UnionArray.from_sparse(
    pyarrow.array([0], pyarrow.int8()), [pyarrow.array([1.5]), pyarrow.array(["b"])]
)


VALUES: dict[str, tuple[pyarrow.Array, Any]] = {
    str(values.type): (values, expected)
    for values, expected in [
        (pyarrow.array([[1, 2]], pyarrow.list_view(pyarrow.int64())), [1, 2]),
        (pyarrow.array(["x"], pyarrow.string_view()), "x"),
        (pyarrow.array([1.5], pyarrow.float16()), 1.5),
        (pyarrow.array([0], pyarrow.timestamp("s", "Mars/Base")), "1970-01-01T00:00:00+00:00"),
        (pyarrow.array([uuid.UUID(UUID).bytes], pyarrow.uuid()), UUID),
        (pyarrow.RunEndEncodedArray.from_arrays([1], pyarrow.array([5])), 5),
        (SPARSE, 1.5),
        (
            pyarrow.ExtensionArray.from_storage(
                pyarrow.fixed_shape_tensor(pyarrow.int32(), [2]),
                pyarrow.array([[1, 2]], pyarrow.list_(pyarrow.int32(), 2)),
            ),
            [1, 2],
        ),
    ]
}


def test_values_that_parquet_has_no_type_for(tmp_path: Path) -> None:
    columns = {name: values for name, (values, _) in VALUES.items()}
    path = write(tmp_path / "x.arrow", pyarrow.table({"id": ["a"], "text": ["x"], **columns}))
    reader = DocumentReader(path)
    (document,) = reader
    assert document.metadata == {name: expected for name, (_, expected) in VALUES.items()}
    assert reader.skips == []


def test_binary_columns_that_are_said_to_be_text_are(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "key": [b"a", b"b", b"c"],
            "Words": ["시".encode(), b"\xff", b"x"],
            "kind": [b"k", b"k", b"\xfe"],
            "raw": [b"r"] * 3,
        }
    )
    path = write(tmp_path / "x.arrow", table)
    reader = DocumentReader(
        path,
        on_error="skip",
        fields={"kind": "keyword"},
        reading=Reading(ColumnChoice(text="Words", id="key")),
    )
    assert list(reader) == [Document("a", "시", None, {"kind": "k"})]
    assert [skip.reason.partition(":")[0] for skip in reader.skips] == [
        '"Words" is binary, and no UTF-8 at byte 1',
        '"kind" is binary, and no UTF-8 at byte 1',
        "'raw' of 1 document",
    ]
