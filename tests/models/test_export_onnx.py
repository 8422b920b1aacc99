"""What an export writes, and that it is a checkpoint of its own."""

import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.export_onnx import export
from tercet.models.export_verification import largest_differences
from tercet.models.graphs.record import GRAPH_FILES, read_export
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations, SparseRows, TokenVectors


@pytest.fixture
def already_traced(bert_exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny BERT's graph of float32 is taken from its export."""
    traced = bert_exported / "onnx" / "model.onnx"
    monkeypatch.setattr("tercet.models.export_onnx.write_graph", lambda _, path: shutil.copy(traced, path))


def test_an_exported_folder_needs_nothing_else(bert_exported: Path) -> None:
    names = {
        path.relative_to(bert_exported).as_posix() for path in bert_exported.rglob("*") if path.is_file()
    }
    assert names == {
        "config.json",
        "tokenizer.json",
        "tercet.json",
        "heads.safetensors",
        "onnx/export.json",
        "onnx/model.onnx",
        "onnx/model_int8.onnx",
        "onnx/model_int8.onnx.data",
    }
    for name in names:
        assert (bert_exported / name).stat().st_mode & 0o004, f"{name} is not readable by others"


@pytest.mark.slow
@pytest.mark.usefixtures("already_traced")
def test_the_report_names_the_largest_differences_of_a_graph_without_weights_for_torch(
    bert: Path, tmp_path: Path
) -> None:
    report = export(bert, tmp_path / "out", int8=False)
    assert report.precision == "float32"
    assert report.graph == tmp_path / "out" / "onnx" / "model.onnx"
    assert report.graph_bytes == report.graph.stat().st_size
    assert set(report.differences) == {"dense", "sparse", "colbert"}
    assert max(report.differences.values()) < 1e-4
    assert read_export(tmp_path / "out").graphs["float32"].differences == report.differences
    assert report.fingerprint == load_encoder(str(bert), "torch", device="cpu").info.fingerprint
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        load_encoder(str(tmp_path / "out"), "torch", device="cpu")


@pytest.mark.slow
def test_exporting_again_gives_the_same_graph(bert: Path, bert_exported: Path, tmp_path: Path) -> None:
    """Also where a record lies that cannot be read, whose message says to export again."""
    record = tmp_path / "again" / "onnx" / "export.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"format": 1, "gra')
    export(bert, tmp_path / "again", int8=True)
    former, again = read_export(bert_exported), read_export(tmp_path / "again")
    assert again.graphs["int8"].files == former.graphs["int8"].files


@pytest.mark.slow
def test_two_exports_into_one_folder_at_once(bert: Path, tmp_path: Path) -> None:
    """One waits for the other; what a third left that was killed is gone."""
    output = tmp_path / "out"
    (output / ".unfinished-of-a-killed-one").mkdir(parents=True)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(export, bert, output, int8=int8) for int8 in (False, True)]:
            done.result()
    assert set(read_export(output).graphs) == {"float32", "int8"}
    for precision in ("float32", "int8"):  # whose digests are those of the record
        encoder = load_encoder(str(output), "onnxruntime", device="cpu", precision=precision)
        assert encoder.info.precision == precision
    assert not list(output.rglob(".*"))


def test_a_graph_names_no_source_file(bert_exported: Path) -> None:
    for path in (bert_exported / "onnx").glob("*.onnx"):
        assert b".py" not in path.read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("already_traced")
def test_export_into_the_checkpoint_itself_and_what_collections_are_advised(bert_copy: Path) -> None:
    assert load_encoder(str(bert_copy), "torch", device="cpu").info.lexical == "plain"
    settings = bert_copy / "tercet.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "lexical": "idf"}))
    export(bert_copy, bert_copy, int8=False)
    torch_info = load_encoder(str(bert_copy), "torch", device="cpu").info
    onnx_info = load_encoder(str(bert_copy), "onnx", device="cpu").info
    assert onnx_info.fingerprint == torch_info.fingerprint
    assert onnx_info.lexical == torch_info.lexical == "idf"


