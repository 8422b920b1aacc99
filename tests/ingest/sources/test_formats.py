"""Files of which somebody says what they are, whatever their names end in."""

import json
from pathlib import Path

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from tercet.ingest.errors import SourceError
from tercet.ingest.sources.formats import FileFormat
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

RECORD = {"id": "a", "text": "Hot tea."}


def content(format: FileFormat, path: Path) -> None:
    table = pyarrow.table({name: [value] for name, value in RECORD.items()})
    match format:
        case "jsonl":
            path.write_text(json.dumps(RECORD) + "\n\n")
        case "json":
            path.write_text(json.dumps([RECORD]))
        case "csv":
            path.write_text("id;text\na;Hot tea.\n")
        case "tsv":
            path.write_text("id\ttext\na\tHot tea.\n")
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "arrow":
            with pyarrow.ipc.new_stream(str(path), table.schema) as writer:
                writer.write_table(table)
        case "html":
            path.write_text("<html><body><p>Hot tea.</p></body></html>")
        case "markdown":
            path.write_text("---\nid: a\n---\nHot tea.\n")
        case _:
            path.write_text("Hot tea.")


@pytest.mark.parametrize("name", ["wiki_00", "data.bin", "dump.csv"])
@pytest.mark.parametrize(
    "format", ["jsonl", "json", "csv", "tsv", "parquet", "arrow", "markdown", "html", "text"]
)
def test_a_file_is_read_as_what_it_is_said_to_be(tmp_path: Path, name: str, format: FileFormat) -> None:
    content(format, tmp_path / name)
    (document,) = DocumentReader(tmp_path / name, reading=Reading(format=format))
    assert document.text.strip() == RECORD["text"]
    assert document.id == (name if format in ("markdown", "html", "text") else "a")


def test_a_folder_is_of_files_of_the_format(tmp_path: Path) -> None:
    for part in ("AA", "AB"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "wiki_00").write_text(json.dumps({"id": part, "text": "tea"}) + "\n")
    (tmp_path / "README.md").write_text("About it.")
    reader = DocumentReader(tmp_path, reading=Reading(format="jsonl"))
    assert [document.id for document in reader] == ["AA", "AB"]
    texts = DocumentReader(tmp_path, reading=Reading(format="text"))
    assert [document.id for document in texts] == ["README.md", "AA/wiki_00", "AB/wiki_00"]


def test_lines_in_a_file_called_json(tmp_path: Path) -> None:
    """Which are no array of the object on the first line, and are no bad record for the second."""
    (tmp_path / "x.json").write_text('{"id": "a", "text": "tea"}\nbroken\n{"id": "b", "text": "cup"}\n')
    reader = DocumentReader(tmp_path / "x.json", on_error="skip", reading=Reading(format="jsonl"))
    assert [document.id for document in reader] == ["a", "b"]


def test_a_file_of_no_known_kind_is_refused_with_the_flag(tmp_path: Path) -> None:
    content("jsonl", tmp_path / "wiki_00")
    with pytest.raises(SourceError, match="or --format must say what the file is"):
        DocumentReader(tmp_path / "wiki_00")


def test_what_is_no_such_file_is_told(tmp_path: Path) -> None:
    content("text", tmp_path / "x.jsonl")
    with pytest.raises(SourceError, match="not a readable Parquet or Arrow file"):
        DocumentReader(tmp_path / "x.jsonl", reading=Reading(format="parquet"))
