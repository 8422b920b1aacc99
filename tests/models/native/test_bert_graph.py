"""Which graphs the kernels take, and how the loader chooses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.graph_engines import warn_of_slow_kernels
from tercet.models.graphs.onnx_file import read_onnx
from tercet.models.loader import load_encoder
from tercet.models.native.bert_graph import read_bert_graph
from tercet.models.onnx_encoder import OnnxEncoder

MAPS = Path("/proc/self/maps")


@pytest.fixture
def graph(exported_copy: Path) -> Path:
    return exported_copy / "onnx" / "model_int8.onnx"


def test_the_file_is_read_as_its_library_reads_it(graph: Path) -> None:
    found, model = read_onnx(graph), onnx.load(graph)
    assert [
        node.kind for node in found.nodes if node.outputs[0] in {n.output[0] for n in model.graph.node}
    ] == [node.op_type for node in model.graph.node]
    assert set(found.weights) == {tensor.name for tensor in model.graph.initializer}
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(found.weights[tensor.name], numpy_helper.to_array(tensor))


def test_a_file_of_many_weights_is_mapped_once(graph: Path) -> None:
    """Each map holds a descriptor, and a system may allow few."""
    model = onnx.load(graph)
    onnx.save(model, graph, save_as_external_data=True, location="weights", size_threshold=0)
    before = open_maps(graph.parent)
    found = read_onnx(graph)
    assert len(found.weights) == len(model.graph.initializer) > 2
    assert open_maps(graph.parent) - before == {graph, graph.with_name("weights")}
    assert len(found.maps) == 2


def test_matrices_are_held_once(graph: Path) -> None:
    """The panels that kernels take, and not the file that they were made of, too."""
    encoder = OnnxEncoder(graph.parent.parent, "bert", engine="native")
    assert graph in open_maps(graph.parent)
    assert resident_bytes(graph) == 0
    encode(encoder, ["wing"])  # whose row of the embeddings is read from the file
    assert resident_bytes(graph) > 0


def open_maps(folder: Path) -> set[Path]:
    """The files of a folder that this process has mapped."""
    paths = (Path(line.split(maxsplit=5)[5]) for line in MAPS.read_text().splitlines() if " /" in line)
    return {path for path in paths if path.parent == folder}


def resident_bytes(file: Path) -> int:
    """Bytes in memory of the maps of a file."""
    lines = iter(MAPS.with_name("smaps").read_text().splitlines())
    sizes = [next(rss for rss in lines if rss.startswith("Rss:")) for line in lines if str(file) in line]
    return sum(1024 * int(size.split()[1]) for size in sizes)


def test_a_graph_is_layers(graph: Path) -> None:
    found = read_bert_graph(graph)
    assert [layer.into.numbers.shape for layer in found.layers] == [(32, 96)] * 2
    assert found.heads == 4
    assert not found.counts_pads


def test_a_damaged_file_is_named(graph: Path) -> None:
    content = graph.read_bytes()
    for damaged in (content[:-40], b"\x3a\x05abc", b"\xff" * 50, b""):
        graph.write_bytes(damaged)
        with pytest.raises((CheckpointError, UnsupportedError), match=r"model_int8\.onnx"):
            read_bert_graph(graph)


def edited(graph: Path, kind: str, **changes: object) -> None:
    """The graph with other attributes of its nodes of a kind."""
    model = onnx.load(graph, load_external_data=False)
    for node in model.graph.node:
        if node.op_type == kind:
            for attribute in node.attribute:
                if attribute.name in changes:
                    node.attribute.remove(attribute)
            node.attribute.extend(onnx.helper.make_attribute(*change) for change in changes.items())
    graph.write_bytes(model.SerializeToString())


def test_another_gelu_is_not_taken(graph: Path) -> None:
    edited(graph, "Gelu", approximate="tanh")
    with pytest.raises(UnsupportedError, match="not an int8 graph of BERT's shape"):
        read_bert_graph(graph)


def test_layer_norms_elsewhere_are_not_taken(graph: Path) -> None:
    model = onnx.load(graph, load_external_data=False)
    norms = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    norms[2].input[0] = norms[0].output[0]
    graph.write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedError, match="layer norm 2 does not follow"):
        read_bert_graph(graph)


def test_float32_is_run_by_onnxruntime(bert_exported: Path) -> None:
    assert load_encoder(str(bert_exported), precision="float32", device="cpu").info.engine == "onnxruntime"
    with pytest.raises(UnsupportedError, match="the native engine runs int8 graphs on a CPU, not float32"):
        load_encoder(str(bert_exported), "native", precision="float32", device="cpu")


def test_both_engines_make_vectors_of_one_collection(bert_exported: Path) -> None:
    native = load_encoder(str(bert_exported), "native", device="cpu")
    other = load_encoder(str(bert_exported), "onnxruntime", precision="int8", device="cpu")
    assert native.info.fingerprint == other.info.fingerprint
    texts = ["hello world", "the heat of the air, and a wave!"]
    assert (encode(native, texts).dense * encode(other, texts).dense).sum(1).min() > 0.98


def test_a_long_text_alone_is_the_same_by_several_threads() -> None:
    texts = ["wing flow pressure layer heat transfer " * 60]
    alone, shared = (load_encoder("minilm-m3", "native", threads=threads) for threads in (1, 3))
    for one, other in zip(
        *((found.dense, found.colbert.vectors) for found in (encode(alone, texts), encode(shared, texts))),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_slow_kernels_are_told_once(
    bert_exported: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a processor without the instructions that they are made for; there nobody gets them unasked."""
    monkeypatch.setattr("tercet.models.graph_engines.is_fast", lambda: False)
    warn_of_slow_kernels.cache_clear()
    assert (
        load_encoder(str(bert_exported), "onnx", precision="int8", device="cpu").info.engine == "onnxruntime"
    )
    assert not caplog.records
    for _ in range(2):
        assert load_encoder(str(bert_exported), "native", device="cpu").info.engine == "native"
    (told,) = [record.getMessage() for record in caplog.records if "native engine" in record.getMessage()]
    assert "take the engine onnx or onnxruntime" in told
