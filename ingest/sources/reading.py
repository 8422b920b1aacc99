"""How somebody says that files are read: what they are, which columns are what, and how documents are cut."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.ingest.passages.split import Split
from tercet.ingest.sources.columns import USUAL, ColumnChoice
from tercet.ingest.sources.formats import FileFormat


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read: which columns are what, of text the encoding, of text tables the delimiter and the
    names of their columns, how documents are cut into passages, what the files are, and where in JSON the
    records are.

    Of encoding and delimiter None is what is found, and names are in the first row; without a split documents
    stay whole. format: None for what names end in. records: keys that lead to the records, through lists,
    too; None for where they are found.
    """

    columns: ColumnChoice = USUAL
    encoding: str | None = None
    delimiter: str | None = None
    split: Split | None = None
    names: tuple[str, ...] | None = None
    format: FileFormat | None = None
    records: tuple[str, ...] | None = None


USUAL_READING = Reading()
