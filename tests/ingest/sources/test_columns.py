"""Columns by their usual names, by flags, by paths; what is unclear; ids of the content."""

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from tercet.index.candidates import Document
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import USUAL, ColumnChoice, content_id
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading
from tercet.ingest.sources.usual_names import IDS, TEXTS, TITLES


def read(path: Path, *records: Any, on_error: Any = "stop", **choice: Any) -> list[Document]:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    reader = DocumentReader(path, on_error=on_error, reading=Reading(ColumnChoice(**choice)))
    return list(reader)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("own", IDS)
@pytest.mark.parametrize("title", TITLES)
def test_usual_names(tmp_path: Path, text: str, own: str, title: str) -> None:
    record = {own: 7, text: "hot tea", title: "Tea", "year": 1999}
    assert read(tmp_path / "x.jsonl", record) == [Document("7", "hot tea", "Tea", {"year": 1999})]


def test_usual_names_in_any_case(tmp_path: Path) -> None:
    record = {"ID": "a", "Content": "tea", "TITLE": "T", "Kind": "k"}
    assert read(tmp_path / "x.jsonl", record) == [Document("a", "tea", "T", {"Kind": "k"})]
    both = {"ID": "a", "id": "b", "TEXT": "no", "text": "tea"}
    assert read(tmp_path / "x.jsonl", both) == [Document("b", "tea", None, {"ID": "a", "TEXT": "no"})]
    taken_apart = {
        normalize("NFD", name): value for name, value in {"번호": 7, "내용": "차", "제목": "T"}.items()
    }
    assert read(tmp_path / "x.jsonl", taken_apart) == [Document("7", "차", "T")]


def test_the_first_names_go_before_the_others(tmp_path: Path) -> None:
    record = {"id": "a", "pid": 3, "text": "tea", "body": "water", "title": "T", "name": "N"}
    (found,) = read(tmp_path / "x.jsonl", record)
    assert found == Document("a", "tea", "T", {"pid": 3, "body": "water", "name": "N"})
    record = {"id": "a", "context": "of a pot", "content": "tea"}
    assert read(tmp_path / "y.jsonl", record) == [Document("a", "tea", None, {"context": "of a pot"})]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"id": "a", "words": "x"}, "none of text, .* the columns are id, words: name one with --text-field"),
        ({"id": "a", "body": "x", "content": "y"}, "'content' and 'body' may be meant; .*--text-field"),
        ({"text": "x", "year": 1}, "none of id, .*columns are text, year: .* --id-field, or give --gen"),
        ({"text": "x", "pid": 1, "doc_id": 2}, "'doc_id' and 'pid' may be meant; .*--id-field"),
    ],
)  # fmt: skip
def test_what_is_unclear_names_the_columns_and_the_flag(tmp_path: Path, record: Any, said: str) -> None:
    with pytest.raises(SourceError, match=rf"x\.jsonl: {said}"):
        read(tmp_path / "x.jsonl", record, on_error="skip")


def test_flags_and_paths_into_objects(tmp_path: Path) -> None:
    record = {
        "key": {"no": 5},
        "post": {"words": "hot tea", "by": "Kim"},
        "head.line": "Tea",
        "id": 1,
        "x": None,
    }
    (found,) = read(
        tmp_path / "x.jsonl",
        record,
        text="post.words",
        title="head.line",
        id="key.no",
        metadata=("post.by", "x", "id"),
    )
    assert found == Document("5", "hot tea", "Tea", {"post.by": "Kim", "id": 1})
    (found,) = read(tmp_path / "x.jsonl", {"id": "a", "text": "x", "y": 1, "z": 2}, not_metadata=("z",))
    assert found.metadata == {"y": 1}
    for name in ("text", "title", "id"):
        with pytest.raises(
            SourceError, match=rf"no column 'gone' \(--{name}-field\); the columns are id, text"
        ):
            read(tmp_path / "x.jsonl", {"id": "a", "text": "x"}, **{name: "gone"})


def test_a_path_that_leads_nowhere_names_the_keys_that_are_there(tmp_path: Path) -> None:
    records = [
        {"id": "a", "article": {"body": "tea", "head": {"line": "T"}}, "parts": [{"no": 1}], "n": 3},
        {"id": "b", "article": {"body": "tea", "by": "Kim"}},
    ]
    for choice, said in (
        (
            {"text": "article.para"},
            r"no column 'article.para' \(--text-field\); 'article' has the keys body, ",
        ),
        ({"text": "article.head.lines"}, r"'article.head' has the keys line$"),
        ({"text": "article.body", "title": "parts.name"}, r"\(--title-field\); 'parts' has the keys no$"),
        ({"text": "article.body", "id": "n.no"}, r"no column 'n.no' \(--id-field\); 'n' is no object$"),
    ):
        with pytest.raises(SourceError, match=said):
            read(tmp_path / "x.jsonl", *records, on_error="skip", **choice)
    found = read(tmp_path / "x.jsonl", *records, text="article.body", title="article.head.line")
    assert [document.title for document in found] == ["T", None]


