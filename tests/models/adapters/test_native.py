"""Int8 graphs of adapters by kernels of our own where the adapter is in the weights, else by onnxruntime."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.models.encoder import Encoder, Engine, encode, with_adapter
from tercet.models.errors import AdapterNotServedError
from tercet.models.export_onnx import export_adapter
from tercet.models.graphs.onnx_graph import OnnxGraph
from tercet.models.loader import load_encoder
from tercet.models.native.native_graph import NativeGraph
from tercet.models.onnx_encoder import OnnxEncoder
from tercet.models.representations import Float32
from tests.models.conftest import graph_in

pytestmark = pytest.mark.slow

MadeOnce = Callable[[str, Callable[[Path], object]], Path]
FOLDED = ("ia3", "sparse", "with-heads")  # the last is LoRA, too
IN_GRAPH = ("prefix", "prompt", "parallel", "fusion", "stack")  # the last has a bottleneck
TEXTS = ["hello world", "the heat of the air, and a wave!", "word " * 40, "a wing of air"]


@pytest.fixture(scope="module")
def adapters(made_once: MadeOnce, bert_family: Any) -> Path:
    def write(root: Path) -> None:
        shutil.copytree(bert_family.adapters, root, ignore=shutil.ignore_patterns("onnx"))
        for name in (*FOLDED, *IN_GRAPH):
            with graph_in(bert_family.adapters / name):
                export_adapter(bert_family.checkpoint, root / name, int8=True)

    return made_once("adapters/int8", write)


def opened(bert_exported: Path, adapters: Path, engine: Engine) -> OnnxEncoder:
    found = load_encoder(str(bert_exported), engine, device="cpu", precision="int8", adapters=adapters)
    assert isinstance(found, OnnxEncoder)
    return found


def vectors(encoder: Encoder, name: str) -> tuple[Float32, Float32]:
    """Dense vectors and token vectors with an adapter."""
    found = encode(with_adapter(encoder, name), TEXTS)
    assert found.dense is not None
    assert found.colbert is not None
    return found.dense, found.colbert.vectors


def test_what_is_in_the_weights_runs_on_the_kernels(bert: Path, bert_exported: Path, adapters: Path) -> None:
    native, other = (opened(bert_exported, adapters, engine) for engine in ("onnx", "onnxruntime"))
    reference = load_encoder(str(bert), "torch", device="cpu", adapters=adapters)
    assert isinstance(native._graph, NativeGraph)
    for name in FOLDED:
        assert isinstance(native._adapters.open(name), NativeGraph)
        assert isinstance(other._adapters.open(name), OnnxGraph)
        assert native.adapter_info(name).fingerprint == other.adapter_info(name).fingerprint
        exact, base = vectors(reference, name), encode(reference, TEXTS).dense
        for found, wanted, rounded in zip(vectors(native, name), exact, vectors(other, name), strict=True):
            assert (found * wanted).sum(1).min() > 0.95
            assert (found * rounded).sum(1).min() > 0.95
        assert np.abs(exact[0] - base).max() > 0.01  # so that the base's graph would not do


def test_what_is_in_the_graph_runs_by_onnxruntime(bert_exported: Path, adapters: Path) -> None:
    encoder = opened(bert_exported, adapters, "onnx")
    other = opened(bert_exported, adapters, "onnxruntime")
    for name in IN_GRAPH:
        assert isinstance(encoder._adapters.open(name), OnnxGraph)
        np.testing.assert_array_equal(vectors(encoder, name)[0], vectors(other, name)[0])


def test_the_native_engine_serves_none_of_these(bert_exported: Path, adapters: Path, tmp_path: Path) -> None:
    """And says so where it is asked what it has, before any text is encoded."""
    folder = Path(shutil.copytree(adapters, tmp_path / "adapters"))
    encoder = opened(bert_exported, folder, "native")
    problems = {each.name: each.problem for each in encoder.describe_adapters()}
    assert all(problems[name] is None for name in FOLDED)
    for name in IN_GRAPH:
        message = f"adapter '{name}': .* is not an int8 graph of BERT's shape.*; choose the engine onnx"
        with pytest.raises(AdapterNotServedError, match=message):
            encoder.adapter_info(name)
        assert "not an int8 graph of BERT's shape" in str(problems[name])
