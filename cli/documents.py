"""`tercet documents`: get, list, update, count and delete; `put` has a file of its own."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.documents_put import put
from tercet.cli.filters import Filters, checked_filter
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, print_json
from tercet.cli.short_help import add_command
from tercet.cli.stores.opening import StoreFlags
from tercet.index.errors import DocumentNotFoundError

app = typer.Typer(help="Put, get, list, update, count and delete documents.", no_args_is_help=True)
add_command(app, put)


@app.command()
@with_flag_groups
def get(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.")],
    collection: options.OfCollection,
    where: StoreFlags,
) -> None:
    """Print documents, one JSON object a line; exit code 1 where one is not there."""
    with where.opened() as store:
        answer = store.get_documents(collection, ids)
    for record in answer["documents"]:
        print_json(record)
    if missing := answer["missing"]:
        raise DocumentNotFoundError(f"collection {collection!r} has no document {missing[0]!r:.600}")


@app.command("list")
@with_flag_groups
def list_documents(
    collection: options.OfCollection,
    after: Annotated[
        str | None, typer.Option(help="Begin after this id.", metavar="ID", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Documents at most. [default all]", show_default=False)
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(help="A declared field to order by. [default: the id]", show_default=False),
    ] = None,
    descending: Annotated[
        bool, typer.Option("--descending", help="With --order-by: greatest first.")
    ] = False,
    filters: Filters = None,
    *,
    where: StoreFlags,
) -> None:
    """Print documents, one JSON object a line, so that `put` can read them again."""
    condition = checked_filter(filters)
    if descending and order_by is None:
        raise typer.BadParameter("goes with --order-by", param_hint="--descending")
    if after is not None and order_by is not None:
        raise typer.BadParameter("goes without --order-by", param_hint="--after")
    with where.opened() as store:
        for record in store.documents(
            collection,
            filter=condition,
            order_by=order_by,
            descending=descending,
            after=after,
            limit=limit,
        ):
            print_json(record)


@app.command()
@with_flag_groups
def update(
    collection: options.OfCollection,
    metadata: Annotated[
        str, typer.Option(metavar="JSON", help='What their metadata become, such as {"year": 2001}.')
    ],
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids.", show_default=False)
    ] = None,
    filters: Filters = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge it into what each has (RFC 7396): null removes.")
    ] = False,
    *,
    where: StoreFlags,
) -> None:
    """Change the metadata of documents, by id or by filter; nothing is encoded again."""
    which, change = _chosen(ids, filters), _object(metadata)
    with where.opened() as store:
        updated = store.update_documents(collection, change, merge=merge, **which)["updated"]
    console().print(
        f"{counted(updated, 'document was', 'documents were')} changed in collection {collection!r}."
    )


@app.command()
@with_flag_groups
def count(collection: options.OfCollection, filters: Filters = None, *, where: StoreFlags) -> None:
    """Print how many documents there are, or how many a filter allows."""
    condition = checked_filter(filters)
    with where.opened() as store:
        typer.echo(store.count_documents(collection, condition))


@app.command()
@with_flag_groups
def delete(
    collection: options.OfCollection,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids.", show_default=False)
    ] = None,
    filters: Filters = None,
    *,
    where: StoreFlags,
) -> None:
    """Delete documents by id, or those that a filter allows. Ids that are not there are no error."""
    which = _chosen(ids, filters)
    with where.opened() as store:
        deleted = store.delete_documents(collection, **which)["deleted"]
    console().print(
        f"{counted(deleted, 'document was', 'documents were')} deleted from collection {collection!r}."
    )


def _chosen(ids: list[str] | None, filters: list[str] | None) -> dict[str, Any]:
    """Ids, or the filter in their place. Raises typer.BadParameter where both are given, or none."""
    if bool(ids) == bool(filters):
        raise typer.BadParameter("give ids, or --filter: one of them")
    return {"ids": ids} if ids else {"filter": checked_filter(filters)}


def _object(text: str) -> dict[str, Any]:
    """A JSON object. Raises typer.BadParameter."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is no JSON ({error})", param_hint="--metadata") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("is no JSON object", param_hint="--metadata")
    return value