def test_all_columns_that_are_not_found_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as told:
        read(tmp_path / "x.jsonl", {"key": "a", "words": "x"}, title="head")
    assert str(told.value) == (
        f"{tmp_path / 'x.jsonl'}: none of {', '.join(TEXTS)} is there (name one with --text-field); "
        f"none of {', '.join(IDS)} is there (name one with --id-field, or give --generate-ids); "
        "no column 'head' (--title-field); the columns are key, words"
    )


def test_a_title_that_the_first_records_lack_is_one(tmp_path: Path) -> None:
    records = [{"id": "a", "text": "x"}, {"id": "b", "text": "y", "title": "T"}]
    assert [document.title for document in read(tmp_path / "x.jsonl", *records)] == [None, "T"]


def test_a_record_without_the_column_is_bad(tmp_path: Path) -> None:
    records = [
        {"pid": 1, "body": "x"},
        {"pid": 2},
        {"body": "z"},
        {"pid": None, "body": "z"},
        {"pid": 1.5, "body": "z"},
    ]
    assert [found.id for found in read(tmp_path / "x.jsonl", *records, on_error="skip")] == ["1"]
    with pytest.raises(SourceError, match=r'x\.jsonl line 2: "body" is missing'):
        read(tmp_path / "x.jsonl", *records)


def test_generated_ids_follow_from_the_content(tmp_path: Path) -> None:
    records = [
        {"text": "tea", "year": 1, "kind": "a"},
        {"kind": "a", "year": 1, "text": "tea"},
        {"text": "tea"},
    ]
    first, other = read(tmp_path / "x.jsonl", *records, generate_ids=True)
    assert first.id == content_id("tea", None, {"kind": "a", "year": 1})  # the second is the same document
    assert len({first.id, other.id, content_id("tea", "T", {})}) == 3
    assert len(first.id) == 32


def test_what_no_document_may_hold_is_refused_though_ids_are_generated(tmp_path: Path) -> None:
    lines = [
        '{"text": "a", "k": 12345678901234567890123}',
        '{"text": "b", "k": %s}' % ("[" * 900 + "]" * 900),
    ]
    (tmp_path / "x.jsonl").write_text("\n".join([*lines, '{"text": "\\ud83d"}']))
    reader = DocumentReader(
        tmp_path / "x.jsonl", on_error="skip", reading=Reading(ColumnChoice(generate_ids=True))
    )
    assert [document.text for document in reader] == ["\ud83d"]
    assert reader.skipped == 2


def test_a_column_of_partitions(tmp_path: Path) -> None:
    records = [{"id": "a", "text": "tea", "tenant": 7}, {"id": "b", "text": "tea"}]
    found = read(tmp_path / "x.jsonl", *records, partition="tenant")
    assert [document.metadata for document in found] == [{"tenant": 7, "partition": "7"}, {}]
    reader = DocumentReader(
        tmp_path / "x.jsonl",
        on_error="skip",
        reading=Reading(ColumnChoice(partition="tenant")),
        partitioned=True,
    )
    assert [document.id for document in reader] == ["a"]
    assert [skip.reason for skip in reader.skips] == [
        "document 'b': partition is null; a document of a partitioned collection has one, a text of 1 to 512 "
        "bytes"
    ]
    with pytest.raises(SourceError, match="--partition-field"):
        read(tmp_path / "x.jsonl", records[0], partition="none")


def test_what_is_said_of_columns() -> None:
    assert USUAL.among(["id", "text", "lang"], "x").usual
    found = USUAL.among(["pid", "body", "name"], "x")
    assert (str(found), found.usual) == ("text from 'body', title from 'name', ids from 'pid'", False)
    generated = ColumnChoice(generate_ids=True).among(["text"], "x")
    assert (str(generated), generated.usual) == ("text from 'text', ids from the content", False)


def test_our_own_shape_is_required_where_nothing_is_read(tmp_path: Path) -> None:
    columns = USUAL.among([], "x")
    with pytest.raises(InvalidDocumentError, match='"text" is missing'):
        columns.document({})


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv", "x.tsv", "x.parquet", "x.arrow"])
def test_all_kinds_of_files_need_ids_alike(tmp_path: Path, name: str) -> None:
    for rows, said in (
        ([{"text": "one"}, {"text": "two"}], "none of id, _id, .*or give --generate-ids"),
        ([{"id": "a", "text": "one"}, {"text": "two"}], r'"id" \(or "_id"\) is missing'),
    ):
        names = list(rows[0])
        table = pyarrow.table({column: [row.get(column) for row in rows] for column in names})
        path, between = tmp_path / name, "\t" if name == "x.tsv" else ","
        if name == "x.parquet":
            pyarrow.parquet.write_table(table, path)
        elif name == "x.arrow":
            with pyarrow.ipc.new_stream(str(path), table.schema) as writer:
                writer.write_table(table)
        elif name == "x.jsonl":
            path.write_text("\n".join(map(json.dumps, rows)))
        elif name == "x.json":
            path.write_text(json.dumps(rows))
        else:
            cells = [names, *([row.get(column, "") for column in names] for row in rows)]
            path.write_text("\n".join(map(between.join, cells)))
        with pytest.raises(SourceError, match=said):
            list(DocumentReader(path))
        made = DocumentReader(path, reading=Reading(ColumnChoice(generate_ids=True)))
        assert [len(document.id) for document in made] == [32, 32]
