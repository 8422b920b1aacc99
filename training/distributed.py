"""Several processes that train one model together, each on a device of its own, started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process's number and how many there are; `(0, 1)` where training is not distributed."""

    rank: int = 0
    size: int = 1


def join_processes(device: str) -> Ranks:
    """Joins the processes that torchrun started, over gloo on CPUs and NCCL on GPUs; else there is one."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return Ranks()
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    return Ranks(dist.get_rank(), dist.get_world_size())


def leave_processes(ranks: Ranks) -> None:
    """Ends the group that `join_processes` joined."""
    if ranks.size > 1:
        dist.destroy_process_group()


class _Gather(torch.autograd.Function):
    """All processes' tensors in order of rank; the gradient of a process's own is summed over all."""

    @staticmethod
    def forward(context: Any, tensor: Tensor) -> Tensor:
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        summed = gradients[0].contiguous().clone()
        dist.all_reduce(summed)
        return summed.chunk(dist.get_world_size())[dist.get_rank()]


def gather(tensor: Tensor, ranks: Ranks) -> Tensor:
    """Rows of all processes, in order of rank, with gradients to each; [R, …] → [R₁ + R₂ + …, …].

    Rows, and further sizes, may differ between processes: they are padded by zeros for the way, and further
    sizes stay as large as the largest.
    """
    if ranks.size == 1:
        return tensor
    sizes = torch.zeros(ranks.size, tensor.ndim, dtype=torch.int64, device=tensor.device)
    sizes[ranks.rank] = torch.tensor(tensor.shape, device=tensor.device)
    dist.all_reduce(sizes)
    largest = sizes.amax(0).tolist()
    padding = [
        side
        for size, most in zip(reversed(tensor.shape), reversed(largest), strict=True)
        for side in (0, most - size)
    ]
    padded = functional.pad(tensor, padding)
    everything: Tensor = _Gather.apply(padded)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    rows = [part[: int(count)] for part, count in zip(everything.chunk(ranks.size), sizes[:, 0], strict=True)]
    return torch.cat(rows)


def sum_gradients(parameters: Iterable[Tensor], ranks: Ranks) -> None:
    """Replaces each gradient by its sum over all processes; a missing one counts as zero."""
    if ranks.size == 1:
        return
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)


def wait_for_all(ranks: Ranks) -> None:
    """Returns when every process has come here."""
    if ranks.size > 1:
        dist.barrier()
