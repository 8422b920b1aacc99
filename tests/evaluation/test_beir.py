"""BEIR folders: what is read, and how a bad file or line is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tercet.evaluation.beir import read_dataset
from tercet.evaluation.errors import DatasetError
from tercet.ingest.errors import SourceError


def test_reads_documents_judged_queries_and_judgments(beir_folder: Path) -> None:
    dataset = read_dataset(beir_folder)
    assert dataset.name == "things"
    assert [document.id for document in dataset.corpus] == ["bread", "moon", "violin", "tide"]
    assert list(dataset.queries) == ["q1", "q2", "q3"]
    assert dataset.qrels["q2"] == {"tide": 2, "moon": 1}
    assert dataset.unjudged_queries == 1


def test_packed_files_read_alike(beir_folder: Path) -> None:
    plain = read_dataset(beir_folder)
    for name in ("corpus.jsonl", "queries.jsonl"):
        content = (beir_folder / name).read_bytes()
        (beir_folder / name).unlink()
        (beir_folder / f"{name}.gz").write_bytes(gzip.compress(content))
    packed = read_dataset(beir_folder)
    assert packed == plain
    assert len(list(packed.corpus)) == 4


@pytest.mark.parametrize(
    ("name", "line", "complaint"),
    [
        ("queries.jsonl", "{", "not JSON"),
        ("queries.jsonl", "[]", "expected an object"),
        ("queries.jsonl", '{"_id": 5, "text": "a"}', "must be strings"),
        ("queries.jsonl", '{"_id": "q1", "text": "again"}', "occurs a second time"),
        ("qrels/test.tsv", "q1\tbread", "expected 3 tab-separated columns, found 2"),
        ("qrels/test.tsv", "q9\tbread\t1", "'q9' is not in the queries file"),
        ("qrels/test.tsv", "q1\tbread\tgood", "'good' is not a whole number"),
        ("qrels/test.tsv", "q1\tmoon\t1_0", "'1_0' is not a whole number"),
        (
            "qrels/test.tsv",
            "q1\tmoon\t10000000000",
            "'10000000000' is not a whole number of at most 9 digits",
        ),
        ("qrels/test.tsv", "q2\ttide\t1", "query 'q2' and document 'tide' have another score above"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(
    beir_folder: Path, name: str, line: str, complaint: str
) -> None:
    path = beir_folder / name
    number = len(path.read_text().splitlines()) + 1
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DatasetError, match=complaint) as raised:
        read_dataset(beir_folder)
    assert f"{path} line {number}" in str(raised.value)


def test_a_bad_document_is_named(beir_folder: Path) -> None:
    with (beir_folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "x"}\n')
    with pytest.raises(SourceError, match="line 5"):
        list(read_dataset(beir_folder).corpus)


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(beir_folder: Path, name: str) -> None:
    (beir_folder / name).unlink()
    with pytest.raises(DatasetError, match=Path(name).name):
        read_dataset(beir_folder)


def test_a_folder_without_judgments_is_refused(beir_folder: Path) -> None:
    (beir_folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tbread\t0\n")
    with pytest.raises(DatasetError, match="nothing to measure"):
        read_dataset(beir_folder)
    with pytest.raises(DatasetError, match="no such folder"):
        read_dataset(beir_folder / "absent")
