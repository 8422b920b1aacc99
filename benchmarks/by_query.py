"""nDCG@10 of trained encoders by query, and differences whose errors are paired over the queries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tercet.evaluation.beir import read_dataset
from tercet.evaluation.metrics import figures, parse_measures
from tercet.evaluation.results import Measuring
from tercet.evaluation.run import PLAIN_MEASURING, evaluate
from tercet.evaluation.runs import read_run
from tercet.models.encoder import Encoder

ByQuery = dict[str, float]
Table = dict[str, dict[str, Any]]
NDCG = "nDCG@10"


def kept_runs(folder: Path, encoder: Encoder, kept: Path, measuring: Measuring = PLAIN_MEASURING) -> None:
    """Writes the rankings of a collection's folder into `kept`, every document scored."""
    list(evaluate([read_dataset(folder)], encoder, measuring=measuring, exhaustive=True, runs=kept))


def ndcg_by_query(folder: Path, run: Path) -> ByQuery:
    """nDCG@10 of a run file for each judged query of the collection's folder."""
    by_query = figures(read_dataset(folder).qrels, read_run(run), parse_measures([NDCG])).by_query
    return {query: values[NDCG] for query, values in by_query.items()}


def means(runs: list[ByQuery]) -> dict[str, Any]:
    """The mean over queries and seeds, and that of each seed."""
    by_seed = [statistics.fmean(run.values()) for run in runs]
    return {"mean": round(statistics.fmean(by_seed), 4), "by_seed": [round(mean, 4) for mean in by_seed]}


def paired(runs: list[ByQuery], controls: list[ByQuery]) -> dict[str, Any]:
    """How far runs of several seeds are above their controls, the standard error over the queries, and seeds.

    Of each query the differences are averaged over the seeds first, so the error is that of other queries.
    """
    differences = np.array(
        [
            [run[query] - control[query] for query in runs[0]]
            for run, control in zip(runs, controls, strict=True)
        ]
    )
    by_query = differences.mean(axis=0)
    return {
        "difference": round(float(by_query.mean()), 4),
        "error": round(float(by_query.std(ddof=1) / math.sqrt(len(by_query))), 4),
        "by_seed": [round(float(mean), 4) for mean in differences.mean(axis=1)],
    }


def compared(runs: Mapping[str, list[ByQuery]], controls: Mapping[str, str]) -> Table:
    """Of each variant the mean and its differences. controls: variants by what the table calls them."""
    return {
        name: means(own)
        | {f"over {title}": paired(own, runs[control]) for title, control in controls.items()}
        for name, own in runs.items()
    }


def print_compared(title: str, table: Table) -> None:
    """Prints a line a variant."""
    print(title)
    for name, row in table.items():
        cells = [f"{k} {v['difference']:+.4f} ± {v['error']:.4f}" for k, v in row.items() if "over" in k]
        print(f"  {name:30} {row['mean']:.4f}  {'  '.join(cells)}", flush=True)
