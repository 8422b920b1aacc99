"""`tercet index backup` and `restore`: copies of collections as they were, here or at a running server."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.output import console, counted, megabytes, print_json, print_pairs
from tercet.cli.remote import Remote, Url, named_url, path_of

if TYPE_CHECKING:
    from tercet.index.backups.store import BackupStore
    from tercet.service.settings.settings import Settings


def backup(
    name: options.Name,
    list_all: Annotated[bool, typer.Option("--list", help="Show the collection's backups instead.")] = False,
    delete: Annotated[
        str | None, typer.Option(metavar="ID", help="Remove this backup instead.", show_default=False)
    ] = None,
    url: Url = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Back a collection up below the data root, verified, with all that was written before.

    Searches and a server's writes go on meanwhile. Files are linked where the file system can.
    """
    if list_all and delete is not None:
        raise typer.BadParameter("goes without --list", param_hint="--delete")
    settings = options.settings_from(data=data)
    if delete is not None:
        _delete(settings, name, delete, url)
        if as_json:
            print_json({"collection": name, "deleted": delete})
        else:
            console().print(f"Backup {delete} of collection {name!r} is removed.", soft_wrap=True)
    elif list_all:
        _print_list(_list(settings, name, url), as_json=as_json)
    else:
        made = _make(settings, name, url)
        if as_json:
            print_json(made)
        else:
            pairs = {each: made[each] for each in ("id", "collection", "documents", "position")}
            print_pairs({**pairs, "size": megabytes(made["size_bytes"])}, console())


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
    url: Url = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a collection the documents and defaults of a backup, in one step, or make a new one of it."""
    settings = options.settings_from(data=data)
    if url is None:
        done = _restore(settings, name, id, new_name)
    else:
        with Remote(url, settings) as remote:
            path = path_of(name, "backups", id, "restore")
            answer = remote.ask("POST", path, json={"name": new_name})
            done = {"collection": answer["name"], "backup": id, "documents": answer["documents"]}
    if as_json:
        print_json(done)
    else:
        console().print(
            f"Collection {done['collection']!r} was restored from backup {id}: {done['documents']:,} "
            "documents.",
            soft_wrap=True,
        )


def _make(settings: Settings, name: str, url: str | None) -> dict[str, Any]:
    if url is not None:
        with Remote(url, settings) as remote:
            made: dict[str, Any] = remote.ask("POST", path_of(name, "backups"))
            return made
    from tercet.cli.progress import count_progress
    from tercet.index.backups.making import make_backup
    from tercet.index.collection import Collection
    from tercet.index.live.collection import LiveCollection

    root, store = _places(settings)
    collection = Collection.open(root, name)
    if collection.has_unpublished():
        with named_url(settings), LiveCollection(collection) as live:
            live.flush()
    with count_progress("Verifying", "bytes") as progress:
        return asdict(make_backup(collection, store, progress))


def _list(settings: Settings, name: str, url: str | None) -> list[dict[str, Any]]:
    if url is not None:
        with Remote(url, settings) as remote:
            found: list[dict[str, Any]] = remote.ask("GET", path_of(name, "backups"))["backups"]
            return found
    root, store = _places(settings)
    return [asdict(each) for each in store.list(_own_name(root, name))]


def _delete(settings: Settings, name: str, id: str, url: str | None) -> None:
    if url is not None:
        with Remote(url, settings) as remote:
            remote.ask("DELETE", path_of(name, "backups", id))
        return
    root, store = _places(settings)
    store.delete(_own_name(root, name), id)


def _restore(settings: Settings, name: str, id: str, new_name: str | None) -> dict[str, Any]:
    from tercet.cli.progress import count_progress
    from tercet.index.backups.restoring import restore_as, restore_into
    from tercet.index.collection import Collection
    from tercet.index.errors import CollectionNotFoundError
    from tercet.index.live.collection import LiveCollection

    root, store = _places(settings)
    name = _own_name(root, name)
    found = store.get(name, id)
    target = new_name or name
    try:
        collection = Collection.open(root, name) if target == name else None
    except CollectionNotFoundError:  # deleted since
        collection = None
    with count_progress("Verifying", "bytes") as progress:
        if collection is None:
            restore_as(root, target, store, found, progress)
        else:
            with named_url(settings), LiveCollection(collection) as live:
                restore_into(collection, live, store, found, progress)
    return {"collection": target, "backup": id, "documents": found.documents}


def _places(settings: Settings) -> tuple[Path, BackupStore]:
    """The folder of collections, and where backups lie."""
    from tercet.index.backups.store import BackupStore

    return options.collections_root(settings), BackupStore(settings.data / "backups")


def _own_name(root: Path, name: str) -> str:
    """The name of the collection that an alias means; it may have been deleted."""
    from tercet.index.catalog.aliases import Aliases

    return Aliases(root).collection_of(name)


def _print_list(backups: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"backups": backups})
        return
    lines = {
        each["id"]: f"{counted(each['documents'], 'document')}, position {each['position']}, "
        f"{megabytes(each['size_bytes'])}"
        for each in backups
    }
    print_pairs(lines, console())
