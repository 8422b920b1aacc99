"""A step leaves all that it computes on the device; the host reads it at the interval of the log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import tercet.training.loop
from tercet.training.runs.log import read_log

# What tells the host a tensor's values, or a shape that depends on them.
METHODS = ("cpu", "item", "numpy", "tolist", "__array__", "__bool__", "__float__", "__index__", "__int__")
OPERATIONS = (
    "_local_scalar_dense",
    "_unique2",
    "is_nonzero",
    "masked_select",
    "nonzero",
    "repeat_interleave",
    "unique_consecutive",
    "unique_dim",
)
WITH_MASKS = ("index", "index_put", "index_put_")


class Waits(TorchDispatchMode):
    """Counts what would make the host wait for a device, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.paused = True

    def count(self, name: str) -> None:
        if not self.paused:
            self.found[name] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in OPERATIONS or (name in WITH_MASKS and any(map(is_mask, args[1]))):
            self.count(name)
        return func(*args, **(kwargs or {}))

    @contextmanager
    def paused_as(self, paused: bool) -> Iterator[None]:
        """Whether what happens within is not counted."""
        before, self.paused = self.paused, paused
        yield
        self.paused = before


def is_mask(given: Any) -> bool:
    """Whether an index selects by truth values."""
    return isinstance(given, Tensor) and given.dtype in (torch.bool, torch.uint8)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    found = Waits()
    for name in METHODS:
        original = getattr(Tensor, name)

        def counted(
            self: Tensor, *args: Any, name: str = name, original: Any = original, **options: Any
        ) -> Any:
            found.count(name)
            return original(self, *args, **options)

        monkeypatch.setattr(Tensor, name, counted)
    return found


PRETRAINING = {
    "data.sources": [{"path": "pairs.jsonl", "title": "P", "licence": "CC0 1.0", "format": "texts"}],
    "losses": None,
    "heads": None,
    "batches.negatives": None,
    "data.query_tokens": None,
}
TWO_LAYERS = {"layers": 2, "width": 16, "attention_heads": 2, "intermediate": 32, "positions": 32}
ALL_TERMS = {"losses.anchor_dense": 0.1, "losses.anchor_colbert": 0.1, "losses.prior": 0.1}
RUNS: dict[str, dict[str, Any]] = {
    "whole": {"batches.sub_batch_tokens": 10_000},
    "cached": {"batches.sub_batch_tokens": 40, **ALL_TERMS},
    "idf": {"encoder.lexical": "idf", **ALL_TERMS},
    "mcls": {"encoder.mcls_every": 4, "encoder.pooling": "cls", **ALL_TERMS},
    "frozen": {"optimization.head_warmup_steps": 4},
    "contrastive": {"stage": "contrastive", "heads": None, "losses": {"temperature": 0.05}},
    "mlm": {"stage": "mlm", **PRETRAINING},
    "basic": {"stage": "retromae", "pretraining.decoding": "basic", **PRETRAINING},
    "enhanced": {"stage": "retromae", **PRETRAINING},
    "condenser": {"stage": "condenser", "architecture": TWO_LAYERS, **PRETRAINING},
    "cocondenser": {
        "stage": "cocondenser",
        "architecture": TWO_LAYERS,
        "pretraining.span_tokens": 5,
        **PRETRAINING,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUNS))
def test_the_host_waits_at_the_interval_of_the_log_alone(
    run: Callable[..., Any], tmp_path: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    reads: list[int] = []
    train, read, saved = (
        tercet.training.loop.train,
        tercet.training.loop.Readings.read,
        tercet.training.loop.save_state,
    )

    def watched(stage: Any, *rest: Any) -> Any:
        evaluate = stage.evaluate

        def evaluated() -> Any:
            with waits.paused_as(True):
                return evaluate()

        stage.evaluate = evaluated
        with waits, waits.paused_as(False):
            return train(stage, *rest)

    def reading(self: Any) -> Any:
        with waits.paused_as(True):
            found = read(self)
        reads.append(len(found))
        return found

    def saving(*given: Any) -> None:
        with waits.paused_as(True):
            saved(*given)

    monkeypatch.setattr("tercet.training.run.train", watched)
    monkeypatch.setattr(tercet.training.loop.Readings, "read", reading)
    monkeypatch.setattr(tercet.training.loop, "save_state", saving)
    monkeypatch.setattr(tercet.training.loop, "write_tensors", lambda *given: None)
    monkeypatch.setattr(tercet.training.loop, "put_weights", lambda *given: None)
    monkeypatch.setattr(tercet.training.loop, "read_tensors", lambda *given: None)
    steps = {"optimization.steps": 8, "save_steps": 8, "evaluate_steps": 8, "log_steps": 3}
    run("out", {**RUNS[name], **steps})
    assert dict(waits.found) == {}
    assert reads == [3, 3, 2]
    lines = [line["step"] for line in read_log(tmp_path / "out" / "run") if "losses" in line]
    assert lines == list(range(1, 9))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dropout", [0.0, 0.1], ids=["packed", "padded"])
@pytest.mark.parametrize("name", list(RUNS))
def test_torch_sees_no_wait_on_a_gpu(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str, dropout: float
) -> None:
    """As above, by torch's own check; it does not see what the library's kernels do at their first use."""
    train, read = tercet.training.loop.train, tercet.training.loop.Readings.read

    def watched(stage: Any, *rest: Any) -> Any:
        accumulate = stage.accumulate

        def accumulated(step: int, *given: Any) -> Any:
            if step > 1:
                torch.cuda.set_sync_debug_mode("error")
            return accumulate(step, *given)

        stage.accumulate = accumulated
        return train(stage, *rest)

    def reading(self: Any) -> Any:
        torch.cuda.set_sync_debug_mode("default")
        return read(self)

    monkeypatch.setattr("tercet.training.run.train", watched)
    monkeypatch.setattr(tercet.training.loop.Readings, "read", reading)
    steps = {"optimization.steps": 6, "save_steps": 6, "evaluate_steps": 6, "log_steps": 6}
    precision = {"optimization.precision": "bfloat16", "optimization.dropout": dropout}
    try:
        run("out", {**RUNS[name], **steps, **precision})
    finally:
        torch.cuda.set_sync_debug_mode("default")
