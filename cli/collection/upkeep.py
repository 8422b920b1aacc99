"""`tercet collection merge`, `stats` and `fields`: of live collections, with a server or without."""

from __future__ import annotations

from typing import Annotated

import typer

from tercet.cli import options
from tercet.cli.fields import parse_fields
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, megabytes, print_json, print_pairs
from tercet.cli.stores.opening import StoreFlags


@with_flag_groups
def merge(name: options.Name, where: StoreFlags) -> None:
    """Flush a collection's ledger into a segment, and join segments of which there are many of a size."""
    with where.opened() as store:
        segments = store.merge(name)["segments"]
    console().print(f"Collection {name!r} has {segments} segments.")


@with_flag_groups
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
    where: StoreFlags,
    as_json: options.AsJson = False,
) -> None:
    """Declare metadata fields over what a collection holds, so that filters may use them."""
    wanted = parse_fields(field)
    with where.opened() as store:
        declared = store.declare_fields(name, wanted)["fields"]
    if as_json:
        print_json({"collection": name, "fields": declared})
    else:
        print_pairs(declared, console())


@with_flag_groups
def stats(name: options.Name, where: StoreFlags, as_json: options.AsJson = False) -> None:
    """Show documents, deleted ones, segments, bytes by part, the ledger, and what is under way."""
    with where.opened() as store:
        statistics = store.statistics(name)
    if as_json:
        print_json(statistics)
        return
    unpublished, ledger = statistics.pop("unpublished"), statistics.pop("ledger")
    sizes = {**statistics.pop("bytes"), "unpublished": unpublished["bytes"], "ledger": ledger["bytes"]}
    lines = {key.replace("_", " "): value for key, value in statistics.items()}
    lines |= {"unpublished documents": unpublished["documents"], "ledger entries": ledger["entries"]}
    print_pairs({**lines, **{f"{part}, size": megabytes(size) for part, size in sizes.items()}}, console())
