"""`tercet documents put`."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli import options
from tercet.cli.batches import batches
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.opened import opened_remote
from tercet.cli.output import console, counted
from tercet.cli.reading.flags import SOURCE, ReadingFlags
from tercet.cli.reading.shown import say_columns
from tercet.cli.remote import Url, path_of
from tercet.cli.sources import GivenSources, given_sources

if TYPE_CHECKING:
    from tercet.ingest.sources.reader import Reading
    from tercet.service.settings.settings import Settings


@with_flag_groups
def put(
    source: Annotated[list[str], typer.Argument(help=SOURCE)],
    collection: options.OfCollection,
    *,
    on_error: Annotated[
        Literal["stop", "skip"], typer.Option(help="At a bad record: stop, or leave it out and list it.")
    ] = "stop",
    reading: ReadingFlags,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="With --url: keep the collection, made where it is missing, like a folder of Markdown, "
            "text, HTML and PDF, until Ctrl-C. What it put of files that change or go is deleted.",
        ),
    ] = False,
    sync: Annotated[bool, typer.Option("--sync", help="As --watch, but once.")] = False,
    mark: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --watch and --sync: what the folder is known by there. [default: its name]",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    encoding: options.EncoderFlags,
) -> None:
    """Add documents, or replace those with the same ids.

    Without --url all of them take effect in one step. A server takes them in batches, each of which is on its
    disk and searched before the next one is sent; a command that was interrupted can be given again.
    """
    read_as = reading.reading()
    settings = encoding.settings()
    if watch or sync:
        if url is None:
            raise typer.BadParameter("goes with --url", param_hint="--watch" if watch else "--sync")
        if reading.generate_ids or reading.id_field is not None:
            raise typer.BadParameter("goes without --watch: files go by their paths", param_hint="--id-field")
        if len(source) > 1:
            raise typer.BadParameter("is one folder with --watch and --sync", param_hint="SOURCE")
        from tercet.cli.watching.command import keep_like

        keep_like(url, settings, Path(source[0]), collection, read_as, mark, on_error, watch=watch)
        return
    if mark is not None:
        raise typer.BadParameter("goes with --watch or --sync", param_hint="--mark")
    with given_sources(source) as given:
        say_columns(given, read_as)
        if url is not None:
            _put_remote(url, given, collection, on_error, read_as, encoding.data)
        else:
            _put_here(settings, given, collection, on_error, read_as)


def _put_here(
    settings: Settings,
    given: GivenSources,
    collection: str,
    on_error: Literal["stop", "skip"],
    read_as: Reading,
) -> None:
    from tercet.cli.building.run import build_with
    from tercet.index.collection import Collection

    Collection.open(options.collections_root(settings), collection)
    done = build_with(settings, collection, given.paths, on_error=on_error, reading=read_as, mode="upsert")
    given.print_skips(done.skips, done.skipped)
    console().print(
        f"{counted(done.documents, 'document is', 'documents are')} in collection {collection!r}."
    )


def _put_remote(
    url: str,
    given: GivenSources,
    collection: str,
    on_error: Literal["stop", "skip"],
    read_as: Reading,
    data: Path | None,
) -> None:
    """Sends documents in batches, each under a key of its own, so that a repeat changes nothing."""
    from tercet.cli.encoders import tokenizer_of
    from tercet.cli.progress import count_progress
    from tercet.ingest.sources.reader import DocumentReader

    with opened_remote(url, data) as remote, count_progress("put", "documents") as report:
        found = remote.ask("GET", path_of(collection))
        measure = tokenizer_of(found["model"]) if read_as.split else None
        reader = DocumentReader(
            given.paths, on_error=on_error, fields=found["fields"], reading=read_as, tokenizer=measure
        )
        done, position = 0, None
        for batch in batches(reader):
            body = {"documents": batch, "idempotency_key": secrets.token_hex(16)}
            position = remote.ask("PUT", path_of(collection, "documents"), json=body)["position"]
            done += len(batch)
            report(done, reader.total or done)
        if not done:
            raise reader.no_documents()
    given.print_skips(reader.skips, reader.skipped)
    console().print(
        f"{counted(done, 'document is', 'documents are')} in collection {collection!r}, position {position}."
    )
