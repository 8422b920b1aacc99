"""Encoders of a build whose processes die: before they write a segment, after that, and before they return.

A worker elsewhere gets this module by value: `ray.cloudpickle.register_pickle_by_value`.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.cluster.building.encoding import BlockEncoder, Encoding, Part
from tercet.cluster.objects.opening import open_store
from tercet.cluster.work.executor import Executor, Work, Worker

MOMENTS = ("before the write", "after the write", "before returning")


@dataclass(frozen=True)
class Killing:
    """An executor whose workers die while they encode, so many times at each moment.

    died: a folder, where a file says of each time that it was.
    """

    executor: Executor
    died: Path
    kills: int = 1

    def run(self, work: Work, pieces: Sequence[Any]) -> Iterator[Any]:
        if isinstance(work, Encoding):
            work = _Dying(work.url, work.settings, work.open_encoder, self.died, self.kills)
        return self.executor.run(work, pieces)

    @property
    def killed(self) -> dict[str, int]:
        """How many died at each moment."""
        return {moment: len(list(self.died.glob(f"{moment} *"))) for moment in MOMENTS}


@dataclass(frozen=True)
class _Dying(Encoding):
    died: Path = Path()
    kills: int = 1

    def begin(self) -> Worker:
        store, encoder = open_store(self.url), self.open_encoder()
        return _DyingEncoder(self.died, self.kills, store, self.settings, encoder)


class _DyingEncoder(BlockEncoder):
    def __init__(self, died: Path, kills: int, *more: Any) -> None:
        super().__init__(*more)
        self._died, self._kills = died, kills

    def _die(self, moment: str) -> None:
        for number in range(self._kills):
            try:
                (self._died / f"{moment} {number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    def _written(self, *more: Any) -> Part:
        self._die(MOMENTS[0])
        part = super()._written(*more)
        self._die(MOMENTS[1])
        return part

    def __call__(self, block: str) -> Part:
        part = super().__call__(block)
        self._die(MOMENTS[2])
        return part
