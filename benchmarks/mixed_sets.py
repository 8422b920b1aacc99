"""Judged sets of documents in two languages, put together of sets whose documents say the same in each.

A query has a right document in each language. Those of mixed-en-zh are in English and in Chinese by turns,
those of mixed-ko-en in Korean.
"""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

QUERIES = 500  # of a set, at most
# Sets with the same ids of queries: in one language each, with queries in it or in the other one.
PARTS = {
    "mixed-en-zh": ("xquad-en", "xquad-zh"),
    "mixed-ko-en": ("msmarco-ko", "msmarco-ko-to-en"),
}


def make_mixed_set(name: str, data: Path, folder: Path) -> Path:
    """Writes a set of PARTS in BEIR's layout below `folder`, from those in `data`, and returns where."""
    parts = [data / part for part in PARTS[name]]
    made = folder / name
    (made / "qrels").mkdir(parents=True)
    documents = [
        {**document, "_id": f"{part.name}-{document['_id']}"}
        for part in parts
        for document in _lines(part / "corpus.jsonl.gz")
    ]
    asked = [{query["_id"]: query for query in _lines(part / "queries.jsonl.gz")} for part in parts]
    shared = islice((id for id in asked[0] if all(id in queries for queries in asked)), QUERIES)
    chosen = {id: asked[turn % len(parts)][id] for turn, id in enumerate(shared)}
    judgments = [
        f"{query}\t{part.name}-{document}\t{score}"
        for part in parts
        for query, document, score in map(str.split, _judgments(part))
        if query in chosen
    ]
    _write(made / "corpus.jsonl.gz", documents)
    _write(made / "queries.jsonl.gz", list(chosen.values()))
    text = "\n".join(["query-id\tcorpus-id\tscore", *judgments])
    (made / "qrels" / "test.tsv").write_text(text + "\n", encoding="utf-8")
    return made


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _judgments(part: Path) -> list[str]:
    return (part / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
