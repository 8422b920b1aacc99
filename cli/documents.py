"""`tercet documents`: get, update, count and delete; the other commands have files of their own."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.batches import document_record
from tercet.cli.documents_list import list_documents
from tercet.cli.documents_put import put
from tercet.cli.filters import FilterJson, json_of, parse_filter
from tercet.cli.opened import opened_live, opened_remote, opened_snapshot
from tercet.cli.output import console, counted, print_json
from tercet.cli.remote import Url, path_of
from tercet.index.errors import DocumentNotFoundError

if TYPE_CHECKING:
    from tercet.index.documents.filters import Filter

app = typer.Typer(help="Put, get, list, update, count and delete documents.", no_args_is_help=True)
app.command()(put)


@app.command()
def get(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.")],
    collection: options.OfCollection,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print documents, one JSON object a line; exit code 1 where one is not there."""
    if url is not None:
        with opened_remote(url, data) as remote:
            found = remote.ask("POST", path_of(collection, "documents", "get"), json={"ids": ids})
        records, missing = found["documents"], found["missing"]
    else:
        with opened_snapshot(collection, data) as snapshot:
            documents = {id: snapshot.get(id) for id in ids}
        records = [document_record(document) for document in documents.values() if document is not None]
        missing = [id for id, document in documents.items() if document is None]
    for record in records:
        print_json(record)
    if missing:
        raise DocumentNotFoundError(f"collection {collection!r} has no document {missing[0]!r:.600}")


app.command("list")(list_documents)


@app.command()
def update(
    collection: options.OfCollection,
    metadata: Annotated[
        str, typer.Option(metavar="JSON", help='What their metadata become, such as {"year": 2001}.')
    ],
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids.", show_default=False)
    ] = None,
    filter_json: FilterJson = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge it into what each has (RFC 7396): null removes.")
    ] = False,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Change the metadata of documents, by id or by filter; nothing is encoded again."""
    condition, change = _chosen(ids, filter_json), _object(metadata)
    if url is not None:
        asked = {"metadata": change, "merge": merge, "idempotency_key": secrets.token_hex(16)}
        asked |= {"ids": ids} if ids else {"filter": json_of(filter_json or "")}
        with opened_remote(url, data) as remote:
            updated = remote.ask("POST", path_of(collection, "documents", "update"), json=asked)["updated"]
    else:
        with opened_live(collection, data) as live:
            written = live.update(condition or ids or [], change, merge=merge)
            live.flush()
        updated = written.documents
    console().print(
        f"{counted(updated, 'document was', 'documents were')} changed in collection {collection!r}."
    )


@app.command()
def count(
    collection: options.OfCollection,
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print how many documents there are, or how many a filter allows."""
    condition = parse_filter(filter_json)
    if url is not None:
        body = {} if filter_json is None else {"filter": json_of(filter_json)}
        with opened_remote(url, data) as remote:
            typer.echo(remote.ask("POST", path_of(collection, "documents", "count"), json=body)["count"])
        return
    with opened_snapshot(collection, data) as snapshot:
        typer.echo(snapshot.count(condition))


@app.command()
def delete(
    collection: options.OfCollection,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids.", show_default=False)
    ] = None,
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Delete documents by id, or those that a filter allows. Ids that are not there are no error."""
    condition = _chosen(ids, filter_json)
    if url is not None:
        asked = {"ids": ids} if ids else {"filter": json_of(filter_json or "")}
        with opened_remote(url, data) as remote:
            key = {"idempotency_key": secrets.token_hex(16)}
            deleted = remote.ask("POST", path_of(collection, "documents", "delete"), json={**asked, **key})[
                "deleted"
            ]
    else:
        with opened_live(collection, data) as live:
            written = live.delete(ids or []) if condition is None else live.delete_matching(condition)
            live.flush()
        deleted = written.documents
    console().print(
        f"{counted(deleted, 'document was', 'documents were')} deleted from collection {collection!r}."
    )


def _chosen(ids: list[str] | None, filter_json: str | None) -> Filter | None:
    """The filter that is given in the place of ids. Raises typer.BadParameter where both are, or none."""
    if bool(ids) == (filter_json is not None):
        raise typer.BadParameter("give ids, or --filter: one of them")
    return parse_filter(filter_json)


def _object(text: str) -> dict[str, Any]:
    """A JSON object. Raises typer.BadParameter."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is no JSON ({error})", param_hint="--metadata") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("is no JSON object", param_hint="--metadata")
    return value
