"""Flags of `tercet eval` that say what is measured, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.search import parse_weights
from tercet.evaluation.suites.names import SuiteName

if TYPE_CHECKING:
    from tercet.evaluation.dataset import Dataset
    from tercet.evaluation.results import Measuring
    from tercet.evaluation.suites.presets import Suite
    from tercet.index.candidates import Weights

SIDES = ("dense", "sparse", "colbert", "bm25-words")
OF_THEIR_OWN = {*SIDES, "bm25"}
ROW = re.compile(r"(?:([\w.+-]+)=)?(.*)")


@dataclass(frozen=True, kw_only=True)
class MeasuringFlags:
    """What is measured of rankings, wherever these come from."""

    suite: Annotated[
        SuiteName | None,
        typer.Option(
            help="FOLDER is this benchmark's as published; measures, depth and weights are its own.",
            show_default=False,
        ),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measure this language or set of the suite; may be repeated. [default: all there are]",
            show_default=False,
        ),
    ] = None
    measures: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Measures by their names in ir-measures, such as nDCG@10,R@20,Success@5,AP@1000. "
            "[default: nDCG@10,R@100,RR@10]",
            show_default=False,
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            help="Which judgments: qrels/SPLIT.tsv. [default: test, or the suite's]", show_default=False
        ),
    ] = None
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

    def preset(self) -> Suite | None:
        """The preset of --suite, None without one."""
        from tercet.evaluation.suites.presets import SUITES

        return None if self.suite is None else SUITES[self.suite]

    def datasets(self, folder: Path) -> list[Dataset]:
        """The data sets to measure. Raises DatasetError for what the folder lacks."""
        from tercet.evaluation.beir import TEST, read_dataset

        suite = self.preset()
        if suite is None:
            if self.only:
                raise typer.BadParameter("chooses sets of a --suite; give that, too", param_hint="--only")
            return [read_dataset(folder, self.split or TEST)]
        datasets = suite.read(folder, self.split)
        names = [dataset.name for dataset in datasets]
        for name in self.only or ():
            if name not in names:
                raise typer.BadParameter(
                    f"{name!r:.80} is no set here; there are {', '.join(names)}", param_hint="--only"
                )
        return [dataset for dataset in datasets if not self.only or dataset.name in self.only]

    def runs(self) -> list[Path]:
        """The run files to score: those of --run, and of --compare those that are files and no rankings."""
        runs = list(self.run or ())
        names = {*(path.stem for path in runs), *map(str, runs)}
        compared = [Path(name) for name in self.compare or () if name not in names]
        return runs + [path for path in dict.fromkeys(compared) if path.is_file()]

    def measuring(self) -> Measuring:
        """What is measured. Raises MeasureError for a name that is no measure."""
        from tercet.evaluation.metrics import deepest, parse_measures
        from tercet.evaluation.results import Measuring, run_names

        called = {str(path): name for name, path in run_names(self.runs()).items()}
        compare = self.compare and (
            called.get(self.compare[0], self.compare[0]),
            called.get(self.compare[1], self.compare[1]),
        )
        suite = self.preset()
        measures = parse_measures(self.measures or (() if suite is None else suite.measures))
        depth = self.depth
        if depth is None and suite is not None:
            depth = max(suite.depth, deepest(measures))
        return Measuring(
            measures,
            depth,
            self.by_query or self.by_query_file is not None,
            compare,
            self.seed,
        )


def parse_rows(given: Sequence[str]) -> tuple[Weights | None, dict[str, Weights]]:
    """The weights of `sum`, and of further rankings by name, as several --weights give them.

    The first without a name is for `sum`, which has None without one. `NAME=WEIGHTS` names a ranking; others
    are called by their weights, such as dense+0.3sparse. Raises typer.BadParameter.
    """
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
    return total, rows


def row_name(weights: Weights) -> str:
    """A ranking by its weights, such as `dense+0.3sparse`."""
    values = (weights.dense, weights.sparse, weights.colbert, weights.bm25)
    return "+".join(
        side if value == 1 else f"{value:g}{side}" for side, value in zip(SIDES, values, strict=True) if value
    )
