"""The flags that say how a source is read, and the reading that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from tercet.ingest.sources.formats import RECORDS_EXAMPLE, FileFormat, record_keys
from tercet.service.settings.roles import Panel

if TYPE_CHECKING:
    from tercet.ingest.passages.split import Split, SplitKind
    from tercet.ingest.sources.reading import Reading

SOURCE = (
    "Files or folders, one or several: CSV, TSV, JSON, JSONL, Parquet, Arrow, also packed by gzip, bzip2, xz "
    "or zstd; Markdown, text, HTML, PDF; a BEIR folder; - is standard input."
)


@dataclass(frozen=True, kw_only=True)
class ReadingFlags:
    """What every command takes that reads sources; `tercet collection build` has flags of its own besides."""

    PANEL: ClassVar = Panel.SOURCES
    text_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of the texts; a.b is b within a. [default: text, contents, content, body, "
            "page_content, passage, document, or such a name in Korean, Chinese or Japanese]",
            show_default=False,
            rich_help_panel=Panel.COMMON,
        ),
    ] = None
    title_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of the titles. [default: title, name, 제목, 标题, 標題 or タイトル]",
            show_default=False,
        ),
    ] = None
    id_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of the ids. [default: id, _id, doc_id, docid, pid or 번호]",
            show_default=False,
            rich_help_panel=Panel.COMMON,
        ),
    ] = None
    partition_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of the partitions, for a partitioned collection. [default: partition]",
            show_default=False,
        ),
    ] = None
    metadata_field: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata-field",
            metavar="NAME",
            help="Column to keep as metadata, once for each. [default: all others]",
            show_default=False,
        ),
    ] = None
    no_metadata_field: Annotated[
        list[str] | None,
        typer.Option(
            "--no-metadata-field",
            metavar="NAME",
            help="Column to leave out, once for each.",
            show_default=False,
        ),
    ] = None
    generate_ids: Annotated[
        bool,
        typer.Option(
            "--generate-ids",
            help="Make each id of what its document holds, so that a second load changes nothing.",
        ),
    ] = False
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAME,NAME,…",
            help="Names of the columns of CSV or TSV whose first row does not have them.",
            show_default=False,
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Of CSV and TSV, such as cp949. [default: found]", show_default=False),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(help="Between the cells of CSV. [default: found]", show_default=False),
    ] = None
    format: Annotated[
        FileFormat | None,
        typer.Option(
            "--format",
            help="What the files are, whatever their names end in. [default: what these end in]",
            show_default=False,
        ),
    ] = None
    records: Annotated[
        str | None,
        typer.Option(
            "--records",
            metavar="KEY.KEY…",
            help=f"Where in JSON the records are, through lists, too, such as {RECORDS_EXAMPLE}. [default: "
            "the array that the file is, or the only list of objects in it]",
            show_default=False,
        ),
    ] = None
    split: Annotated[
        Literal["markdown", "paragraphs", "tokens"] | None,
        typer.Option(
            "--split",
            help="Cut each document into passages, which are documents of their own: at headings, at blank "
            "lines, or by size alone. [default: documents stay whole]",
            show_default=False,
            rich_help_panel=Panel.COMMON,
        ),
    ] = None
    split_size: Annotated[
        int | None,
        typer.Option(
            metavar="TOKENS",
            help="With --split: tokens of a passage at most. [default: half of what the encoder reads, at "
            "most 512]",
            show_default=False,
        ),
    ] = None

    def reading(self) -> Reading:
        """How a source is read. Raises typer.BadParameter for flags that exclude each other."""
        from tercet.ingest.sources.columns import ColumnChoice
        from tercet.ingest.sources.reading import Reading

        cut = _split(self.split, self.split_size)
        if self.generate_ids and self.id_field is not None:
            raise typer.BadParameter("goes without --id-field", param_hint="--generate-ids")
        if self.metadata_field and self.no_metadata_field:
            raise typer.BadParameter("goes without --metadata-field", param_hint="--no-metadata-field")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise typer.BadParameter(f"{self.delimiter!r:.80} is not one character", param_hint="--delimiter")
        columns = ColumnChoice(
            self.text_field,
            self.title_field,
            self.id_field,
            tuple(self.metadata_field) if self.metadata_field else None,
            tuple(self.no_metadata_field or ()),
            self.generate_ids,
            self.partition_field,
        )
        names = None if self.columns is None else _names(self.columns)
        try:
            records = None if self.records is None else record_keys(self.records)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--records") from error
        return Reading(columns, self.encoding, self.delimiter, cut, names, self.format, records)


def _names(words: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in words.split(","))
    if not all(names):
        raise typer.BadParameter("a name is missing between two commas", param_hint="--columns")
    return names


def _split(kind: SplitKind | None, size: int | None) -> Split | None:
    from tercet.ingest.passages.split import Split

    if kind is None:
        if size is not None:
            raise typer.BadParameter("goes with --split", param_hint="--split-size")
        return None
    try:
        return Split(kind, size)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--split-size") from error


def as_json(reading: Reading, *, infer_fields: bool) -> dict[str, Any]:
    """What the flags say, as a job of a server takes it."""
    columns = reading.columns
    given = {
        "text_field": columns.text,
        "title_field": columns.title,
        "id_field": columns.id,
        "partition_field": columns.partition,
        "metadata_fields": columns.metadata,
        "no_metadata_fields": columns.not_metadata,
        "generate_ids": columns.generate_ids,
        "columns": reading.names,
        "infer_fields": infer_fields,
        "encoding": reading.encoding,
        "delimiter": reading.delimiter,
        "format": reading.format,
        "records": None if reading.records is None else ".".join(reading.records),
        "split": None if reading.split is None else reading.split.kind,
        "split_size": None if reading.split is None else reading.split.size,
    }
    return {name: value for name, value in given.items() if value}
