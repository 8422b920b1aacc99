"""A run's folder belongs to one run at a time; the operating system gives it back when its process dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tercet.training.errors import RunStateError


@contextmanager
def locked(folder: Path, rank: int) -> Iterator[None]:
    """Holds `folder` for process `rank` of a run, against the same process of every other run.

    Raises RunStateError where another run is writing there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"lock-{rank}").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunStateError(
                f"{folder}: another run is writing there; wait for it, or choose another --output"
            ) from error
        yield
