"""`tercet documents list`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.batches import document_record
from tercet.cli.filters import FilterJson, parse_filter
from tercet.cli.opened import opened_remote, opened_snapshot
from tercet.cli.output import print_json
from tercet.cli.remote import Remote, Url, path_of

if TYPE_CHECKING:
    from tercet.index.documents.filters import Filter
    from tercet.index.snapshot import Snapshot

PAGE = 1000


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
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print documents, one JSON object a line, so that `put` can read them again."""
    condition = parse_filter(filter_json)
    if descending and order_by is None:
        raise typer.BadParameter("goes with --order-by", param_hint="--descending")
    if after is not None and order_by is not None:
        raise typer.BadParameter("goes without --order-by", param_hint="--after")
    if url is not None:
        params = {} if after is None else {"after": after}
        if filter_json is not None:
            params["filter"] = filter_json
        if order_by is not None:
            params |= {"order_by": order_by, "order": "desc" if descending else "asc"}
        with opened_remote(url, data) as remote:
            _print_all(_pages(remote, collection, params, limit), limit)
        return
    with opened_snapshot(collection, data) as snapshot:
        if order_by is None:
            _print_all(_documents_of(snapshot, after, condition), limit)
        else:
            _print_all(_ordered(snapshot, order_by, condition, descending=descending), limit)


def _documents_of(
    snapshot: Snapshot, after: str | None, condition: Filter | None
) -> Iterator[dict[str, Any]]:
    collection = None
    while page := snapshot.page(after, PAGE, condition, collection):
        yield from map(document_record, page)
        after, collection = page[-1].id, page[-1].collection


def _ordered(
    snapshot: Snapshot, field: str, condition: Filter | None, *, descending: bool
) -> Iterator[dict[str, Any]]:
    from tercet.index.reading.ordered import Order

    order, after = Order(field, descending), None
    while page := snapshot.ordered_page(order, after, PAGE, condition):
        yield from (document_record(snapshot.read(placed)) for placed in page)
        after = page[-1].at


def _pages(
    remote: Remote, collection: str, asked: Mapping[str, str], limit: int | None
) -> Iterator[dict[str, Any]]:
    params: dict[str, str | int] = {**asked, **({} if limit is None else {"limit": min(limit, 100)})}
    while True:
        page = remote.ask("GET", path_of(collection, "documents"), params=params)
        yield from page["documents"]
        if page["next"] is None:
            return
        params["after"] = page["next"]


def _print_all(records: Iterator[dict[str, Any]], limit: int | None) -> None:
    from itertools import islice

    for record in islice(records, limit):
        print_json(record)
