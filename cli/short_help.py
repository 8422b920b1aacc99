"""A command with many options: `--help` shows the common ones, `--help-all` all of them, by their panels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tercet.service.settings.roles import Panel

HELP_ALL = "--help-all"


def add_command(app: typer.Typer, command: Callable[..., None], name: str | None = None) -> None:
    """Adds a command whose options may say by `rich_help_panel` what they are about; others are common.

    Those that `--help` leaves out are parsed and completed all the same.
    """
    app.command(name, cls=_LongCommand)(_with_help_all(command))


class _LongCommand(TyperCommand):
    # Typer has a copy of Click of its own, whose types have no public name.
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments, and the options by their panels."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{panel: [] for panel in Panel}}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                is_option = param.param_type_name == "option"
                sections[_panel(param) if is_option else "Arguments"].append(record)
        short = ("Arguments", Panel.COMMON)
        is_long = any(records for name, records in sections.items() if name not in short)
        for name, records in sections.items():
            if records and (name in short or ctx.meta.get(HELP_ALL)):
                title = name if name == "Arguments" else f"{name} options" if is_long else "Options"
                with formatter.section(title):
                    formatter.write_dl(records)


def _panel(option: Any) -> Panel:
    return Panel(getattr(option, "rich_help_panel", None) or Panel.COMMON)


def _with_help_all(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the flag `--help-all`, where it has options that are not common."""
    signature = inspect.signature(command)
    parameters = list(signature.parameters.values())
    notes = [note for each in parameters for note in getattr(each.annotation, "__metadata__", ())]
    if all(_panel(note) == Panel.COMMON for note in notes):
        return command

    @wraps(command)
    def run(*, help_all: bool, **given: Any) -> None:
        command(**given)

    flag = typer.Option(HELP_ALL, help="Show all options and exit.", is_eager=True, callback=_print_all)
    last = inspect.Parameter(
        "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, flag]
    )
    run.__signature__ = signature.replace(parameters=[*parameters, last])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in [*parameters, last]}
    return run


def _print_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit
