"""A command with many options: `--help` shows the common ones, `--help-all` all of them."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

HELP_ALL = "--help-all"


class ServerCommand(TyperCommand):
    """A command that has an option for each setting of a server."""

    # Typer has a copy of Click of its own, whose types have no public name.
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the options that are shown. Those left out are parsed and completed all the same."""
        every = self.params
        if not ctx.meta.get(HELP_ALL):
            self.params = [param for param in every if is_common(param.name or "")]
        try:
            super().format_options(ctx, formatter)
        finally:
            self.params = every


def is_common(name: str) -> bool:
    """Whether an option is no setting, or one that most servers are given."""
    from tercet.service.settings.roles import COMMON
    from tercet.service.settings.settings import Settings

    field = Settings.model_fields.get(name)
    return field is None or COMMON in field.metadata


def print_all(ctx: typer.Context, wanted: bool) -> None:
    """The callback of `--help-all`."""
    if wanted:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit
