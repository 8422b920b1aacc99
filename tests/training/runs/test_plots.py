"""The picture of a run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree  # a file that the test has written itself

import pytest

from tercet.training.runs.log import RunLog
from tercet.training.runs.plots import smoothed, write_plot


@pytest.mark.parametrize("held_out", [True, False])
def test_a_picture_of_losses_and_figures(tmp_path: Path, held_out: bool) -> None:
    log = RunLog(tmp_path, 0)
    for step in range(1, 120):
        # A loss that comes late, as a stage may have.
        losses = {"loss": 1 / step, **({"late": 2.0} if step > 60 else {})}
        log.write({"step": step, "losses": losses})
        if held_out and step % 20 == 0:
            log.write({"step": step, "development": {"A": {"sum": step / 120, "dense": 0.1}}})
    path = write_plot(tmp_path, "sum")
    root = ElementTree.parse(path).getroot()  # noqa: S314  # as above
    assert root is not None
    assert root.tag.endswith("svg")
    assert ("held-out nDCG@10, sum" in path.read_text()) or path.stat().st_size > 5_000


def test_smoothing_is_a_mean_over_a_fiftieth() -> None:
    assert smoothed([1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
    values = [float(value) for value in range(150)]
    found = smoothed(values)
    assert found[0] == 0.0
    assert found[1] == 0.5
    assert found[149] == 148.0
