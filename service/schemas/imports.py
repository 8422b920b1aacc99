"""Shapes of the answers of an import."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from tercet.index.documents.metadata import FieldType
from tercet.service.schemas.documents import DocumentResponse
from tercet.service.schemas.errors import ErrorDetail


class ImportProgress(BaseModel):
    """A line of the answer: what is written so far and on the disk. The last one says `done`, or `error`."""

    documents: int | None = Field(None, description="Written so far.")
    skipped: int | None = Field(None, description="Bad records that were left out.")
    position: int | str | None = Field(None, description="The collection's, after the last group.")
    fraction: float | None = Field(None, description="Share of the file that was read, from 0 to 1.")
    done: bool | None = Field(None, description="Only in the last line: all of the file is written.")
    reasons: list[str] | None = Field(
        None, description="With `done`: where the first bad records are, and what is wrong with them."
    )
    error: ErrorDetail | None = Field(
        None, description="Only in the last line: why the import ended early. What was written stays."
    )


class ImportColumn(BaseModel):
    """A column of the file, or an entry of its objects `metadata`."""

    name: str
    samples: list[Any] = Field(description="Its first values.")
    type: FieldType | None = Field(description="Of a field of a new collection; null where none fits.")


class ImportOptions(BaseModel):
    """How the file is read: as the request says, or as it was found."""

    text_field: str | None
    title_field: str | None
    id_field: str | None
    generate_ids: bool
    encoding: str | None
    delimiter: str | None
    split: str | None


class ImportPreview(BaseModel):
    """What an import would read; nothing is written."""

    columns: list[ImportColumn]
    options: ImportOptions
    documents: list[DocumentResponse] = Field(description="The first three.")
    skipped: int = Field(description="Bad records before the last of them.")
    reasons: list[str] = Field(description="Where these are, and what is wrong.")
    problem: str | None = Field(description="Why there are no documents, such as unclear columns.")
