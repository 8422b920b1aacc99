"""Types of fields that are found in the first documents: of JSON, of cells, of folders."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tercet.ingest.errors import SourceError
from tercet.ingest.sources import inference
from tercet.ingest.sources.inference import inferred_fields
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import USUAL_READING


def json_lines(path: Path, name: str, values: list[Any]) -> Path:
    lines = [
        {"id": n, "text": "x", **({} if value is None else {name: value})} for n, value in enumerate(values)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "boolean"),
        ([1, None, -(2**63), 3], "integer"),
        ([39.0, 40.0], "number"),
        ([1, 39.0], "number"),
        ([2**53 + 1, 39.0], None),
        ([2**63], None),
        ([1, 2.5], "number"),
        ([2**53 + 1, 2.5], None),
        (["2024-05-17", "2024-05-17 09:30:00+09:00"], "datetime"),
        (["2024-05-17", "soon"], "keyword"),
        (["01", "2"], "keyword"),
        (["1", "2"], "keyword"),
        ([1, "2"], None),
        ([True, 1], None),
        ([["a", "b"], "c", []], "keyword"),
        ([[1, 2], 3, []], "integer"),
        ([[1.0], 3, []], "number"),
        ([[1, 2.5]], "number"),
        ([["2024-05-17"], "2024-05-18 00:00:00"], "datetime"),
        ([[]], None),
        ([[1, None]], None),
        ([[True]], None),
        ([[[1]]], None),
        ([{"a": 1}], None),
        (["x" * 32, "y" * 32], "keyword"),
        (["x" * 33, "y" * 33], None),
        (["x" * 33] * 20, "keyword"),
        (["x" * 1025] * 20, None),
    ],
)
def test_values_of_json(tmp_path: Path, values: list[Any], kind: str | None) -> None:
    found = inferred_fields(json_lines(tmp_path / "x.jsonl", "v", values), USUAL_READING)
    assert found.fields == ({} if kind is None else {"v": kind})
    assert found.others == ([] if kind else ["v"])
    assert found.documents == len(values)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", " -2 ", ""], "integer"),
        (["1", "2.5", "1e3", ".5"], "number"),
        (["true", "FALSE"], "boolean"),
        (["0", "1"], "integer"),
        (["2024-05-17", "2024-05-17 09:30:00"], "datetime"),
        (["01234", "56789"], "keyword"),
        (["1", "n/a"], "keyword"),
        (["1", "true"], "keyword"),
        (["nan", "1"], "keyword"),
        (["9223372036854775808", "1"], "keyword"),
        ([f"{'long ' * 10}{n}" for n in range(5)], None),
    ],
)
def test_cells_of_csv_are_what_they_may_be_read_as(
    tmp_path: Path, cells: list[str], kind: str | None
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,text,v\n" + "".join(f"{n},x,{cell}\n" for n, cell in enumerate(cells)))
    fields = inferred_fields(path, USUAL_READING).fields
    assert fields == ({} if kind is None else {"v": kind})
    documents = list(DocumentReader(path, fields=fields))  # which all of them fit
    assert len(documents) == len(cells)
    if kind in ("integer", "number"):
        assert all(isinstance(each.metadata.get("v", 0), int | float) for each in documents)


@pytest.mark.slow
def test_parquet_and_its_folders(tmp_path: Path) -> None:
    for year, lang in (("2023", "en"), ("2024", "__HIVE_DEFAULT_PARTITION__")):
        table = pyarrow.table(
            {
                "id": [f"{year}{n}" for n in range(3)],
                "text": ["x"] * 3,
                "day": [datetime.date(2020, 1, 2), None, datetime.date(2020, 1, 3)],
                "price": pyarrow.array([1.0, 2.5, None]),
                "pages": pyarrow.array([1.0, 2.0, None]),
                "raw": [b"\x00"] * 3,
            }
        )
        folder = tmp_path / f"year={year}" / f"lang={lang}" / "run=1"
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(table, folder / "x.parquet")
    expected = {
        "day": "datetime",
        "price": "number",
        "pages": "number",
        "year": "integer",
        "lang": "keyword",
        "run": "integer",
    }
    assert inferred_fields(tmp_path, USUAL_READING).fields == expected
    (tmp_path / "year=2024").rename(tmp_path / "year=now")  # seen though it is not among the documents
    (tmp_path / "year=2023" / "lang=en" / "run=1").rename(tmp_path / "year=2023" / "lang=en" / "run=last")
    found = inferred_fields(tmp_path, USUAL_READING).fields
    assert (found["year"], found["run"]) == ("keyword", "keyword")


def test_all_folders_are_known_though_a_few_documents_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "SAMPLE_DOCUMENTS", 2)
    for year in ("1", "2", "none"):
        (tmp_path / f"year={year}").mkdir()
        json_lines(tmp_path / f"year={year}" / "x.jsonl", "n", [1, 2])
    found = inferred_fields(tmp_path, USUAL_READING)
    assert (found.documents, found.fields) == (2, {"n": "integer", "year": "keyword"})


def test_what_is_declared_is_left_alone_and_several_sources_are_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "SAMPLE_DOCUMENTS", 4)
    sources = [
        json_lines(tmp_path / "a.jsonl", "n", [1, 2, 3, 4, 5]),
        json_lines(tmp_path / "b.jsonl", "n", [1.5] * 9),
    ]
    found = inferred_fields(sources, USUAL_READING)
    assert (found.documents, found.fields) == (4, {"n": "number"})
    assert inferred_fields(sources, USUAL_READING, {"n": "number"}).fields == {}


def test_names_that_fields_cannot_have_and_more_than_there_may_be(tmp_path: Path) -> None:
    many = {f"f{n:03d}": n for n in range(120)}
    (tmp_path / "x.jsonl").write_text(json.dumps({"id": 1, "text": "x", " 이름": 1, "a\tb": 1, **many}))
    found = inferred_fields(tmp_path / "x.jsonl", USUAL_READING, {"own": "integer"})
    assert list(found.fields) == [f"f{n:03d}" for n in range(99)]
    assert found.others == [" 이름", "a\tb", *(f"f{n:03d}" for n in range(99, 120))]


def test_a_later_document_that_does_not_fit_names_the_flag(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.jsonl", "n", [1, 2, "three", 4])
    reader = DocumentReader(path, on_error="skip", fields={"n": "integer"}, guessed=["n"])
    assert [document.id for document in reader] == ["0", "1", "3"]
    assert (
        "which is what --infer-fields went by: say what it is with --field n:TYPE" in reader.skips[0].reason
    )
    with pytest.raises(SourceError, match=r"line 3: field 'n' is declared as integer, .*--field n:TYPE"):
        list(DocumentReader(path, fields={"n": "integer"}, guessed=["n"]))


def test_bad_records_tell_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"id": 1, "text": "x", "n": 1}\n{"id": 2, "text": 5, "n": "x"}\n{"id": 1, "text": "x"}\n'
    )
    found = inferred_fields(path, USUAL_READING)
    assert (found.documents, found.fields) == (1, {"n": "integer"})
