"""Flags that belong together: a dataclass declares them once, and a command takes it as one parameter."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, get_type_hints


def with_flag_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a signature from which Typer makes a flag of each field of a parameter's dataclass.

    They stand where the parameter does. A field has a default, and an `Annotated` type that says what its
    flag is.
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
        yield _parameter(field.name, field.default, hints[field.name])


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
