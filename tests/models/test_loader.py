"""Choosing an engine, a device and a precision."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from models.encoder import encode
from models.errors import UnsupportedError
from models.loader import load_encoder
from models.native.native_graph import NativeGraph
from models.onnx_encoder import CPU_BATCH_TOKENS


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


def test_the_onnx_engine_never_imports_torch(bert_exported: Path, repository: Path) -> None:
    code = (
        "import sys; from models.loader import load_encoder; from models.encoder import encode; "
        f"encode(load_encoder({str(bert_exported)!r}), ['hello']); "
        "sys.exit(sorted({'torch', 'transformers'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_adapters_of_another_format_are_told(bert_copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    (bert_copy / "retrieval_query").mkdir()
    (bert_copy / "retrieval_query" / "adapter_config.json").write_text("{}")
    load_encoder(str(bert_copy), "torch", device="cpu")
    assert "checkpoint bert: its adapters, in folders of PEFT, are not read" in caplog.text
