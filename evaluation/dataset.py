"""A judged data set: documents that are read as a stream, queries, and judgments or answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tercet.evaluation.judgments import JudgedQueries
from tercet.index.candidates import Document
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import USUAL_READING, Reading


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents in files, read anew and one at a time by whoever needs them, so that none is held.

    files: a folder, or files that are read one after the other. reading: which columns are what.
    """

    files: tuple[Path, ...]
    reading: Reading = USUAL_READING

    def __iter__(self) -> Iterator[Document]:
        """Raises SourceError that names the record that cannot be used."""
        return iter(DocumentReader(self.files, reading=self.reading))


@dataclass(frozen=True, slots=True)
class Dataset(JudgedQueries):
    """A judged data set. name: of its folder, or its language in a suite of several. judgments: what holds
    them, for people. answers: texts by query id, where a passage that contains one is relevant and there are
    no qrels.
    """

    name: str
    split: str
    corpus: Corpus
    judgments: str
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
