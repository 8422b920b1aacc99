"""`tercet collection`, and the names that its commands had below `tercet index` before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from tercet.cli import documents, documents_put
from tercet.cli.collection import (
    alias,
    backup,
    build,
    export,
    listing,
    promote,
    reshard,
    show,
    snapshots,
    tune,
    upkeep,
)
from tercet.cli.search import search
from tercet.cli.short_help import add_command

COMMANDS: dict[str, Callable[..., Any]] = {
    "list": listing.list_all,
    "show": show.show,
    "build": build.build,
    "search": search,
    "put": documents_put.put,
    "get": documents.get,
    "count": documents.count,
    "update": documents.update,
    "delete": listing.delete,
    "fields": upkeep.fields,
    "stats": upkeep.stats,
    "merge": upkeep.merge,
    "verify": show.verify,
    "tune": tune.tune,
    "backup": backup.backup,
    "restore": backup.restore,
    "push": snapshots.push,
    "pull": snapshots.pull,
    "promote": promote.promote,
    "gc": snapshots.collect,
    "reshard": reshard.reshard,
    "export": export.export,
    "query": export.print_query,
}
NEW = {"list", "show", "search", "put", "get", "count", "update", "delete", "promote", "export", "query"}
FORMER = {name: command for name, command in COMMANDS.items() if name not in NEW} | {"inspect": show.show}


def _group(text: str, commands: dict[str, Callable[..., Any]]) -> typer.Typer:
    app = typer.Typer(help=text, no_args_is_help=True)
    for name, command in commands.items():
        add_command(app, command, name)
    app.add_typer(alias.app, name="alias")
    return app


app = _group("Build, show, fill, verify, back up, move, export and delete collections.", COMMANDS)
former = _group("The former name of `tercet collection`, until the next release.", FORMER)
