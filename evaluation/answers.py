"""Which of the passages that were found contain an answer, where a data set has answers instead of qrels.

A passage counts if the words of an answer stand in it one after the other, as DPR's evaluation has it, which
M3-Embedding's of MKQA follows: FlagEmbedding, `research/C_MTEB/MKQA`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice

import regex

from tercet.evaluation.dataset import Dataset
from tercet.evaluation.judgments import Qrels

WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
# Dashes and quotes of one kind, as the publisher's passages have them.
SAME_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‐‑⁃‒–—―−－⁻", "-"),
        **dict.fromkeys("“”„‟", '"'),
        **dict.fromkeys("’՚Ꞌꞌ＇‘‚‛`´′‵", "'"),
        **dict.fromkeys("⁄∕", "/"),
        "\u00ad": None,
    }
)


def judgments_of(
    dataset: Dataset, rankings: Iterable[Mapping[str, Iterable[str]]], ranks: int | None
) -> Qrels:
    """A data set's qrels; where it has answers, 1 for each passage found that contains one, 0 for others.

    rankings: document ids by query id, best first. ranks: how many of them are looked at, None for all. The
    corpus is read once more, as a stream, and of its documents none is held.
    """
    if not dataset.answers:
        return dataset.qrels
    finders: dict[str, set[str]] = {}  # queries by document id
    for ranking in rankings:
        for query, documents in ranking.items():
            if query in dataset.answers:
                for id in islice(documents, ranks):
                    finders.setdefault(id, set()).add(query)
    answers = {query: [words(text) for text in texts] for query, texts in dataset.answers.items()}
    # A query that finds nothing is judged, too, and counts 0.
    qrels: Qrels = {query: {} for query in dataset.queries}
    for document in dataset.corpus:
        if queries := finders.get(document.id):
            passage = words(document.encoded_text)
            for query in queries:
                qrels[query][document.id] = int(any(answer in passage for answer in answers[query]))
    return qrels


def words(text: str) -> str:
    """The words and signs of a text in small letters, each between blanks, so that words are found whole."""
    pieces = WORD.findall(unicodedata.normalize("NFD", text.translate(SAME_SIGNS)))
    return f" {' '.join(pieces).lower()} "
