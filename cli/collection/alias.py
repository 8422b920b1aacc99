"""`tercet collection alias`: second names of collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli import options
from tercet.cli.output import console, print_json, print_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from tercet.index.catalog.aliases import Aliases

app = typer.Typer(help="Second names of collections: put, list, delete.", no_args_is_help=True)

Alias = Annotated[str, typer.Argument(metavar="ALIAS", help="The second name.")]


@app.command()
def put(
    alias: Alias,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Name of the collection; or of several of one encoder, which are searched as one.",
            autocompletion=options.collection_names,
        ),
    ],
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Make an alias, or switch it to other collections in one step; a running server follows at once."""
    from tercet.index.catalog.alike import names_of
    from tercet.service.answers.aliases import alias_record

    meant = _aliases(data).put(alias, *names)
    if as_json:
        print_json(alias_record(alias, meant))
    else:
        several = "s" if len(meant) > 1 else ""
        console().print(f"Alias {alias!r} means collection{several} {names_of(meant)}.", soft_wrap=True)


@app.command("list")
def list_all(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Show all aliases and their collections."""
    from tercet.service.answers.aliases import alias_record

    aliases = _aliases(data).all()
    if as_json:
        print_json({"aliases": [alias_record(alias, meant) for alias, meant in aliases.items()]})
    else:
        print_pairs({alias: ", ".join(meant) for alias, meant in aliases.items()}, console())


@app.command()
def delete(alias: Alias, data: options.Data = None) -> None:
    """Remove an alias; its collections stay."""
    _aliases(data).remove(alias)
    console().print(f"Alias {alias!r} is removed.")


def _aliases(data: Path | None) -> Aliases:
    from tercet.index.catalog.aliases import Aliases

    return Aliases(options.collections_root(options.settings_from(data=data)))
