"""The query parameters of an import, called as the flags of `tercet collection build`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from tercet.ingest.passages.split import LARGEST_SIZE, SMALLEST_SIZE, Split, SplitKind
from tercet.ingest.sources.checks import OnError
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.formats import RECORDS_EXAMPLE, FileFormat, record_keys
from tercet.ingest.sources.reading import Reading
from tercet.service.exceptions import InvalidRequestError
from tercet.service.imports.received_file import checked_filename
from tercet.service.schemas.jobs import ColumnName


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """filename: whose ending says what the file is, and which is the id of a text."""

    filename: str
    reading: Reading
    on_error: OnError
    dry_run: bool


async def _reading(
    text_field: Annotated[ColumnName | None, Query(description="Column of the texts.")] = None,
    title_field: Annotated[ColumnName | None, Query(description="Column of the titles.")] = None,
    id_field: Annotated[ColumnName | None, Query(description="Column of the ids.")] = None,
    partition_field: Annotated[
        ColumnName | None,
        Query(description="Column of the partitions, for a partitioned collection; by default `partition`."),
    ] = None,
    metadata_field: Annotated[
        list[ColumnName] | None,
        Query(description="A column to keep, once for each; by default all others."),
    ] = None,
    no_metadata_field: Annotated[
        list[ColumnName] | None, Query(description="A column to leave out, once for each.")
    ] = None,
    generate_ids: Annotated[bool, Query(description="Make each id of what its document holds.")] = False,
    columns: Annotated[
        str | None,
        Query(
            min_length=1,
            description="Names of the columns of CSV or TSV whose first row does not have them, with commas "
            "between.",
        ),
    ] = None,
    encoding: Annotated[
        ColumnName | None,
        Query(description="Of CSV, TSV and texts, such as `cp949`; by default found."),
    ] = None,
    delimiter: Annotated[
        str | None,
        Query(min_length=1, max_length=1, description="Between the cells of CSV; by default found."),
    ] = None,
    format: Annotated[
        FileFormat | None,
        Query(description="What the file is, whatever its name ends in; by default what that ends in."),
    ] = None,
    records: Annotated[
        ColumnName | None,
        Query(
            description=f"Where in JSON the records are, through lists, too, such as `{RECORDS_EXAMPLE}`; by "
            "default the array that the file is, or the only list of objects in it."
        ),
    ] = None,
    split: Annotated[
        SplitKind | None,
        Query(
            description="Cut each document into passages, which are documents of their own: at headings "
            "(`markdown`), at blank lines, or by size alone. By default documents stay whole."
        ),
    ] = None,
    split_size: Annotated[
        int | None,
        Query(ge=SMALLEST_SIZE, le=LARGEST_SIZE, description="With `split`: tokens of a passage at most."),
    ] = None,
) -> Reading:
    """How the file is read. Raises InvalidRequestError for parameters that exclude each other."""
    if generate_ids and id_field is not None:
        raise InvalidRequestError("generate_ids goes without id_field", "generate_ids")
    if metadata_field and no_metadata_field:
        raise InvalidRequestError("metadata_field goes without no_metadata_field", "metadata_field")
    if split is None and split_size is not None:
        raise InvalidRequestError("split_size goes with split", "split_size")
    names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    if names is not None and not all(names):
        raise InvalidRequestError("a name is missing between two commas of columns", "columns")
    choice = ColumnChoice(
        text_field,
        title_field,
        id_field,
        tuple(metadata_field) if metadata_field else None,
        tuple(no_metadata_field or ()),
        generate_ids,
        partition_field,
    )
    try:
        keys = None if records is None else record_keys(records)
    except ValueError as error:
        raise InvalidRequestError(f"records: {error}", "records") from error
    cut = None if split is None else Split(split, split_size)
    return Reading(choice, encoding, delimiter, cut, names, format, keys)


async def _request(
    reading: Annotated[Reading, Depends(_reading)],
    filename: Annotated[
        str,
        Query(
            min_length=1,
            description="The file's name, whose ending says what it is: CSV, TSV, JSON, JSONL, Parquet or "
            "Arrow, packed or not, Markdown, HTML, PDF or text. A text may have a path below a folder, which "
            "is then its document's id.",
        ),
    ],
    on_error: Annotated[
        OnError, Query(description="At a bad record: `stop` ends the import, `skip` leaves it out.")
    ] = "stop",
    dry_run: Annotated[
        bool,
        Query(description="Write nothing: answer with the columns and the first three documents."),
    ] = False,
) -> ImportRequest:
    return ImportRequest(checked_filename(filename), reading, on_error, dry_run)


ImportOptions = Annotated[ImportRequest, Depends(_request)]
"""What a request's query says."""
