"""Folders of parts: their order, what is left out, columns of folders' names; several sources as one."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tercet.index.candidates import Document
from tercet.index.errors import DuplicateDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.files import source_files
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading


def write(path: Path, *ids: str, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [{"id": each, "text": f"text {each}", **columns} for each in ids]
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    elif path.suffix == ".arrow":
        table = pyarrow.Table.from_pylist(records)
        with pyarrow.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".csv":
        path.write_text("id,text\n" + "".join(f"{each},text {each}\n" for each in ids))
    else:
        path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl", "json"])
def test_folders_give_columns(tmp_path: Path, ending: str) -> None:
    write(tmp_path / "lang=en" / "year=2024" / f"part-0.{ending}", "a", "b")
    write(tmp_path / "lang=de" / "year=2023" / f"part-0.{ending}", "c")
    write(tmp_path / "lang=__HIVE_DEFAULT_PARTITION__" / f"year=2%2F3%20%25=1.{ending}", "d")
    write(tmp_path / "lang=a%2Fb" / "plain" / f"part.{ending}", "e")
    reader = DocumentReader(tmp_path, fields={"year": "integer", "lang": "keyword"})
    assert [(document.id, document.metadata) for document in reader] == [
        ("d", {}),  # a file's own name gives none
        ("e", {"lang": "a/b"}),
        ("c", {"lang": "de", "year": 2023}),
        ("a", {"lang": "en", "year": 2024}),
        ("b", {"lang": "en", "year": 2024}),
    ]
    text = DocumentReader(tmp_path / "lang=en")  # the source's own name gives none, either
    assert [document.metadata for document in text] == [{"year": "2024"}] * 2


@pytest.mark.slow
def test_a_folder_that_does_not_fit_a_field_is_the_fault_of_its_records(tmp_path: Path) -> None:
    write(tmp_path / "year=now" / "x.parquet", "a")
    write(tmp_path / "year=2024" / "x.parquet", "b")
    reader = DocumentReader(tmp_path, on_error="skip", fields={"year": "integer"})
    assert [document.id for document in reader] == ["b"]
    (skip,) = reader.skips
    assert str(skip).startswith(f"{tmp_path / 'year=now' / 'x.parquet'} row 1: field 'year' is declared as")


@pytest.mark.slow
def test_a_folders_column_goes_before_the_files_own_and_may_be_any_part(tmp_path: Path) -> None:
    write(tmp_path / "lang=en" / "title=T%20T" / "x.parquet", "a", lang="none")
    assert list(DocumentReader(tmp_path)) == [Document("a", "text a", "T T", {"lang": "en"})]
    reader = DocumentReader(tmp_path, reading=Reading(ColumnChoice(id="lang", title="id")))
    assert list(reader) == [Document("en", "text a", "a", {"title": "T T"})]


def test_what_holds_no_data_is_left_out_and_the_order_is_that_of_paths(tmp_path: Path) -> None:
    names = ["b.jsonl", "a/2.jsonl", "a/10.jsonl", "a.jsonl", "_x=1/p.jsonl"]
    for name in [*names, ".hidden.jsonl", "_temporary/0/p.jsonl", ".git/p.jsonl", "a/_part.jsonl"]:
        write(tmp_path / name, name)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    found = [str(path.relative_to(tmp_path)) for path in source_files(tmp_path)]
    assert found == ["_x=1/p.jsonl", "a/10.jsonl", "a/2.jsonl", "a.jsonl", "b.jsonl"]


def test_a_linked_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "x.jsonl", "a")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "link").symlink_to(tmp_path / "elsewhere")
    assert [document.id for document in DocumentReader(tmp_path / "source")] == ["a"]


def test_kinds_are_not_mixed_within_a_folder_but_json_describes(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", "a")
    (tmp_path / "dataset_info.json").write_text("{}")
    assert [document.id for document in DocumentReader(tmp_path)] == ["a"]
    write(tmp_path / "below" / "y.csv", "b")
    with pytest.raises(SourceError, match=r"holds x\.parquet and y\.csv, which are not of one kind; name"):
        source_files(tmp_path)


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie"])
def test_a_table_whose_log_tells_what_holds_is_refused(tmp_path: Path, log: str) -> None:
    write(tmp_path / "table" / "x.parquet", "a")
    (tmp_path / "table" / log).mkdir()
    with pytest.raises(SourceError, match=r"table: a (Delta|Hudi) table, whose log tells which files hold"):
        source_files(tmp_path)


@pytest.mark.slow
def test_several_sources_are_as_one(tmp_path: Path) -> None:
    sources = [
        write(tmp_path / "b.csv", "a", "b"),
        write(tmp_path / "a.jsonl", "c"),
        write(tmp_path / "parts" / "year=1" / "x.parquet", "d").parents[1],
    ]
    reader = DocumentReader(sources)
    assert [document.id for document in reader] == ["a", "b", "c", "d"]
    assert reader.fraction == 1.0
    assert document_of(DocumentReader(sources), "d").metadata == {"year": "1"}


def document_of(reader: DocumentReader, identifier: str) -> Document:
    return next(document for document in reader if document.id == identifier)


def test_an_id_is_one_over_all_sources_and_errors_name_the_file(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.csv", "x", "7"), write(tmp_path / "b.jsonl", "7", "y")
    with pytest.raises(DuplicateDocumentError, match=rf"^{second} line 1: the id '7' .* at {first} line 3"):
        list(DocumentReader([first, second]))
    second.write_text('{"id": "z", "text": null}')
    with pytest.raises(SourceError, match=rf'^{second} line 1: "text" is missing'):
        list(DocumentReader([first, write(tmp_path / "c.jsonl", "z"), second]))
    with pytest.raises(SourceError, match=r"no\.jsonl: no such file or folder"):
        DocumentReader([first, tmp_path / "no.jsonl"])
    with pytest.raises(SourceError, match="no source is given"):
        DocumentReader([])
