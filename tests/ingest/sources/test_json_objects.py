"""JSON files that are one object: a document of its own, or what holds the records, found or said."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import USUAL, ColumnChoice
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

LINKS = [{"id": "l1", "text": "See the kettle."}, {"id": "l2", "text": "See the cup."}]
ARTICLE = {"id": "a", "title": "Tea", "text": "Hot tea.", "links": LINKS}
PAPER = {
    "paper_id": "p1",
    "metadata": {"title": "On tea", "authors": [{"first": "A", "last": "B", "affiliation": {}}]},
    "abstract": [{"text": "We boil.", "section": "Abstract"}],
    "body_text": [{"text": "Water first."}, {"text": "Then leaves."}],
    "bib_entries": {"B0": {"title": "On water", "authors": [{"first": "C"}]}},
    "back_matter": [],
}
QUESTIONS = {
    "version": "1",
    "data": [
        {
            "title": "Tea",
            "paragraphs": [{"context": "Tea is hot.", "qas": [{"id": "q1"}]}, {"context": "Mint."}],
        },
        {"title": "None", "paragraphs": []},
        {"title": "Cups", "paragraphs": [{"context": "A cup holds it.", "qas": []}]},
    ],
}
CONTEXTS = ["Tea is hot.", "Mint.", "A cup holds it."]


def written(path: Path, value: Any, indent: int | None = 1) -> Path:
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def read(path: Path, columns: ColumnChoice = USUAL, records: str | None = None) -> list[Any]:
    keys = None if records is None else tuple(records.split("."))
    return list(DocumentReader(path, reading=Reading(columns, records=keys)))


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "article",
    [
        ARTICLE,
        {"links": LINKS, "more": {"lists": [LINKS[0]]}, "id": "a", "TEXT": "Hot tea."},  # the text comes last
        {"id": "a", "links": LINKS, "contents": ["Hot", "tea."]},
        {"id": "a", "messages": [{"role": "user", "content": "Hot?"}]},
    ],
)
def test_an_object_with_its_own_text_is_a_document(
    tmp_path: Path, article: dict[str, Any], indent: int | None
) -> None:
    (document,) = read(written(tmp_path / "x.json", article, indent))
    assert document.id == "a"
    assert document.text.startswith("Hot")
    assert document.metadata.get("links") == article.get("links")


@pytest.mark.parametrize("indent", [None, 1])
def test_a_named_text_of_the_object_makes_it_a_document(tmp_path: Path, indent: int | None) -> None:
    path = written(tmp_path / "x.json", PAPER, indent)
    (document,) = read(path, ColumnChoice("body_text.text", "metadata.title", "paper_id"))
    assert (document.id, document.title) == ("p1", "On tea")
    assert document.text == "Water first.\n\nThen leaves."


def test_several_lists_are_refused_with_what_to_do(tmp_path: Path) -> None:
    said = (
        r"x\.json: several lists of objects are in it \(metadata\.authors, abstract, body_text, "
        r"bib_entries\.B0\.authors\): name the one of the records with --records, or the text with "
        r"--text-field, such as abstract\.text, where all of it is one document"
    )
    for on_error in ("stop", "skip"):
        with pytest.raises(SourceError, match=said):
            list(DocumentReader(written(tmp_path / "x.json", PAPER), on_error=on_error))  # type: ignore[arg-type]


def test_messages_of_an_export_are_records(tmp_path: Path) -> None:
    export = {"name": "group", "messages": [{"id": 1, "text": "Tea?"}, {"id": 2, "text": "Tea."}]}
    assert [one.text for one in read(written(tmp_path / "x.json", export))] == ["Tea?", "Tea."]


@pytest.mark.parametrize("indent", [None, 1])
def test_records_lie_where_it_is_said(tmp_path: Path, indent: int | None) -> None:
    choice = ColumnChoice(text="context", generate_ids=True)
    squad = written(tmp_path / "x.json", QUESTIONS, indent)
    assert [one.text for one in read(squad, choice, "data.paragraphs")] == CONTEXTS
    array = written(tmp_path / "y.json", QUESTIONS["data"], indent)
    assert [one.text for one in read(array, choice, "paragraphs")] == CONTEXTS
    packed = tmp_path / "z.json.gz"
    packed.write_bytes(gzip.compress(squad.read_bytes()))
    assert [one.text for one in read(packed, choice, "data.paragraphs")] == CONTEXTS
    lines = tmp_path / "x.jsonl"
    lines.write_text("\n".join(json.dumps(each) for each in [QUESTIONS, 5, *QUESTIONS["data"]]))
    reader = DocumentReader(lines, reading=Reading(choice, records=("data", "paragraphs")))
    assert [one.text for one in reader] == CONTEXTS
    assert reader.total is None


def test_records_are_an_object_as_well_as_a_list(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", {"tags": [{"no": 1}], "post": {"of": ARTICLE}, "more": [{"no": 2}]})
    assert [one.id for one in read(path, records="post.of")] == ["a"]
    assert [one.id for one in read(path, records="post.of.links")] == ["l1", "l2"]


def test_one_of_several_lists_is_read_where_it_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", {"text": "About it.", "old": LINKS[:1], "new": LINKS[1:]})
    assert [one.id for one in read(path, records="new")] == ["l2"]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            "datas",
            r"no records at 'datas' \(--records\): there is no 'datas'; the keys there are version, data",
        ),
        ("data.paragraph", r"there is no 'paragraph'; the keys there are title, paragraphs"),
        ("version.x", r"there is no 'x'; there is a string"),
        ("none", r"no records at 'none' \(--records\): that list is empty"),
    ],
)
@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_a_path_that_leads_nowhere_is_told(tmp_path: Path, name: str, records: str, said: str) -> None:
    path = written(tmp_path / name, {**QUESTIONS, "none": []}, indent=None)
    with pytest.raises(SourceError, match=said):
        read(path, records=records)


def test_records_go_with_json(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,text\na,b\n")
    with pytest.raises(SourceError, match="--records goes with JSON"):
        read(tmp_path / "x.csv", records="data")


def test_a_long_list_beside_others_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write('{"about": [{"no": 1}], "data": [')
        file.write(",".join(json.dumps({"in": [{"id": str(n), "text": "tea " * 500}]}) for n in range(5000)))
        file.write("]}")
    reader = DocumentReader(path, line_bytes=2**16, reading=Reading(records=("data", "in")))
    tracemalloc.start()
    try:
        assert sum(1 for _ in reader) == 5000
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20 < path.stat().st_size
    finally:
        tracemalloc.stop()


def test_an_object_without_texts_and_lists_is_told_with_its_keys(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", {"columns": ["id", "text"], "data": [["a", "tea"]]})
    with pytest.raises(
        SourceError, match=r"no array of objects is in it; its keys are columns, data; give one"
    ):
        read(path)
