"""What flows into the matrix products of a float32 graph: second moments of their inputs over texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from tercet.models.cores import usable_cores
from tercet.models.graphs.onnx_graph import Placement, open_session
from tercet.models.representations import Int32

Moments = Mapping[str, npt.NDArray[np.float64]]
OBSERVED_FILE = "observed.onnx"
MOST_BYTES = 1 << 30  # of moments that are summed in one pass over the texts


def second_moments(graph: Path, widths: Mapping[str, int], texts: Sequence[Int32]) -> Moments:
    """The sum of x·xᵀ over the rows x of tensors inside a graph, float64[D, D] by the tensor's name.

    widths: D of each tensor that is wanted; texts: ids of the tokens of each text. Writes a graph beside the
    one given, whose weights may lie there too.
    """
    moments: dict[str, npt.NDArray[np.float64]] = {}
    for names in _passes(widths):
        observed = _observed(graph, names)
        session = open_session(observed, Placement("cpu", 0, usable_cores()))
        for ids in texts:
            batch = ids[None].astype(np.int64)  # one text: no row is padding
            inputs = {"input_ids": batch, "attention_mask": np.ones_like(batch)}
            for name, values in zip(names, session.run(list(names), inputs), strict=True):
                rows = values.reshape(-1, widths[name])
                moments[name] = moments.get(name, 0.0) + (rows.T @ rows).astype(np.float64)
        observed.unlink()
    return moments


def _passes(widths: Mapping[str, int]) -> Iterator[list[str]]:
    """The tensors in groups whose moments fit into MOST_BYTES, or of one."""
    group: list[str] = []
    size = 0
    for name, width in widths.items():
        moments = 8 * width * width
        if group and size + moments > MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(name)
        size += moments
    if group:
        yield group


def _observed(graph: Path, names: Sequence[str]) -> Path:
    """The graph with these tensors as its outputs."""
    model = onnx.load(graph, load_external_data=False)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    path = graph.with_name(OBSERVED_FILE)
    onnx.save(model, path)
    return path
