"""Each publisher's layout as data sets, and what is said of a folder that has another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tercet.evaluation.answers import judgments_of
from tercet.evaluation.dataset import Dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.metrics import figures, parse_measures
from tercet.evaluation.suites.names import SuiteName
from tercet.evaluation.suites.presets import SUITES


def read(name: SuiteName, folder: Path, split: str | None = None) -> dict[str, Dataset]:
    return {dataset.name: dataset for dataset in SUITES[name].read(folder, split)}


def documents(dataset: Dataset) -> dict[str, str]:
    return {document.id: document.encoded_text for document in dataset.corpus}


def test_miracl_has_a_data_set_for_each_language(miracl: Path) -> None:
    datasets = read("miracl", miracl)
    assert list(datasets) == ["ko", "sw"]
    swahili = datasets["sw"]
    assert (swahili.split, swahili.judgments) == ("dev", "qrels.miracl-v1.0-sw-dev.tsv")
    assert (swahili.queries, swahili.unjudged_queries) == ({"7": "Mto mrefu ni upi?"}, 1)
    assert swahili.qrels == {"7": {"10#0": 1, "10#1": 0}}
    assert documents(swahili) == {
        "10#0": "Nile\nThe longest river (sw).",
        "10#1": "Nile\nBoats sail on it.",
    }


def test_mldr_judges_by_passages(mldr: Path) -> None:
    datasets = read("mldr", mldr)
    assert list(datasets) == ["de", "en"]
    assert datasets["de"].qrels == {"q-de-1": {"doc-1": 1, "doc-2": 0}}
    assert documents(datasets["de"])["doc-2"] == "Snow fell on the hills."


def test_narrativeqa_is_one_folder_of_that_kind(mldr: Path) -> None:
    [dataset] = read("narrativeqa", (mldr / "mldr-v1.0-en").rename(mldr / "narrativeqa")).values()
    assert (dataset.name, dataset.split, list(dataset.queries)) == ("narrativeqa", "test", ["q-en-1"])


def test_mkqa_counts_answers(mkqa: Path) -> None:
    datasets = read("mkqa", mkqa)
    assert list(datasets) == ["da", "de"]
    german = datasets["de"]
    assert list(german.queries) == ["5", "6"]
    assert german.unjudged_queries == 1
    assert german.answers == {"5": ("Ada Lovelace", "Countess Lovelace"), "6": ("1843-10", "October 1843")}
    assert german.corpus == datasets["da"].corpus
    # The answer to 5 is the first passage, that to 6 the second.
    run = {"5": ["doc0", "doc2"], "6": ["doc2", "doc1"]}
    measures = parse_measures(["Success@1,Success@20"])
    assert figures(judgments_of(german, [run], 20), run, measures).means == {
        "Success@1": 0.5,
        "Success@20": 1.0,
    }


def test_msmarco_takes_the_small_queries_where_they_are(msmarco: Path) -> None:
    [small] = read("msmarco", msmarco).values()
    assert (small.split, small.queries) == ("dev.small", {"12": "who said no"})
    [whole] = read("msmarco", msmarco, "dev").values()
    assert (list(whole.queries), whole.unjudged_queries) == (["11", "12"], 1)
    assert documents(whole) == {"0": 'He said "no.', "1": '"Yes" is what 5" means', "2": "A third passage"}
    (msmarco / "qrels.dev.small.tsv").unlink()
    assert [dataset.split for dataset in read("msmarco", msmarco).values()] == ["dev"]


def test_beir_has_a_data_set_for_each_folder(beir: Path) -> None:
    datasets = read("beir", beir)
    assert {name: dataset.split for name, dataset in datasets.items()} == {
        "english": "test",
        "msmarco": "dev",
        "scifact": "test",
    }
    assert list(read("nq", beir / "scifact")) == ["scifact"]


@pytest.mark.parametrize(
    ("name", "looked_for"),
    [
        ("miracl", r"looked for miracl-v1\.0-LANG/topics and miracl-corpus-v1\.0-LANG/docs-N\.jsonl\.gz"),
        ("mkqa", r"no file of questions; looked for .*mkqa\.jsonl, .*mkqa\.jsonl\.gz, .*dataset/mkqa\.jsonl"),
        ("mldr", r"looked for corpus\.jsonl\.gz and test\.jsonl\.gz, .* such as mldr-v1\.0-en"),
        ("narrativeqa", r"looked for corpus\.jsonl\.gz"),
        ("msmarco", r"no file of passages; looked for .*collection\.tsv, .*collection\.tsv\.gz"),
        ("nq", r"looked for corpus\.jsonl, queries\.jsonl and qrels/test\.tsv"),
        ("beir", r"looked for corpus\.jsonl"),
    ],
)
def test_a_folder_of_another_layout_is_refused(name: SuiteName, looked_for: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=looked_for):
        read(name, tmp_path)


def test_a_language_that_lacks_a_part_is_refused(miracl: Path) -> None:
    with pytest.raises(DatasetError, match=r"no file of topics; looked for .*topics\.miracl-v1\.0-ko-testA"):
        read("miracl", miracl, "testA")
    for part in (miracl / "corpus" / "miracl-corpus-v1.0-ko").iterdir():
        part.unlink()
    with pytest.raises(DatasetError, match=r"no corpus of ko; looked for docs-N\.jsonl\.gz in "):
        read("miracl", miracl)


@pytest.mark.parametrize(
    ("name", "file", "line", "complaint"),
    [
        ("msmarco", "qrels.dev.small.tsv", "12\t0\t1", "line 1: expected the 4 columns .*, found 3"),
        ("msmarco", "qrels.dev.small.tsv", "99\t0\t1\t1", "line 1: query id '99' is not in the queries"),
        ("msmarco", "queries.dev.small.tsv", "12 who", "line 1: expected a query id, a tab and the query"),
        ("narrativeqa", "test.jsonl", {"query": "?"}, '"query_id" must be a string or a whole number'),
        ("narrativeqa", "test.jsonl", {"query_id": 1}, '"query" must be a string'),
        (
            "narrativeqa",
            "test.jsonl",
            {"query_id": 1, "query": "?", "positive_passages": ["d"]},
            '"positive_passages" must be a list of objects',
        ),
        ("mkqa", "mkqa.jsonl", {"example_id": 1}, 'expected "example_id", "queries" and "answers"'),
        ("mkqa", "mkqa.jsonl", {"example_id": 1, "queries": {}}, '"answers" must have a list of objects'),
    ],
)
def test_a_bad_line_is_named(
    msmarco: Path,
    write: Callable[[str, Iterable[Any]], Path],
    name: SuiteName,
    file: str,
    line: object,
    complaint: str,
) -> None:
    write("corpus.jsonl", [{"_id": "d", "text": "A text."}])
    write(file, [line])
    with pytest.raises(DatasetError, match=complaint):
        read(name, msmarco)
