"""Flags of `tercet eval` that say what is measured, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.search import parse_weights

if TYPE_CHECKING:
    from tercet.evaluation.results import Measuring
    from tercet.index.candidates import Weights

SIDES = ("dense", "sparse", "colbert", "bm25-words")
OF_THEIR_OWN = {*SIDES, "bm25"}
ROW = re.compile(r"(?:([\w.+-]+)=)?(.*)")


@dataclass(frozen=True, kw_only=True)
class MeasuringFlags:
    """What is measured of rankings, wherever these come from."""

    measures: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Measures by their names in ir-measures, such as nDCG@10,R@20,Success@5,AP@1000. "
            "[default: nDCG@10,R@100,RR@10]",
            show_default=False,
        ),
    ] = None
    split: Annotated[str, typer.Option(help="Which judgments: qrels/SPLIT.tsv.")] = "test"
    depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Documents kept of each query. [default: 100, or as many as the measures look at]",
            show_default=False,
        ),
    ] = None
    run: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Score this run file of TREC, of any system, instead of ranking; may be repeated.",
            show_default=False,
        ),
    ] = None

    by_query: Annotated[bool, typer.Option("--by-query", help="Report the figures of each query, too.")] = (
        False
    )
    by_query_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the figures of each query to FILE: ranking, query, measure, value; tab-separated.",
            show_default=False,
        ),
    ] = None
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Test whether two rankings, or two run files of TREC, differ by more than chance.",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Of the random signs of --compare.")] = 0

    def runs(self) -> list[Path]:
        """The run files to score: those of --run, and of --compare those that are files and no rankings."""
        runs = list(self.run or ())
        names = {*(path.stem for path in runs), *map(str, runs)}
        compared = [Path(name) for name in self.compare or () if name not in names]
        return runs + [path for path in dict.fromkeys(compared) if path.is_file()]

    def measuring(self) -> Measuring:
        """What is measured. Raises MeasureError for a name that is no measure."""
        from tercet.evaluation.metrics import parse_measures
        from tercet.evaluation.results import Measuring, run_names

        called = {str(path): name for name, path in run_names(self.runs()).items()}
        compare = self.compare and (
            called.get(self.compare[0], self.compare[0]),
            called.get(self.compare[1], self.compare[1]),
        )
        return Measuring(
            parse_measures(self.measures or ()),
            self.depth,
            self.by_query or self.by_query_file is not None,
            compare,
            self.seed,
        )


def parse_rows(given: Sequence[str]) -> tuple[Weights, dict[str, Weights]]:
    """The weights of `sum`, and of further rankings by name, as several --weights give them.

    The first without a name is for `sum`. `NAME=WEIGHTS` names a ranking; others are called by their weights,
    such as dense+0.3sparse. Raises typer.BadParameter.
    """
    from tercet.index.candidates import Weights

    total: Weights | None = None
    rows: dict[str, Weights] = {}
    for words in given:
        matched = ROW.fullmatch(words)
        name, values = matched.groups() if matched else (None, words)
        weights = parse_weights(values)
        if name == "sum" or (name is None and total is None):
            name, taken = "sum", total is not None
            total = weights
        else:
            if name in OF_THEIR_OWN:
                raise typer.BadParameter(
                    f"{name} is a ranking of its own; use another name", param_hint="--weights"
                )
            name = name or row_name(weights)
            taken = name in rows
            rows[name] = weights
        if taken:
            raise typer.BadParameter(f"{name} is given twice; name them apart", param_hint="--weights")
    return total or Weights(), rows


def row_name(weights: Weights) -> str:
    """A ranking by its weights, such as `dense+0.3sparse`."""
    values = (weights.dense, weights.sparse, weights.colbert, weights.bm25)
    return "+".join(
        side if value == 1 else f"{value:g}{side}" for side, value in zip(SIDES, values, strict=True) if value
    )
