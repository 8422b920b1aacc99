"""Reads MS MARCO's passage ranking: `collection.tsv`, `queries.SPLIT.tsv` and `qrels.SPLIT.tsv`.

As https://microsoft.github.io/msmarco/Datasets publishes the files: id, tab and passage or query a line, and
judgments in TREC's form. The 6,980 queries that papers report are of `dev.small`; `dev` has 101,093.
"""

from __future__ import annotations

from pathlib import Path

from tercet.evaluation.dataset import Corpus, Dataset
from tercet.evaluation.judgments import judged_queries, read_topics, read_trec_qrels
from tercet.evaluation.suites.files import first_file
from tercet.ingest.sources.reading import Reading

SPLITS = ("dev.small", "dev")
READING = Reading(names=("id", "text"), delimiter="\t")


def read_msmarco(folder: Path, split: str | None) -> list[Dataset]:
    """The one data set of a folder, of the small queries of `dev` where they are there.

    Raises DatasetError for a file that is missing and for a line that cannot be used.
    """
    collection = first_file([folder / "collection.tsv"], "passages")
    splits = SPLITS if split is None else (split,)
    path = first_file([folder / f"qrels.{each}.tsv" for each in splits], "judgments")
    split = path.name.removesuffix(".gz").removeprefix("qrels.").removesuffix(".tsv")
    queries = read_topics(first_file([folder / f"queries.{split}.tsv"], "queries"))
    judged = judged_queries(queries, read_trec_qrels(path, queries), path)
    return [
        Dataset(
            judged.queries,
            judged.qrels,
            judged.unjudged_queries,
            name=folder.resolve().name,
            split=split,
            corpus=Corpus((collection,), READING),
            judgments=path.name,
        )
    ]
