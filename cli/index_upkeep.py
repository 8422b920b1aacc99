"""`tercet index merge`, `stats` and `fields`: of live collections, with a server or without."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.fields import parse_fields
from tercet.cli.output import console, megabytes, print_json, print_pairs
from tercet.cli.remote import Remote, Url, named_url, path_of

POLL_SECONDS = 0.2


def merge(name: options.Name, url: Url = None, data: options.Data = None) -> None:
    """Flush a collection's ledger into a segment, and join segments of which there are many of a size."""
    settings = options.settings_from(data=data)
    if url is not None:
        with Remote(url, settings) as remote:
            segments = merge_remotely(remote, name)["segments"]
    else:
        from tercet.index.collection import Collection
        from tercet.index.live.collection import LiveCollection

        collection = Collection.open(options.collections_root(settings), name)
        with named_url(settings), LiveCollection(collection) as live:
            live.flush()
            live.merge()
            segments = live.stats().segments
    console().print(f"Collection {name!r} has {segments} segments.")


def merge_remotely(remote: Remote, name: str) -> dict[str, Any]:
    """Has a server flush and merge a collection, waits for that, and gives its statistics."""
    remote.ask("POST", path_of(name, "merge"))
    while True:
        found: dict[str, Any] = remote.ask("GET", path_of(name, "stats"))
        if not (found["flushing"] or found["merging"]):
            return found
        time.sleep(POLL_SECONDS)


def fields(
    name: options.Name,
    field: Annotated[
        list[str],
        typer.Option(
            metavar="NAME:TYPE",
            help="Metadata field to declare: keyword, integer, number, boolean or datetime. Give it once per "
            "field.",
            show_default=False,
        ),
    ],
    url: Url = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Declare metadata fields over what a collection holds, so that filters may use them."""
    settings = options.settings_from(data=data)
    wanted = parse_fields(field)
    if url is not None:
        with Remote(url, settings) as remote:
            found: dict[str, Any] = remote.ask("POST", path_of(name, "fields"), json={"fields": wanted})[
                "fields"
            ]
    else:
        from tercet.index.collection import Collection
        from tercet.index.live.collection import LiveCollection

        collection = Collection.open(options.collections_root(settings), name)
        with named_url(settings), LiveCollection(collection) as live:
            found = dict(live.declare(wanted).fields)
    if as_json:
        print_json({"collection": name, "fields": found})
    else:
        print_pairs(found, console())


def stats(
    name: options.Name, url: Url = None, data: options.Data = None, as_json: options.AsJson = False
) -> None:
    """Show documents, deleted ones, segments, bytes by part, the ledger, and what is under way."""
    settings = options.settings_from(data=data)
    if url is not None:
        with Remote(url, settings) as remote:
            found: dict[str, Any] = remote.ask("GET", path_of(name, "stats"))
    else:
        from tercet.index.collection import Collection
        from tercet.index.live.statistics import published_statistics
        from tercet.service.answers.statistics import statistics_record

        collection = Collection.open(options.collections_root(settings), name)
        found = statistics_record(collection.settings.name, published_statistics(collection))
    if as_json:
        print_json(found)
        return
    unpublished, ledger = found.pop("unpublished"), found.pop("ledger")
    sizes = {**found.pop("bytes"), "unpublished": unpublished["bytes"], "ledger": ledger["bytes"]}
    lines = {key.replace("_", " "): value for key, value in found.items()}
    lines |= {"unpublished documents": unpublished["documents"], "ledger entries": ledger["entries"]}
    print_pairs({**lines, **{f"{part}, size": megabytes(size) for part, size in sizes.items()}}, console())
