"""Does pieces of work on Ray Data: actors that each open what they need once.

A piece whose actor died is done again by another, so it may be done more than once. Only its name and its
record go through Ray.
"""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.cluster.errors import ClusterError, first_line
from tercet.cluster.ray.errors import RayFailedError
from tercet.cluster.ray.session import require_ray, session
from tercet.cluster.work.executor import Work, Worker
from tercet.index.errors import SearchIndexError
from tercet.ingest.errors import IngestError
from tercet.models.errors import ModelError
from tercet.service.load.arenas import give_back_large

log = logging.getLogger("tercet")

MOST_TASKS = 10_000
GROWING_SECONDS = 1800  # in which the first actor of a cluster that has no room for it now must start
RETRIES = 20  # of a piece whose actor died: a node that is lost takes several until that is known
OWN = (ClusterError, IngestError, SearchIndexError, ModelError, OSError)


@dataclass(frozen=True, slots=True)
class FittedPool:
    """workers: that begin; most: that there may be, None for as many as there is work and room for."""

    workers: int
    most: int | None
    cpus: float
    gpus: float


@dataclass(frozen=True, slots=True)
class ActorPool:
    """How many actors do pieces at a time, and what each takes: CPUs, and GPUs for work that encodes, which
    may be parts of one. None is as many as there is room for, one CPU, and one GPU where there are any.
    """

    workers: int | None = None
    cpus: float | None = None
    gpus: float | None = None

    def within(self, resources: Mapping[str, float], *, grows: bool) -> FittedPool:
        """Its numbers, in a session of these resources. grows: whether it may get more as they are asked for.
        Raises RayFailedError where they are too few, and it does not.
        """
        all_cpus, all_gpus = resources.get("CPU", 0.0), resources.get("GPU", 0.0)
        cpus = 1.0 if self.cpus is None else self.cpus
        gpus = min(1.0, all_gpus) if self.gpus is None else self.gpus
        room = int(min(all_cpus / cpus, all_gpus / gpus if gpus else np.inf))
        workers = room if self.workers is None else self.workers
        if grows:
            return FittedPool(max(1, min(workers, room)), self.workers, cpus, gpus)
        if not 1 <= workers <= room:
            raise RayFailedError(
                f"{max(1, workers)} workers of {cpus:g} CPUs and {gpus:g} GPUs are to encode, and Ray has "
                f"{all_cpus:g} CPUs and {all_gpus:g} GPUs: ask for fewer, or for smaller parts"
            )
        return FittedPool(workers, workers, cpus, gpus)


class RayExecutor:
    """Has the actors of a session do pieces of work; the session begins with the first."""

    def __init__(self, address: str | None, pool: ActorPool, cpus: int | None = None) -> None:
        """address, cpus: as for `session`. Raises RayMissingError."""
        require_ray()
        self._address = address
        self._cpus = cpus
        self._pool = pool
        self._open = ExitStack()
        self._fitted: FittedPool | None = None

    def close(self) -> None:
        """Ends the session."""
        self._open.close()

    def run(self, work: Work, pieces: Sequence[Any]) -> Iterator[Any]:
        """What came of each piece, as they are done. Raises what a piece raises, or RayFailedError."""
        if not pieces:
            return
        if self._fitted is None:
            self._fitted = self._fit(self._open.enter_context(session(self._address, self._cpus)))
        fitted = self._fitted
        import ray.data
        from ray.exceptions import RayError

        _keep_quiet()
        fewest = min(fitted.workers, len(pieces))
        most = len(pieces) if fitted.most is None else min(fitted.most, len(pieces))
        blocks = min(len(pieces), MOST_TASKS)
        items = [{"piece": pickle.dumps(piece)} for piece in pieces]
        given = ray.data.from_items(items, override_num_blocks=blocks)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray 2.64 will name the bound of retries otherwise
            dataset = given.map_batches(
                PieceActor,
                fn_constructor_args=(work,),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(
                    min_size=fewest, max_size=most, max_tasks_in_flight_per_actor=2
                ),
                num_cpus=fitted.cpus,
                num_gpus=fitted.gpus if work.encodes else 0,
                max_restarts=-1,
                max_task_retries=RETRIES,
            )
        try:
            for row in dataset.iter_rows():
                outcome = pickle.loads(row["outcome"])  # noqa: S301  # made by an actor of this session
                if row["failed"]:
                    raise outcome
                yield outcome
        except RayError as error:
            raise RayFailedError(
                f"the work on Ray failed ({first_line(error)}); what was done is kept: see to the reason, in "
                "Ray's logs, and run it again"
            ) from error

    def _fit(self, resources: Mapping[str, float]) -> FittedPool:
        """The pool in a session of these resources: a cluster may have more once more is asked for."""
        grows = self._address is not None
        fitted = self._pool.within(resources, grows=grows)
        if grows and self._pool.gpus is None and not fitted.gpus:
            log.warning(
                "Ray at %s has no GPU now, so encoding takes CPUs; ask for GPUs (--worker-gpus 1) where "
                "nodes with some start as they are needed",
                self._address,
            )
        lacking = resources.get("CPU", 0.0) < fitted.cpus or resources.get("GPU", 0.0) < fitted.gpus
        if grows and lacking:
            import ray.data

            log.warning(
                "Ray at %s has no room now for a worker of %g CPUs and %g GPUs; one is waited for, for up to "
                "%d minutes",
                self._address,
                fitted.cpus,
                fitted.gpus,
                GROWING_SECONDS // 60,
            )
            ray.data.DataContext.get_current().wait_for_min_actors_s = GROWING_SECONDS
        return fitted


def _keep_quiet() -> None:
    """Leaves the terminal to our own progress; what Ray Data does is in the logs of its session."""
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    for handler in logging.getLogger("ray.data").handlers:
        # Ray gives its loggers the root's handlers, too, which others write to.
        if isinstance(handler, logging.StreamHandler) and handler not in logging.getLogger().handlers:
            handler.setLevel(logging.CRITICAL)


class PieceActor:
    """One actor: begins a work, and does its pieces.

    What a piece raises travels as data: Ray would add to its message, and of a constructor tell only that the
    actor died.
    """

    def __init__(self, work: Work) -> None:
        give_back_large()
        self._work = work
        self._do: Worker | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        outcomes, failed = [], []
        for piece in batch["piece"]:
            try:
                do = self._do = self._do or self._work.begin()
                outcomes.append(pickle.dumps(do(pickle.loads(piece))))  # noqa: S301  # of this session
                failed.append(False)
            except OWN as error:
                outcomes.append(_pickled(error))
                failed.append(True)
        return {"outcome": np.array(outcomes, np.object_), "failed": np.array(failed)}


def _pickled(error: Exception) -> bytes:
    """An exception to travel; one that cannot, by what it says."""
    try:
        content = pickle.dumps(error)
        pickle.loads(content)  # noqa: S301  # made in the line above
    except Exception:  # noqa: BLE001  # of whatever it consists
        return pickle.dumps(RayFailedError(str(error)))
    return content
