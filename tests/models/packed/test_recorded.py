"""Recordings: fixed buffers, their own results, and no more of them than allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from tercet.models.packed.recorded import CudaRecorder, Recordings


def doubled(inputs: Sequence[Tensor]) -> dict[str, Tensor]:
    return {"doubled": inputs[0] * 2}


def test_each_shape_is_recorded_once_and_results_stay(host_recorder: Any) -> None:
    record = host_recorder()
    recordings = Recordings(record, most=2)
    first = recordings("a", doubled, [torch.tensor([1.0])])
    second = recordings("a", doubled, [torch.tensor([5.0])])
    assert (first["doubled"].item(), second["doubled"].item()) == (2, 10)
    assert record.recorded == 1


def test_the_one_used_longest_ago_goes(host_recorder: Any) -> None:
    record = host_recorder()
    recordings = Recordings(record, most=2)
    for key in ("a", "b", "a", "c", "a"):
        recordings(key, doubled, [torch.tensor([1.0])])
    assert record.recorded == 3
    recordings("b", doubled, [torch.tensor([1.0])])
    assert record.recorded == 4
    recordings.clear()
    recordings("b", doubled, [torch.tensor([1.0])])
    assert record.recorded == 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_graphs_replay_with_new_inputs() -> None:
    device: Any = torch.device("cuda")
    recordings = Recordings(CudaRecorder(device), most=2)
    for value in (1.0, 5.0):
        found = recordings("a", doubled, [torch.tensor([value], device=device)])
        assert found["doubled"].item() == 2 * value
