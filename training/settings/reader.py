"""From values of a TOML or JSON file to frozen dataclasses. Every key is checked; an unknown one fails."""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from models.errors import ModelError
from training.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings")


def read_settings(kind: type[Settings], path: Path) -> Settings:
    """Settings of a `.toml` or `.json` file. Raises ConfigError naming the file and the key."""
    try:
        content = path.read_text(encoding="utf-8")
        values = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as {path.suffix or 'TOML'}: {error}") from error
    try:
        return settings_from(kind, values, "")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def settings_from(kind: type[Settings], values: object, where: str) -> Settings:
    """Builds the frozen dataclass `kind`, and those inside it, from plain values.

    `where` is the dotted path of keys so far, for messages.
    Raises ConfigError on unknown and missing keys, on wrong types and on values out of range.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where or 'settings'}: expected a table of settings, found {values!r}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]  # every caller passes a dataclass
    for key in values:
        if key not in known:
            raise ConfigError(f"{joined(where, key)}: unknown setting; known are {', '.join(sorted(known))}")
    hints = get_type_hints(kind)
    built: dict[str, Any] = {}
    for name, definition in known.items():
        if name in values:
            built[name] = typed_value(hints[name], values[name], joined(where, name))
        elif definition.default is MISSING and definition.default_factory is MISSING:
            raise ConfigError(f"{joined(where, name)}: this setting is required")
    try:
        return kind(**built)
    except (ValueError, ModelError) as error:
        raise ConfigError(joined(where, str(error))) from error


def require(holds: bool, key: str, value: object, rule: str) -> None:
    """Raises ValueError, its message led by the key, unless the rule holds."""
    if not holds:
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        raise ValueError(f"{key}: it is {shown}, but must be {rule}")


def refuse_given(settings: DataclassInstance, names: Iterable[str], where: str, rule: str) -> None:
    """Raises ValueError for a setting, or whole table, that is not left at its default.

    names: fields, or `table.field`; where: put before the name, for messages.
    """
    for name in names:
        owner, last = settings, name
        if "." in name:
            table, last = name.split(".")
            owner = getattr(settings, table)
        value = getattr(owner, last)
        (field,) = (f for f in fields(owner) if f.name == last)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        require(value == default, where + name, "given" if is_dataclass(value) else value, rule)


def typed_value(hint: Any, value: object, where: str) -> object:
    """The value as `hint` asks: a dataclass, a tuple of one kind, one of several words, an optional of
    these, or str, int, float, bool. JSON's null stands for an optional that is not given.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):  # an optional Literal is the first, an optional class the second
        if value is None:
            return None
        present = next(argument for argument in arguments if argument is not NoneType)
        return typed_value(present, value, where)
    if is_dataclass(hint) and isinstance(hint, type):
        return settings_from(hint, value, where)
    if origin is Literal:
        if value not in arguments:
            raise ConfigError(f"{where}: expected one of {', '.join(map(repr, arguments))}, found {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where}: expected a list, found {value!r}")
        return tuple(typed_value(arguments[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if hint is float and type(value) is int:
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: expected a finite number, found {value!r}")
    if type(value) is not hint:
        raise ConfigError(f"{where}: expected {hint.__name__}, found {value!r}")
    return value


def joined(where: str, key: str) -> str:
    """Dotted path of a key."""
    return f"{where}.{key}" if where else key
