"""Gradients summed over all processes while the last backward pass of a step still runs.

As torch's DistributedDataParallel does it (Li et al. 2020, arXiv 2006.15704), but for a step of several
backward passes that add up, of which the stage says which is the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tercet.training.distributed import Ranks

# A message as large as that of torch's DistributedDataParallel.
BUCKET_BYTES = 25 * 1024**2


@dataclass(slots=True, eq=False)
class _Bucket:
    """Parameters whose gradients travel together. missing: those whose gradient is not whole yet; flat and
    work: what is on its way.
    """

    parameters: list[nn.Parameter]
    missing: set[int]
    flat: Tensor | None = None
    work: Any = None


class GradientSums:
    """Replaces each gradient by its sum over all processes; one that some lack counts as zero there.

    One that all lack stays missing, so that weights that do not train do not decay either.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], ranks: Ranks, bucket_bytes: int = BUCKET_BYTES
    ) -> None:
        """parameters: the same on all processes, in the same order; all train, though not at every step."""
        self._parameters = list(parameters)
        self._ranks = ranks
        self._bucket_bytes = bucket_bytes
        self._buckets: list[_Bucket] = []
        self._bucket_of: dict[int, _Bucket] = {}
        self._sent = 0
        self._group = None
        if ranks.size > 1:
            # Of its own: messages of a group keep one order, and losses gather representations meanwhile.
            self._group = dist.new_group()
            for parameter in self._parameters:
                parameter.register_post_accumulate_grad_hook(self._arrived)  # type: ignore[no-untyped-call]

    def before_last_backward(self) -> None:
        """From now on a gradient is whole once it has come, and is sent beside what is still to be computed.

        A step calls it at most once. Which parameters train then is the same on all processes.
        """
        if self._ranks.size == 1:
            return
        # Backward passes end where forward passes begin.
        training = [parameter for parameter in reversed(self._parameters) if parameter.requires_grad]
        self._buckets = [
            _Bucket(bucket, set(map(id, bucket))) for bucket in buckets(training, self._bucket_bytes)
        ]
        self._bucket_of = {key: bucket for bucket in self._buckets for key in bucket.missing}
        self._sent = 0

    def finish(self) -> None:
        """Sends what has not been sent, and waits until every gradient is the sum."""
        if self._ranks.size == 1:
            return
        if not self._buckets:
            self.before_last_backward()
        training = [parameter for bucket in self._buckets for parameter in bucket.parameters]
        # Between the hosts: no device is waited for.
        present = torch.tensor([parameter.grad is not None for parameter in training]).int()
        dist.all_reduce(present)
        while self._sent < len(self._buckets):
            self._send(self._buckets[self._sent])
        counts = dict(zip(map(id, training), present.tolist(), strict=True))
        for bucket in self._buckets:
            bucket.work.wait()
            assert bucket.flat is not None  # noqa: S101 - it was sent
            sizes = [parameter.numel() for parameter in bucket.parameters]
            for parameter, summed in zip(bucket.parameters, torch.split(bucket.flat, sizes), strict=True):
                if not counts[id(parameter)]:
                    continue
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                parameter.grad.copy_(summed.view_as(parameter))
        self._buckets, self._bucket_of = [], {}

    def _arrived(self, parameter: Tensor) -> None:
        """A backward pass has added to a gradient."""
        bucket = self._bucket_of.get(id(parameter))
        if bucket is None:
            return
        bucket.missing.discard(id(parameter))
        # In their order, which is the same on all processes, whatever comes first on one.
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            self._send(self._buckets[self._sent])

    def _send(self, bucket: _Bucket) -> None:
        bucket.flat = torch.cat(
            [
                (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).flatten()
                for parameter in bucket.parameters
            ]
        )
        bucket.work = dist.all_reduce(bucket.flat, group=self._group, async_op=True)
        self._sent += 1


def buckets(parameters: Sequence[nn.Parameter], bucket_bytes: int) -> Iterator[list[nn.Parameter]]:
    """The parameters in order, cut where a bucket has its bytes, or where the type changes."""
    bucket: list[nn.Parameter] = []
    size = 0
    for parameter in parameters:
        if bucket and (size >= bucket_bytes or parameter.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.nbytes
    if bucket:
        yield bucket
