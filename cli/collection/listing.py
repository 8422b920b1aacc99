"""`tercet collection list` and `delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, error_console, print_json, print_pairs
from tercet.cli.stores.opening import StoreFlags

if TYPE_CHECKING:
    from tercet.cli.stores.opening import Store


@with_flag_groups
def list_all(where: StoreFlags, as_json: options.AsJson = False) -> None:
    """Show the collections with what each holds."""
    with where.opened() as store:
        list_collections(store, as_json=as_json)


def list_collections(store: Store, *, as_json: bool) -> None:
    """Prints the collections that may be searched, with what each holds."""
    record = [
        {"name": collection["name"], "documents": collection["documents"], "encoder": collection["model"]}
        for collection in store.collections()
    ]
    if as_json:
        print_json({"collections": record})
    elif not record:
        console().print(
            f"There are no collections in {store.location}. Make one: tercet demo, or "
            "tercet collection build SOURCE --collection NAME",
            soft_wrap=True,
        )
    else:
        shown = {row["name"]: f"{counted(row['documents'], 'document')}, {row['encoder']}" for row in record}
        print_pairs(shown, console())
        error_console().print('Search one: tercet search NAME "what the query says"')


@with_flag_groups
def delete(
    name: options.Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before.")] = False,
    *,
    where: StoreFlags,
    as_json: options.AsJson = False,
) -> None:
    """Delete a collection and all its documents. Its backups stay."""
    with where.opened() as store:
        if not yes:
            documents = counted(store.count_documents(name), "document")
            typer.confirm(f"Delete collection {name!r} with {documents}?", abort=True, err=True)
        store.delete_collection(name)
    if as_json:
        print_json({"deleted": name})
    else:
        console().print(f"Collection {name!r} is deleted.")
