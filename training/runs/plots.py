"""The losses and development figures of a run as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from tercet.training.runs.log import read_log

PLOT_FILE = "losses.svg"
SMOOTHED_SHARE = 50


def write_plot(folder: Path, side: str) -> Path:
    """Draws the log of a run's folder to `losses.svg` and returns its path; side: of development figures.

    Losses are means over a fiftieth of the steps before.
    """
    lines = list(read_log(folder))
    steps = [line for line in lines if "losses" in line]
    developments = [line for line in lines if "development" in line]
    figure = Figure(figsize=(7, 6), layout="constrained")
    losses, development = figure.subplots(2, 1, sharex=True)
    numbers = [line["step"] for line in steps]
    for name in sorted({name for line in steps for name in line["losses"]}):
        losses.plot(numbers, smoothed([line["losses"].get(name, np.nan) for line in steps]), label=name)
    losses.set_ylabel("loss")
    losses.legend(fontsize="small", ncols=2)
    for source in sorted({source for line in developments for source in line["development"]}):
        values = [line["development"][source][side] for line in developments]
        development.plot([line["step"] for line in developments], values, marker=".", label=source)
    development.set_ylabel(f"held-out nDCG@10, {side}")
    development.set_xlabel("step")
    if developments:
        development.legend(fontsize="small")
    path = folder / PLOT_FILE
    FigureCanvasSVG(figure).print_svg(path)  # type: ignore[no-untyped-call]  # matplotlib leaves it untyped
    return path


def smoothed(values: Sequence[float]) -> list[float]:
    """The mean of each value and of those shortly before it."""
    width = max(1, len(values) // SMOOTHED_SHARE)
    return [float(np.mean(values[max(0, end - width) : end])) for end in range(1, len(values) + 1)]
