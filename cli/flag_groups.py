"""Flags that belong together: a dataclass declares them once, and a command takes it as one parameter."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from copy import copy
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

from tercet.service.settings.roles import Panel


def with_flag_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a signature from which Typer makes a flag of each field of a parameter's dataclass.

    They stand where the parameter does. A field has a default, and an `Annotated` type that says what its
    flag is. The dataclass's `PANEL`, where it has one, is the panel of those that name none.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        command(**given)

    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            parameters.append(_parameter(name, parameter.default, hints[name]))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # which `inspect.signature` reads
    return run


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        hint = hints[field.name]
        yield _parameter(field.name, field.default, _in_panel(hint, getattr(group, "PANEL", None)))


def _in_panel(hint: Any, panel: Panel | None) -> Any:
    """A flag's type, with the group's panel for a flag that names none."""
    kind, option = get_args(hint)
    if option.rich_help_panel is None:
        option = copy(option)
        option.rich_help_panel = panel
    return Annotated[kind, option]


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
