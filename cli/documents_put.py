"""`tercet documents put`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted
from tercet.cli.reading.flags import SOURCE, ReadingFlags
from tercet.cli.reading.preview import say_columns
from tercet.cli.sources import given_sources
from tercet.cli.stores.opening import opened_store
from tercet.cli.stores.remote import Url


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
            help="With --watch and --sync: what tells the folder from others, wherever it lies. "
            "[default: its name, machine and path]",
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
        if reading.format is not None or reading.records is not None:
            said = "--format" if reading.format is not None else "--records"
            raise typer.BadParameter("goes without --watch and --sync", param_hint=said)
        if len(source) > 1:
            raise typer.BadParameter("is one folder with --watch and --sync", param_hint="SOURCE")
        from tercet.cli.watching.command import keep_like

        keep_like(url, settings, Path(source[0]), collection, read_as, mark, on_error, watch=watch)
        return
    if mark is not None:
        raise typer.BadParameter("goes with --watch or --sync", param_hint="--mark")
    with given_sources(source) as given:
        say_columns(given, read_as)
        with opened_store(url, settings) as store:
            done = store.put_source(collection, given.paths, read_as, on_error)
        given.print_skips(done.skips, done.skipped)
    position = "" if done.position is None else f", position {done.position}"
    are = counted(done.documents, "document is", "documents are")
    console().print(f"{are} in collection {collection!r}{position}.")
