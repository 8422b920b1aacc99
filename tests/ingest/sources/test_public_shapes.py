"""Files as people publish them: each loads as it comes, with at most two flags. The texts are our own."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import USUAL, ColumnChoice
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import USUAL_READING, Reading

GENERATED = Reading(ColumnChoice(generate_ids=True))


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def help_centre(folder: Path) -> Path:
    """Articles with line breaks and quotes in their cells, and no ids."""
    path = folder / "articles.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [
            ["policy", "content"],
            ["Refunds", 'How do I get money back?\n\n## By card\nSay "refund", then wait.\n'],
        ]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return path


def candidate_pool(folder: Path) -> Path:
    path = folder / "pool.JSONL"
    path.write_text(lines({"docid": 12, "contents": "Bees dance.", "score": 0.5}), encoding="utf-8")
    return path


def chat_messages(folder: Path) -> Path:
    """A message a line, with times as ids."""
    path = folder / "messages.jsonl"
    path.write_text(lines({"ts": "1700000000.25", "user": "u1", "text": "물이 끓었나요?", "reactions": None}))
    return path


def conversations(folder: Path) -> Path:
    """A conversation a line, its turns in a list of objects."""
    turns = [{"role": "user", "content": "Is it hot?"}, {"role": "assistant", "content": "It is."}]
    path = folder / "chats.jsonl"
    path.write_text(lines({"messages": turns}))
    return path


def shared_conversations(folder: Path) -> Path:
    turns = [{"from": "human", "value": "뜨거운가요?"}, {"from": "gpt", "value": "네."}]
    path = folder / "share.json"
    path.write_text(json.dumps([{"id": "s1", "conversations": turns}]))
    return path


def autorag(folder: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    moment = {
        "last_modified_datetime": pa.scalar(1_700_000_000_000_001, pa.timestamp("us")).as_py(),
        "prev_id": None,
    }
    path = folder / "corpus.parquet"
    parquet.write_table(pa.table({"doc_id": ["p-1"], "contents": ["Hot tea."], "metadata": [moment]}), path)
    return path


def dataset_folder(folder: Path) -> Path:
    """Parts in partitions, with a README and a marker beside them."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for language, text in (("en", "tea"), ("ko", "차")):
        inner = folder / "data" / f"lang={language}"
        inner.mkdir(parents=True)
        table = pa.table({"id": [f"{language}-1"], "text": [text], "embedding": [[0.5, 0.25]]})
        parquet.write_table(table, inner / "train-00000-of-00001.parquet")
    (folder / "data" / "README.md").write_text("---\nlicense: cc0-1.0\n---\n# A dataset\n")
    (folder / "data" / "_SUCCESS").touch()
    return folder / "data"


def saved_dataset(folder: Path) -> Path:
    """As Hugging Face's datasets save them: a stream of Arrow beside JSON."""
    pa = pytest.importorskip("pyarrow")
    (folder / "saved").mkdir()
    (folder / "saved" / "dataset_info.json").write_text('{"features": {"text": {}}}')
    (folder / "saved" / "state.json").write_text('{"_data_files": []}')
    table = pa.table({"title": ["Tea"], "text": ["Hot tea."], "label": pa.array([1], pa.int8())})
    with pa.ipc.new_stream(str(folder / "saved" / "data-00000-of-00001.arrow"), table.schema) as writer:
        writer.write_table(table)
    return folder / "saved"


def ranking_collection(folder: Path) -> Path:
    """Numbers and passages between tabs, without names, where quotes are characters as others."""
    path = folder / "collection.tsv"
    path.write_text('0\t"Hot tea," he said.\n1\t"No end of quotes\n2\tplain\n')
    return path


def korean_spreadsheet(folder: Path) -> Path:
    path = folder / "상담.csv"
    rows = "번호;질문;답변\n" + "".join(
        f"{n};배송은 얼마나 걸리나요?;보통 이틀 안에 도착합니다.\n" for n in range(40)
    )
    path.write_bytes(rows.encode("cp949"))
    return path


def wiki_dump(folder: Path) -> Path:
    path = folder / "wiki.jsonl.bz2"
    record = {"id": 12, "url": "https://example.org/?curid=12", "title": "Tea", "text": "Tea is a drink."}
    path.write_bytes(bz2.compress(lines(record).encode()))
    return path


def export_array(folder: Path) -> Path:
    """An export of a shop: everything in one object."""
    path = folder / "products.json"
    products = [{"id": 1, "name": "Kettle", "description": "Boils water.", "price": 19.9, "tags": ["new"]}]
    path.write_text(json.dumps({"exported_at": "2026-01-01", "products": products}, indent=1))
    return path


def beir(folder: Path) -> Path:
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (folder / "queries.jsonl").write_text(lines({"_id": "q1", "text": "tea"}))
    record = {"_id": "d1", "title": "", "text": "Hot tea.", "metadata": {}}
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(lines(record).encode()))
    return folder