@pytest.mark.slow
def test_another_source_replaces_the_former_graphs(bert_copy: Path, exported_copy: Path) -> None:
    (bert_copy / "tercet.json").write_text(json.dumps({"pooling": "cls"}))
    export(bert_copy, exported_copy, int8=False)
    assert set(read_export(exported_copy).graphs) == {"float32"}


def test_weights_from_bin_are_read_as_plain_weights(bert: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder = Path(shutil.copytree(bert, tmp_path / "bin"))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    one = encode(load_encoder(str(folder), "torch", device="cpu"), ["hello wave"])
    other = encode(load_encoder(str(bert), "torch", device="cpu"), ["hello wave"])
    np.testing.assert_array_equal(one.dense, other.dense)


def test_weights_that_lack_a_layer(bert_copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(bert_copy / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, bert_copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        CheckpointError, match=r"lack 1 tensors, such as encoder\.layer\.1\.output\.dense\.weight"
    ):
        load_encoder(str(bert_copy), "torch", device="cpu")


def test_the_graph_takes_any_batch_and_length(bert_exported: Path) -> None:
    graph = onnx.load(bert_exported / "onnx" / "model.onnx").graph
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }
    assert list(shapes) == ["input_ids", "attention_mask", "dense", "sparse", "colbert"]
    assert [shapes["dense"][1], shapes["colbert"][2]] == [32, 16]
    assert all(isinstance(shapes[name][0], str) for name in shapes)


@pytest.mark.usefixtures("already_traced")
@pytest.mark.parametrize(
    ("int8", "differences"),
    [(False, {"dense": 0.0, "sparse": float("nan")}), (True, {"dense": float("inf")})],
)
def test_a_graph_that_computes_something_else_is_not_installed(
    bert: Path,
    exported_copy: Path,
    monkeypatch: pytest.MonkeyPatch,
    differences: dict[str, float],
    int8: bool,
) -> None:
    monkeypatch.setattr("tercet.models.export_verification.largest_differences", lambda *_: differences)
    with pytest.raises(UnsupportedError, match="differs from torch"):
        export(bert, exported_copy, int8=int8)
    kept = "float32" if int8 else "int8"
    assert list(read_export(exported_copy).graphs) == [kept]
    assert {path.stem for path in (exported_copy / "onnx").glob("*.onnx")} == {Path(GRAPH_FILES[kept]).stem}
    load_encoder(str(exported_copy))


def test_differences_by_hand() -> None:
    def made(dense: float, ids: list[int], weights: list[float], colbert: float) -> Representations:
        return Representations(
            np.array([3]),
            np.array([False]),
            np.array([[dense]], np.float32),
            SparseRows(np.array([0, len(ids)]), np.array(ids, np.int32), np.array(weights, np.float32)),
            TokenVectors(np.array([[colbert]], np.float32), np.array([0, 1])),
        )

    found = largest_differences(made(0.5, [4, 9], [0.2, 0.3], 1.0), made(0.25, [9], [0.4], -1.0))
    assert found == pytest.approx({"dense": 0.25, "sparse": 0.2, "colbert": 2.0})


def test_a_body_without_an_operator_is_refused_in_one_line(
    bert_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the exporter raises; nothing is left that could be opened."""
    import torch

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("stage failed\nmore\nlines") from ValueError(
            "no operator for aten::foo\nat line 3"
        )

    monkeypatch.setattr(torch.onnx, "export", fail)
    expected = r"^BertModel cannot be exported \(no operator for aten::foo\); use the torch engine$"
    with pytest.raises(UnsupportedError, match=expected):
        export(bert_copy, tmp_path / "out", int8=False)
    assert not list((tmp_path / "out" / "onnx").iterdir())
