"""Shapes of the routes of jobs."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tercet.index.live.adoption import AdoptionMode
from tercet.ingest.passages.split import LARGEST_SIZE, SMALLEST_SIZE, SplitKind
from tercet.ingest.progress import Phase
from tercet.ingest.sources.checks import OnError
from tercet.ingest.sources.formats import RECORDS_EXAMPLE, FileFormat, record_keys
from tercet.service.jobs.store import JobEngine, JobState
from tercet.service.schemas.base import WHOLE, AdapterName, NextPage, Request

ColumnName = Annotated[str, Field(min_length=1, max_length=1024)]
SourcePath = Annotated[str, Field(min_length=1, max_length=1024)]
SourcePaths = Annotated[list[SourcePath], Field(min_length=1, max_length=100, fail_fast=True)]
ColumnNames = Annotated[list[ColumnName], Field(min_length=1, max_length=1000, fail_fast=True)]


class ReadingRequest(Request):
    """How a source is read, where its columns have other names than the usual ones, and cut into passages.

    A name may be a path into nested objects and lists of them, its parts joined by dots.
    """

    text_field: ColumnName | None = Field(None, description="Column of the texts.")
    title_field: ColumnName | None = Field(None, description="Column of the titles.")
    id_field: ColumnName | None = Field(None, description="Column of the ids.")
    partition_field: ColumnName | None = Field(
        None, description="Column of the partitions, for a partitioned collection; by default `partition`."
    )
    metadata_fields: ColumnNames | None = Field(None, description="Columns to keep; by default all others.")
    no_metadata_fields: ColumnNames | None = Field(None, description="Columns to leave out.")
    generate_ids: bool | None = Field(False, description="Make each id of what its document holds.")
    infer_fields: bool | None = Field(
        False,
        description="Find the types of the fields of a collection that is new in the first documents.",
    )
    columns: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=1024, pattern="^[^,]+$")]],
            Field(min_length=1, max_length=1000, fail_fast=True),
        ]
        | None
    ) = Field(None, description="Names of the columns of CSV or TSV whose first row does not have them.")
    encoding: ColumnName | None = Field(
        None, description="Of CSV and TSV, such as `cp949`; by default found."
    )
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="Between the cells of CSV; by default found."
    )
    format: FileFormat | None = Field(
        None, description="What the files are, whatever their names end in; by default what these end in."
    )
    records: ColumnName | None = Field(
        None,
        description=f"Where in JSON the records are, through lists, too, such as `{RECORDS_EXAMPLE}`; by "
        "default the array that the file is, or the only list of objects in it.",
    )
    split: SplitKind | None = Field(
        None,
        description="Cut each document into passages, which are documents of their own: at headings "
        "(`markdown`), at blank lines, or by size alone. By default documents stay whole.",
    )
    split_size: Annotated[int, Field(ge=SMALLEST_SIZE, le=LARGEST_SIZE), WHOLE] | None = Field(
        None,
        description="With `split`: tokens of a passage at most; by default half of what the encoder reads, "
        "at most 512.",
    )

    @model_validator(mode="after")
    def _exclusive_options(self) -> Self:
        if self.generate_ids and self.id_field is not None:
            raise ValueError("generate_ids goes without id_field")
        if self.metadata_fields and self.no_metadata_fields:
            raise ValueError("metadata_fields goes without no_metadata_fields")
        if self.split is None and self.split_size is not None:
            raise ValueError("split_size goes with split")
        if self.records is not None:
            record_keys(self.records)
        return self


class JobRequest(Request):
    """A batch build of a collection, which takes effect in one step when it is done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "articles.jsonl"}]})

    source: SourcePath | SourcePaths = Field(
        description="A file or folder below `sources/` of the data root: CSV, TSV, JSON, JSONL, Parquet or "
        "Arrow, with columns of the usual names, a BEIR folder, or Markdown, text, HTML and PDF. Several are "
        "read one after the other."
    )
    mode: AdoptionMode | None = Field(
        "replace",
        description="`replace`: the source's documents take the place of all others; `upsert`: of those with "
        "the same ids. What is written or deleted after the job has begun stays so.",
    )
    model: str | None = Field(
        None,
        description="The encoder of a collection that is new: one that `/v1/models` lists; by default the "
        "server's own. One that exists has its own, and another than that is a conflict, 409.",
    )
    adapter: AdapterName | None = Field(
        None, description="For a collection that is new; by default none. One that exists has its own."
    )
    reading: ReadingRequest | None = None
    engine: JobEngine | None = Field(
        "local",
        description="What encodes: `local`, a process of this machine; `ray`, the workers of the server's "
        "Ray cluster, where it has one (`ray_address`).",
    )
    on_error: OnError | None = Field(
        "stop", description="At a bad record: `stop` fails the job and names it, `skip` leaves it out."
    )


class JobResponse(BaseModel):
    """A job's progress and outcome. Times are ISO 8601 in UTC."""

    id: str
    collection: str
    source: str | list[str]
    adapter: str | None
    mode: AdoptionMode
    engine: JobEngine
    state: JobState
    documents_done: int
    documents_total: int | None
    phase: Phase | None = Field(
        description="What the build does, or did last: `reading` the source, `sampling` and `learning` where "
        "a codebook for token vectors is learned, `encoding`, or `indexing`; null before it starts."
    )
    fraction: float = Field(description="Share of the phase that is done, from 0 to 1.")
    tokens: int
    on_error: OnError
    reading: dict[str, Any] = Field(description="How its source is read, as far as that was said.")
    skipped: int = Field(description="Bad records that were left out.")
    skips: list[str] = Field(description="Where the first of them are, and what is wrong; once it is done.")
    truncated: int = Field(description="Documents longer than the encoder's limit; once it is done.")
    snapshot: str | None
    error: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class JobList(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobResponse]
    next: NextPage = None
