"""`tercet collection backup` and `restore`: copies of collections, here or at a running server."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, megabytes, print_json, print_pairs
from tercet.cli.stores.opening import StoreFlags


@with_flag_groups
def backup(
    name: options.Name,
    list_all: Annotated[bool, typer.Option("--list", help="Show the collection's backups instead.")] = False,
    delete: Annotated[
        str | None, typer.Option(metavar="ID", help="Remove this backup instead.", show_default=False)
    ] = None,
    *,
    where: StoreFlags,
    as_json: options.AsJson = False,
) -> None:
    """Back a collection up below the data root, verified, with all that was written before.

    Searches and a server's writes go on meanwhile. Files are linked where the file system can.
    """
    if list_all and delete is not None:
        raise typer.BadParameter("goes without --list", param_hint="--delete")
    with where.opened() as store:
        if delete is not None:
            store.delete_backup(name, delete)
            if as_json:
                print_json({"collection": name, "deleted": delete})
            else:
                console().print(f"Backup {delete} of collection {name!r} is removed.", soft_wrap=True)
        elif list_all:
            _print_list(store.backups(name), as_json=as_json)
        else:
            made = store.create_backup(name)
            if as_json:
                print_json(made)
            else:
                pairs = {key: made[key] for key in ("id", "collection", "documents", "position")}
                print_pairs({**pairs, "size": megabytes(made["size_bytes"])}, console())


@with_flag_groups
def restore(
    name: options.Name,
    id: Annotated[str, typer.Argument(metavar="ID", help="The backup, as `backup NAME --list` shows it.")],
    new_name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="OTHER",
            help="Restore as a new collection of this name. [default: into the collection itself]",
            show_default=False,
        ),
    ] = None,
    *,
    where: StoreFlags,
    as_json: options.AsJson = False,
) -> None:
    """Give a collection the documents and defaults of a backup, in one step, or make a new one of it."""
    with where.opened() as store:
        restored = store.restore_backup(name, id, name=new_name)
    done = {"collection": restored["name"], "backup": id, "documents": restored["documents"]}
    if as_json:
        print_json(done)
    else:
        console().print(
            f"Collection {done['collection']!r} was restored from backup {id}: {done['documents']:,} "
            "documents.",
            soft_wrap=True,
        )


def _print_list(backups: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"backups": backups})
        return
    lines = {
        record["id"]: f"{counted(record['documents'], 'document')}, position {record['position']}, "
        f"{megabytes(record['size_bytes'])}"
        for record in backups
    }
    print_pairs(lines, console())
