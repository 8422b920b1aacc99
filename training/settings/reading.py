"""Reads the settings of a run from TOML or JSON; an error is one line with file, settings, values, limits."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from tercet.index.wording import reason_of, shown
from tercet.training.errors import ConfigError
from tercet.training.settings.run import PairSettings, PretrainingSettings, Run, RunSettings, ScoreRun
from tercet.training.settings.table import Table

RUNS: tuple[type[Run], ...] = (*get_args(PairSettings), ScoreRun, *get_args(PretrainingSettings))
Key = str | int
ADAPTER: TypeAdapter[RunSettings] = TypeAdapter(RunSettings)
# By pydantic's type of error; what is filled in is the value found, and pydantic's limit.
RULES: Mapping[str, str] = {
    "missing": "this setting is required",
    "union_tag_not_found": "this setting is required",
    "union_tag_invalid": "expected one of {expected_tags}, found {found}",
    "literal_error": "expected one of {expected}, found {found}",
    "greater_than": "it is {found}, but must be above {gt:g}",
    "greater_than_equal": "it is {found}, but must be at least {ge:g}",
    "less_than": "it is {found}, but must be below {lt:.15g}",
    "less_than_equal": "it is {found}, but must be at most {le:g}",
    "finite_number": "expected a finite number, found {found}",
    "string_type": "expected a text, found {found}",
    "int_type": "expected a whole number, found {found}",
    "float_type": "expected a number, found {found}",
    "bool_type": "expected true or false, found {found}",
    "tuple_type": "expected a list, found {found}",
    "model_type": "expected a table of settings, found {found}",
    "model_attributes_type": "expected a table of settings, found {found}",
    "dataclass_exact_type": "expected a table of settings, found {found}",
}


def read_settings(path: Path) -> RunSettings:
    """Settings of a `.toml` or `.json` file. Raises ConfigError naming the file and what is wrong in it."""
    try:
        content = path.read_text(encoding="utf-8")
        values = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as {path.suffix or 'TOML'}: {reason_of(error)}") from error
    try:
        return settings_from(values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def settings_from(values: object) -> RunSettings:
    """Settings from plain values. Raises ConfigError naming each setting at fault by its dotted key."""
    try:
        return ADAPTER.validate_python(values)
    except ValidationError as error:
        # Unknown keys first: a misspelt one is also missing.
        faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        raise ConfigError("; ".join(map(_message, faults))) from error


def _message(error: ErrorDetails) -> str:
    """What is wrong with one setting."""
    if error["type"].startswith("union_tag"):
        path: Sequence[Key] = ("stage",)
        given = error["input"].get("stage") if isinstance(error["input"], Mapping) else None
    else:
        path, given = error["loc"][1:], error["input"]  # the first is the stage
    context = error.get("ctx", {})
    if error["type"] == "extra_forbidden":
        rule = _unknown(str(error["loc"][0]), path)
    elif error["type"] == "value_error":  # of a rule about several keys, which it names
        return ".".join(filter(None, [_dotted(path), str(context["error"])]))
    elif error["type"] in RULES:
        words = {name: value.replace("'", '"') for name, value in context.items() if isinstance(value, str)}
        rule = RULES[error["type"]].format(found=shown(given), **{**context, **words})
    else:
        rule = error["msg"]
    return f"{_dotted(path) or 'settings'}: {rule}"


def _dotted(path: Sequence[Key]) -> str:
    """`data.sources[0].path`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _unknown(stage: str, path: Sequence[Key]) -> str:
    """Says which stages read a key that this one does not, or which keys there are."""
    *parents, last = path
    known = {run: _fields(run, parents) for run in RUNS}
    own = next(names for run, names in known.items() if stage in _stages(run))
    readers = [stage for run, names in known.items() if last in names for stage in _stages(run)]
    if readers:
        return f"not read in stage {stage}, only in {', '.join(readers)}: leave it out"
    return f"unknown setting (known are {', '.join(sorted(own))})"


def _stages(run: type[Run]) -> tuple[str, ...]:
    return get_args(run.model_fields["stage"].annotation)


def _fields(table: type[Table], path: Sequence[Key]) -> set[str]:
    """Keys of the table at a place of another; none where there is no such table."""
    tables: list[type[Table]] = [table]
    for key in path:
        if not isinstance(key, int):
            annotations = [t.model_fields[key].annotation for t in tables if key in t.model_fields]
            tables = [inner for annotation in annotations for inner in _tables_in(annotation)]
    return {name for inner in tables for name in inner.model_fields}


def _tables_in(annotation: Any) -> Iterator[type[Table]]:
    """The tables of an annotation: itself, or inside an optional or a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)
