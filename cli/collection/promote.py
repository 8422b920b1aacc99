"""`tercet collection promote`: this machine becomes the writer of collections whose ledger is on a store."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated

import typer

from tercet.cli import options
from tercet.cli.output import console, counted, print_json


def promote(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the collection.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every collection that has a ledger there.")] = False,
    ledger_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The ledger_url of the server that wrote it. [TERCET_LEDGER_URL]",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Become the writer of a collection, with all that was acknowledged: after a loss, or from a replica.

    The data root may be empty, or that of a server that followed or wrote the collection; end that server
    before. Whoever wrote it until now is refused from its next write on.
    """
    from tercet.cli.progress import count_progress
    from tercet.cluster.ledgers.lease import StoreLease
    from tercet.cluster.ledgers.promoting import ledgers_at
    from tercet.cluster.ledgers.promoting import promote as promote_collection
    from tercet.cluster.objects.opening import open_store

    if (name is None) != every:
        raise typer.BadParameter("give the name of a collection, or --all", param_hint="NAME")
    settings = options.settings_from(data=data, ledger_url=ledger_url)
    if settings.ledger_url is None:
        raise typer.BadParameter("is needed: where the ledger is", param_hint="--ledger-url")
    store = open_store(settings.ledger_url)
    promoted = []
    for each in ledgers_at(store) if name is None else [name]:
        with count_progress("Fetching", "bytes") as progress:
            promoted.append(promote_collection(each, store, settings.data, progress))
    if promoted:
        StoreLease(store, settings.data, math.inf, standby=False).take()
    if as_json:
        print_json({"url": store.url, "promoted": [asdict(each) for each in promoted]})
        return
    for done in promoted:
        console().print(
            f"This machine writes collection {done.collection!r}: {counted(done.documents, 'document')}, at "
            f"position {done.position}. Serve it with --ledger-url {store.url}.",
            soft_wrap=True,
        )
    if not promoted:
        console().print(f"{store.url} has no ledger of a collection.", soft_wrap=True)