def spreadsheet(folder: Path) -> Path:
    """As spreadsheets write Unicode text: UTF-16 with a mark, and tabs."""
    path = folder / "notes.tsv"
    path.write_bytes("ID\tBody\tDone\r\na\tÇay sıcak\tyes\r\n".encode("utf-16"))
    return path


def documentation(folder: Path) -> Path:
    pytest.importorskip("markdown_it")
    (folder / "docs" / "guide").mkdir(parents=True)
    (folder / "docs" / "guide" / "tea.md").write_text("---\ntitle: Tea\ntags: [hot]\n---\n\nBoil water.\n")
    (folder / "docs" / "logo.png").write_bytes(b"\x89PNG")
    return folder / "docs"


def wiki_search_dump(folder: Path) -> Path:
    """As bulk requests: a line that says what the next one is."""
    path = folder / "wiki-content.json.gz"
    action = {"index": {"_type": "page", "_id": "7"}}
    path.write_bytes(gzip.compress(lines(action, {"title": "Tea", "text": "Hot tea."}).encode()))
    return path


def extracted_wiki(folder: Path) -> Path:
    (folder / "AA").mkdir()
    (folder / "AA" / "wiki_00").write_text(lines({"id": "7", "title": "Tea", "text": "Hot tea."}))
    return folder


def question_paragraphs(folder: Path) -> Path:
    paragraphs = [{"context": "Hot tea.", "qas": [{"question": "Hot?"}]}]
    path = folder / "train.json"
    path.write_text(json.dumps({"version": "1", "data": [{"title": "Tea", "paragraphs": paragraphs}]}))
    return path


def questions_with_sentences(folder: Path) -> Path:
    """Articles as pairs of a title and its sentences."""
    path = folder / "hops.json"
    context = [["Tea", ["Hot.", "Wet."]], ["Cup", ["Round."]]]
    path.write_text(json.dumps([{"_id": "h1", "question": "Which?", "context": context}]))
    return path


def search_answer(folder: Path) -> Path:
    hits = [{"_index": "tea", "_id": "1", "_source": {"body": "Hot tea."}}]
    path = folder / "answer.json"
    path.write_text(json.dumps({"took": 1, "hits": {"total": {"value": 1}, "hits": hits}}, indent=2))
    return path


def answers_of_a_site(folder: Path) -> Path:
    path = folder / "items.json"
    items = [{"question_id": 5, "title": "Tea?", "body": "<p>Hot?", "owner": {"name": "B"}}]
    path.write_text(json.dumps({"items": items, "has_more": False}))
    return path


def frame_with_schema(folder: Path) -> Path:
    """As pandas writes a table with its schema."""
    path = folder / "table.json"
    fields = [{"name": "id", "type": "string"}, {"name": "text", "type": "string"}]
    path.write_text(json.dumps({"schema": {"fields": fields}, "data": [{"id": "a", "text": "Hot tea."}]}))
    return path


def numbered_rows(folder: Path) -> Path:
    """With a mark, and row numbers in a column without a name."""
    path = folder / "train.csv"
    path.write_bytes("\ufeff,id,text\r\n0,a,Hot tea.\r\n".encode())
    return path


def spreadsheet_with_separator(folder: Path) -> Path:
    path = folder / "sheet.csv"
    path.write_text("sep=;\r\nid;text\r\na;Hot tea.\r\n")
    return path


