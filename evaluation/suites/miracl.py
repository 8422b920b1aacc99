"""Reads MIRACL: for each language topics and judgments, and a corpus of passages of Wikipedia.

As https://huggingface.co/datasets/miracl/miracl and .../miracl/miracl-corpus lay the files out:
`miracl-v1.0-LANG/topics/topics.miracl-v1.0-LANG-SPLIT.tsv` (id, tab, query),
`miracl-v1.0-LANG/qrels/qrels.miracl-v1.0-LANG-SPLIT.tsv` (TREC) and
`miracl-corpus-v1.0-LANG/docs-N.jsonl.gz` (docid, title, text). X. Zhang et al., TACL 2023.
"""

from __future__ import annotations

from pathlib import Path

from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.errors import DatasetError
from tercet.evaluation.judgments import judged_queries, read_topics, read_trec_qrels
from tercet.evaluation.suites.files import first_file, folders_here_and_below
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.reading import Reading

TOPICS = "miracl-v1.0-"
CORPUS = "miracl-corpus-v1.0-"
DEV = "dev"
READING = Reading(ColumnChoice(text="text", id="docid", metadata=()))


def read_miracl(folder: Path, split: str | None) -> list[Dataset]:
    """A data set for each language below a folder, or below the two repositories in it.

    Raises DatasetError for a language that lacks a part, and for a line that cannot be used.
    """
    parents = folders_here_and_below(folder)
    topics = {
        path.name.removeprefix(TOPICS): path for parent in parents for path in parent.glob(f"{TOPICS}*")
    }
    if not topics:
        raise DatasetError(
            f"{folder}: not MIRACL: looked for {TOPICS}LANG/topics and {CORPUS}LANG/docs-N.jsonl.gz, here "
            "and in the folders below"
        )
    return [
        _language(topics[language], language, split or DEV, _corpus(parents, language))
        for language in sorted(topics)
    ]


def _language(folder: Path, language: str, split: str, corpus: Corpus) -> Dataset:
    name = f"miracl-v1.0-{language}-{split}.tsv"
    topics = first_file([folder / "topics" / f"topics.{name}"], "topics")
    path = first_file([folder / "qrels" / f"qrels.{name}"], "judgments")
    queries = read_topics(topics)
    judged = judged_queries(queries, read_trec_qrels(path, queries), path)
    return Dataset(
        judged.queries,
        judged.qrels,
        judged.unjudged_queries,
        name=language,
        split=split,
        corpus=corpus,
        judgments=path.name,
    )


def _corpus(parents: list[Path], language: str) -> Corpus:
    folders = [parent / f"{CORPUS}{language}" for parent in parents]
    files = sorted(path for folder in folders for path in folder.glob("docs-*.jsonl*"))
    if not files:
        raise DatasetError(
            f"there is no corpus of {language}; looked for docs-N.jsonl.gz in {', '.join(map(str, folders))}"
        )
    return Corpus(tuple(files), READING)
