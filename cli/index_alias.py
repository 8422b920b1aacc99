"""`tercet index alias`: second names of collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli import options
from cli.output import console, print_json, print_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from index.catalog.aliases import Aliases

app = typer.Typer(help="Second names of collections: put, list, delete.", no_args_is_help=True)

Alias = Annotated[str, typer.Argument(metavar="ALIAS", help="The second name.")]


@app.command()
def put(
    alias: Alias,
    name: options.Name,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Make an alias, or switch it to another collection in one step; a running server follows at once."""
    collection = _aliases(data).put(alias, name)
    if as_json:
        print_json({"alias": alias, "collection": collection})
    else:
        console().print(f"Alias {alias!r} means collection {collection!r}.")


@app.command("list")
def list_all(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Show all aliases and their collections."""
    found = _aliases(data).all()
    if as_json:
        print_json({"aliases": [{"alias": alias, "collection": name} for alias, name in found.items()]})
    else:
        print_pairs(found, console())


@app.command()
def delete(alias: Alias, data: options.Data = None) -> None:
    """Remove an alias; its collection stays."""
    _aliases(data).remove(alias)
    console().print(f"Alias {alias!r} is removed.")


def _aliases(data: Path | None) -> Aliases:
    from index.catalog.aliases import Aliases

    return Aliases(options.collections_root(options.settings_from(data=data)))