def feature_collection(folder: Path) -> Path:
    path = folder / "places.geojson"
    feature = {"type": "Feature", "properties": {"id": 3, "text": "A tea house."}, "geometry": {}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return path


SHAPES: list[tuple[Callable[[Path], Path], Reading, dict[str, Any]]] = [
    (help_centre, GENERATED, {"metadata": {"policy": "Refunds"}}),
    (candidate_pool, USUAL_READING, {"id": "12", "text": "Bees dance.", "metadata": {"score": 0.5}}),
    (chat_messages, Reading(ColumnChoice(id="ts")), {"id": "1700000000.25", "metadata": {"user": "u1"}}),
    (conversations, GENERATED, {"text": "Is it hot?\n\nIt is."}),
    (shared_conversations, USUAL_READING, {"id": "s1", "text": "뜨거운가요?\n\n네."}),
    (
        autorag,
        USUAL_READING,
        {"id": "p-1", "metadata": {"last_modified_datetime": "2023-11-14T22:13:20.000001"}},
    ),
    (dataset_folder, USUAL_READING, {"id": "en-1", "metadata": {"lang": "en", "embedding": [0.5, 0.25]}}),
    (saved_dataset, GENERATED, {"title": "Tea", "metadata": {"label": 1}}),
    (ranking_collection, Reading(names=("id", "text")), {"id": "0", "text": '"Hot tea," he said.'}),
    (
        korean_spreadsheet,
        Reading(ColumnChoice(text="답변", id="번호")),
        {"id": "0", "text": "보통 이틀 안에 도착합니다.", "metadata": {"질문": "배송은 얼마나 걸리나요?"}},
    ),
    (wiki_dump, USUAL_READING, {"id": "12", "title": "Tea"}),
    (export_array, Reading(ColumnChoice(text="description")), {"id": "1", "title": "Kettle"}),
    (beir, USUAL_READING, {"id": "d1", "title": None, "metadata": {}}),
    (spreadsheet, USUAL_READING, {"id": "a", "text": "Çay sıcak", "metadata": {"Done": "yes"}}),
    (wiki_search_dump, USUAL_READING, {"id": "7", "title": "Tea", "text": "Hot tea."}),
    (extracted_wiki, Reading(format="jsonl"), {"id": "7", "title": "Tea"}),
    (
        question_paragraphs,
        Reading(ColumnChoice(generate_ids=True), records=("data", "paragraphs")),
        {"title": None, "text": "Hot tea."},
    ),
    (
        questions_with_sentences,
        USUAL_READING,
        {"id": "h1", "text": "Tea\n\nHot.\n\nWet.\n\nCup\n\nRound."},
    ),
    (search_answer, Reading(ColumnChoice(text="_source.body")), {"id": "1", "text": "Hot tea."}),
    (answers_of_a_site, Reading(ColumnChoice(id="question_id")), {"id": "5", "title": "Tea?"}),
    (frame_with_schema, Reading(records=("data",)), {"id": "a"}),
    (numbered_rows, USUAL_READING, {"id": "a", "metadata": {"column 1": "0"}}),
    (spreadsheet_with_separator, USUAL_READING, {"id": "a", "text": "Hot tea."}),
    (feature_collection, Reading(format="json", records=("features", "properties")), {"id": "3"}),
    (documentation, USUAL_READING, {"id": "guide/tea.md", "title": "Tea"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "reading", "expected"), SHAPES, ids=[write.__name__ for write, _, _ in SHAPES]
)
def test_files_as_people_publish_them(
    tmp_path: Path, write: Callable[[Path], Path], reading: Reading, expected: dict[str, Any]
) -> None:
    assert flags(reading) <= 2
    reader = DocumentReader(write(tmp_path), reading=reading)
    found: Document = next(iter(reader))
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.text
    assert reader.skipped == 0


def flags(reading: Reading) -> int:
    """How many flags say so."""
    chosen = sum(getattr(reading.columns, name) != getattr(USUAL, name) for name in ColumnChoice.__slots__)
    return chosen + sum(part is not None for part in _of_the_file(reading))


def _of_the_file(reading: Reading) -> tuple[object, ...]:
    return (reading.encoding, reading.delimiter, reading.names, reading.format, reading.records)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"columns": ["id"], "index": [0], "data": [["a"]]}, "its keys are columns, index, data; give one"),
        ({"0": {"id": "a", "text": "tea"}, "1": {}}, "no array of objects is in it; its keys are 0, 1; give"),
        ([["a", "tea"]], "expected a JSON object, got an array"),
    ],
)
def test_shapes_that_are_refused(tmp_path: Path, content: Any, said: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(SourceError, match=said):
        list(DocumentReader(tmp_path / "x.json"))


def test_objects_after_one_another_are_refused_where_the_second_is(tmp_path: Path) -> None:
    objects = [json.dumps({"id": name, "text": "tea"}, indent=1) for name in "ab"]
    (tmp_path / "x.json").write_text("\n".join(objects))
    with pytest.raises(SourceError, match="more follows its end at line 5, column 1"):
        list(DocumentReader(tmp_path / "x.json", on_error="skip"))


def test_lines_of_a_bulk_request_are_told_from_documents(tmp_path: Path) -> None:
    index, text = {"index": {"_index": "x"}}, {"text": "tea"}
    path = tmp_path / "x.ndjson"
    path.write_text(lines(index, {"_id": "a", **text}, {"create": {"_id": 2}}, text, {"id": "c", **text}))
    reader = DocumentReader(path)
    assert [document.id for document in reader] == ["a", "2", "c"]
    assert reader.total == 3


def test_all_rows_of_a_table_with_bare_quotes_are_there(tmp_path: Path) -> None:
    reader = DocumentReader(ranking_collection(tmp_path), reading=Reading(names=("id", "text")))
    assert [document.text for document in reader] == ['"Hot tea," he said.', '"No end of quotes', "plain"]


def test_quoted_cells_between_tabs_are_read_as_such(tmp_path: Path) -> None:
    content = io.StringIO()
    csv.writer(content, delimiter="\t").writerows(
        [["id", "text"], ["a", 'He said "tea"\nand left'], ["b", "x"]]
    )
    (tmp_path / "x.tsv").write_text(content.getvalue())
    assert [one.text for one in DocumentReader(tmp_path / "x.tsv")] == ['He said "tea"\nand left', "x"]
