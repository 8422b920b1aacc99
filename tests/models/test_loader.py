"""Choosing an engine, a device and a precision."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tercet.models.encoder import Engine, encode
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.loader import load_encoder
from tercet.models.native.native_graph import NativeGraph
from tercet.models.onnx_encoder import CPU_BATCH_TOKENS, OnnxEncoder


def test_the_name_is_the_folder(bert: Path) -> None:
    info = load_encoder(str(bert), "torch", device="cpu").info
    assert (info.name, info.engine, info.precision, info.pooling) == ("bert", "torch", "float32", "mean")
    assert (info.dense_dimension, info.colbert_dimension, info.max_length) == (32, 16, 48)
    assert info.vocabulary_size == 71


@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_unknown_and_absent_devices(bert_copy: Path, engine: str) -> None:
    with pytest.raises(UnsupportedError, match="device 'tpu' is not known"):
        load_encoder(str(bert_copy), engine, device="tpu")  # type: ignore[arg-type]
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(UnsupportedError, match="device 'cuda' was asked for"):
            load_encoder(str(bert_copy), engine, device="cuda")  # type: ignore[arg-type]


def test_half_precision_needs_cuda(bert: Path) -> None:
    with pytest.raises(UnsupportedError, match="precision 'float16' on cpu"):
        load_encoder(str(bert), "torch", device="cpu", precision="float16")


def test_unknown_engine(bert: Path) -> None:
    with pytest.raises(UnsupportedError, match="engine 'jax' is not known"):
        load_encoder(str(bert), "jax")  # type: ignore[arg-type]


def test_threads_and_budget_do_not_change_the_result(bert_exported: Path) -> None:
    texts = ["hello", "the heat of the wave", "wing " * 20]
    one = encode(load_encoder(str(bert_exported), threads=1, batch_tokens=8), texts)
    other = encode(load_encoder(str(bert_exported), threads=2, batch_tokens=4096), texts)
    assert abs(one.dense - other.dense).max() < 1e-5


@pytest.mark.parametrize(
    ("limit", "largest"), [(None, CPU_BATCH_TOKENS), (1 << 20, CPU_BATCH_TOKENS), (256, 256)]
)
def test_a_limit_makes_passes_smaller_and_never_larger(
    bert_exported: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, largest: int
) -> None:
    passes, forward = [], NativeGraph.forward

    def seen(self: NativeGraph, ids: Any, *given: Any) -> Any:
        passes.append(ids.size)
        return forward(self, ids, *given)

    monkeypatch.setattr(NativeGraph, "forward", seen)
    encode(load_encoder(str(bert_exported), "native", limit_tokens=limit), ["wing " * 20] * 200)
    assert len(passes) > 1
    assert largest // 2 < max(passes) <= largest


@pytest.mark.parametrize(("engine", "by_length"), [("native", False), ("onnxruntime", True)])
def test_texts_of_like_length_go_together_where_passes_pad(
    bert_exported: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine, by_length: bool
) -> None:
    encoder = load_encoder(str(bert_exported), engine, threads=1, batch_tokens=64, device="cpu")
    assert isinstance(encoder, OnnxEncoder)
    passes: list[list[int]] = []
    graph = type(encoder._graph)
    forward = graph.forward

    def seen(self: Any, ids: Any, mask: Any, *given: Any) -> Any:
        passes.append(mask.sum(1).tolist())
        return forward(self, ids, mask, *given)

    monkeypatch.setattr(graph, "forward", seen)
    lengths = [3, 20, 5, 18, 4, 19]
    encode(encoder, ["wing " * (length - 2) for length in lengths])
    expected = [[20, 19, 18], [5, 4, 3]] if by_length else [[3, 20, 5, 18, 4], [19]]
    assert passes == expected
    assert encoder.pads == by_length


@pytest.mark.slow
def test_the_onnx_engine_never_imports_torch(bert_exported: Path, repository: Path) -> None:
    code = (
        "import sys; from tercet.models.loader import load_encoder; "
        "from tercet.models.encoder import encode; "
        f"encode(load_encoder({str(bert_exported)!r}), ['hello']); "
        "sys.exit(sorted({'torch', 'transformers'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_adapters_that_nobody_asks_for_are_told(bert_copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    (bert_copy / "retrieval_query").mkdir()
    (bert_copy / "retrieval_query" / "adapter_config.json").write_text("{}")
    load_encoder(str(bert_copy), "torch", device="cpu")
    assert "checkpoint bert: none of its adapters ['retrieval_query'] is asked for" in caplog.text


def test_a_similarity_that_is_not_taken_is_told(bert_copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    (bert_copy / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    load_encoder(str(bert_copy), "torch", device="cpu")
    assert "checkpoint bert compares its dense vectors by dot; here they have length 1" in caplog.text


def _changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Writes the tensors of a folder again, after a change."""

    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return apply


def _as_bin(content: object) -> Callable[[Path], object]:
    """Puts a pytorch_model.bin in the place of the weights."""

    def apply(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save(content, folder / "pytorch_model.bin")

    return apply


QUERY_WEIGHT = "encoder.layer.0.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "header too small"),
        (_as_bin([1, 2]), "the model cannot be loaded"),
        (_as_bin(torch.nn.Linear(2, 2)), "holds what are not plain tensors"),
        (
            _changed(lambda tensors: tensors.update({QUERY_WEIGHT: torch.zeros(32, 8)})),
            rf"{QUERY_WEIGHT} has shape \[32, 8\] in the weight files, but config\.json asks for \[32, 32\]",
        ),
        (
            _changed(lambda tensors: tensors[QUERY_WEIGHT][3].fill_(torch.nan)),
            f"{QUERY_WEIGHT} has values that are not finite numbers",
        ),
        (
            _changed(lambda tensors: tensors["embeddings.word_embeddings.weight"][70].fill_(torch.inf)),
            "word_embeddings.weight has values that are not finite numbers",
        ),
    ],
)
def test_what_is_wrong_with_the_weights_is_one_error(
    bert_copy: Path, change: Callable[[Path], object], message: str
) -> None:
    change(bert_copy)
    with pytest.raises(CheckpointError, match=message):
        load_encoder(str(bert_copy), "torch", device="cpu")
