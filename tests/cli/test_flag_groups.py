"""Flags that a dataclass declares, as a command gets them."""

from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tercet.cli.collection.build import build
from tercet.cli.documents_put import put
from tercet.cli.flag_groups import with_flag_groups


@dataclass(frozen=True, kw_only=True)
class Shape:
    side: Annotated[int, typer.Option(help="Metres.")] = 2
    tags: Annotated[list[str] | None, typer.Option("--tag")] = None
    round: Annotated[bool, typer.Option("--round")] = False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a"], "a first Shape(side=2, tags=None, round=False) last"),
        (
            ["a", "--last", "z", "--side", "3", "--tag", "x", "--tag", "y", "--round"],
            "a first Shape(side=3, tags=['x', 'y'], round=True) z",
        ),
    ],
)
def test_a_group_is_one_parameter(words: list[str], said: str) -> None:
    app = typer.Typer(add_completion=False)

    @app.command()
    @with_flag_groups
    def measure(
        name: Annotated[str, typer.Argument()], *, first: str = "first", shape: Shape, last: str = "last"
    ) -> None:
        """Measure a shape."""
        typer.echo(f"{name} {first} {shape} {last}")

    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.output.strip()) == (0, said)
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Measure a shape." in shown
    places = [shown.index(flag) for flag in ("--first", "--side", "--tag", "--round", "--last")]
    assert places == sorted(places)
    wrong = CliRunner().invoke(app, ["a", "--side", "wide"])
    assert wrong.exit_code == 2


def test_every_command_that_reads_sources_has_the_flags_of_reading() -> None:
    import inspect

    from tercet.cli.reading.flags import ReadingFlags

    flags = {field.name for field in fields(ReadingFlags)}
    for command in (build, put):
        assert flags <= set(inspect.signature(command).parameters)
