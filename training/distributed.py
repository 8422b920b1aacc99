"""Several processes that train one model together, each on a device of its own, started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

Value = TypeVar("Value", bound=np.generic)

# The others wait while the first process writes the index that negatives are mined with.
LONGEST_WAIT = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process's number and how many there are; `(0, 1)` where training is not distributed."""

    rank: int = 0
    size: int = 1


ALONE = Ranks()


def join_processes(device: str) -> Ranks:
    """Joins the processes that torchrun started, over gloo on CPUs and NCCL on GPUs; else there is one.

    On GPUs each process takes the one of its number on its machine.
    """
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return Ranks()
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # The state of the CPU's random numbers travels, too, and only over gloo.
    backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=LONGEST_WAIT)
    return Ranks(dist.get_rank(), dist.get_world_size())


def is_first_process() -> bool:
    """Whether this process speaks for all that torchrun started, also before they join."""
    return os.environ.get("RANK", "0") == "0"


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
    # Between the hosts: read from a device, sizes would be waited for.
    sizes = torch.zeros(ranks.size, tensor.ndim, dtype=torch.int64)
    sizes[ranks.rank] = torch.tensor(tensor.shape)
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


def gather_array(array: npt.NDArray[Value], ranks: Ranks) -> npt.NDArray[Value]:
    """Rows of all processes as `gather` has them, of what the hosts know."""
    if ranks.size == 1:
        return array
    everything: npt.NDArray[Value] = gather(torch.from_numpy(array), ranks).numpy()
    return everything


def mean_over_all(values: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """The mean of each scalar over all processes, which all have the same names."""
    if ranks.size == 1:
        return dict(values)
    stacked = torch.stack([value.detach().float() for value in values.values()])
    dist.all_reduce(stacked)
    return dict(zip(values, stacked / ranks.size, strict=True))


def share_weights(tensors: Iterable[Tensor], ranks: Ranks) -> None:
    """Gives every process the values of the first one."""
    if ranks.size > 1:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)


def wait_for_all(ranks: Ranks) -> None:
    """Returns when every process has come here."""
    if ranks.size > 1:
        dist.barrier()
