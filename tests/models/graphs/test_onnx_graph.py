"""Which session encodes a batch: short ones run on one thread, and give the same to the last bit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.models.graphs import onnx_graph
from tercet.models.graphs.onnx_graph import LONE_TOKENS, OnnxGraph, Placement
from tercet.models.representations import OUTPUTS


def opened(monkeypatch: pytest.MonkeyPatch, path: Path, placement: Placement) -> tuple[OnnxGraph, list[int]]:
    """A graph, and the threads of the session of each of its runs."""
    threads: list[int] = []
    session_of = onnx_graph.open_session

    class Watched:
        def __init__(self, path: Path, placement: Placement) -> None:
            self._session, self._threads = session_of(path, placement), placement.threads

        def run(self, *arguments: Any) -> Any:
            threads.append(self._threads)
            return self._session.run(*arguments)

    monkeypatch.setattr(onnx_graph, "open_session", Watched)
    return OnnxGraph(path, placement), threads


@pytest.mark.slow
def test_short_batches_run_on_one_thread(embedded_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = embedded_checkpoint / "onnx" / "model_int8.onnx"
    single = OnnxGraph(path, Placement("cpu", 0, 1))
    graph, threads = opened(monkeypatch, path, Placement("cpu", 0, 2))
    for tokens in (3, LONE_TOKENS, LONE_TOKENS + 1, 8 * LONE_TOKENS):
        ids = np.random.default_rng(tokens).integers(1000, 20_000, (1, tokens))
        mask = np.ones_like(ids)
        found, expected = graph.forward(ids, mask, OUTPUTS), single.forward(ids, mask, OUTPUTS)
        for output in OUTPUTS:
            np.testing.assert_array_equal(getattr(found, output), getattr(expected, output))
    assert threads == [1, 1, 2, 2]


@pytest.mark.parametrize(("spare_bytes", "expected"), [(0, 1), (-1, 2)])
def test_a_large_graph_is_held_once(
    embedded_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, spare_bytes: int, expected: int
) -> None:
    folder = embedded_checkpoint / "onnx"
    size = sum(path.stat().st_size for path in folder.glob("model_int8.onnx*"))
    monkeypatch.setattr(onnx_graph, "LONE_GRAPH_BYTES", size + spare_bytes)
    graph, threads = opened(monkeypatch, folder / "model_int8.onnx", Placement("cpu", 0, 2))
    ids = np.array([[101, 102]])
    graph.forward(ids, np.ones_like(ids), OUTPUTS)
    assert threads == [expected]


def test_nothing_is_told_of_machines_and_models(
    embedded_checkpoint: Path, tmp_path: Path, repository: Path
) -> None:
    """What onnxruntime would send, and its identifier of the machine, lie in a cache before that."""
    path = embedded_checkpoint / "onnx" / "model_int8.onnx"
    code = f"""
from pathlib import Path
from tercet.models.graphs.onnx_graph import OnnxGraph, Placement
OnnxGraph(Path({str(path)!r}), Placement("cpu", 0, 1))
"""
    places = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "CI": ""}
    inherited = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", code], cwd=repository, env={**inherited, **places}, check=True)
    assert list(tmp_path.rglob("*onnxruntime*")) == []
