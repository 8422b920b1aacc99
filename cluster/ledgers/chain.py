"""The objects of a ledger on a store: `ledger/000000000001` and so on, each created once.

Who creates a number has it. So of two writers one learns of the other by its next number, and nobody needs a
clock. What snapshots hold is removed; steps of writers stay, as a former one may still come to their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tercet.cluster.ledgers.batch import Batch
from tercet.cluster.objects.errors import ObjectMissingError
from tercet.cluster.objects.store import ObjectStore

FOLDER = "ledger"
READ_AT_ONCE = 16
LISTED_AGAIN = 4  # times, where a batch is removed between the list and the reading


def batch_path(number: int) -> str:
    """Where the batch of a number lies."""
    return numbered_path(FOLDER, number)


def numbered_path(folder: str, number: int) -> str:
    """Where the object of a number lies in a folder of such."""
    return f"{folder}/{number:012d}"


def read_batch(store: ObjectStore, number: int) -> Batch:
    """The batch of a number. Raises ObjectMissingError or DamagedObjectError."""
    path = batch_path(number)
    return Batch.of_content(store.get(path), number, f"{store.url}/{path}")


def listed_numbers(store: ObjectStore, folder: str = FOLDER) -> list[int]:
    """The numbers of objects that are there, ascending."""
    named = (re.fullmatch(rf"{folder}/([0-9]{{12}})", each.path) for each in store.list(folder))
    return sorted(int(found[1]) for found in named if found)


def read_tail(store: ObjectStore, position: int) -> list[Batch]:
    """The batches from the one that leads up to a position on, in order; none of a collection that was
    deleted, but for that step itself. Empty where there are none at all.

    Raises DamagedObjectError, or ObjectMissingError where others remove them again and again meanwhile, as
    newer snapshots hold them.
    """
    for _ in range(LISTED_AGAIN):
        with suppress(ObjectMissingError):
            return _tail(store, position)
    return _tail(store, position)


def _tail(store: ObjectStore, position: int) -> list[Batch]:
    """The same of batches that stay meanwhile; raises ObjectMissingError else."""
    numbers, tail = listed_numbers(store), list[Batch]()
    with ThreadPoolExecutor(READ_AT_ONCE, thread_name_prefix="ledger") as threads:
        while numbers:
            some, numbers = numbers[-READ_AT_ONCE:], numbers[:-READ_AT_ONCE]
            tail = [*threads.map(lambda number: read_batch(store, number), some), *tail]
            ends = [place for place, batch in enumerate(tail) if batch.kind == "deleted"]
            if ends:
                return tail[ends[-1] :]
            if tail[0].last <= position:
                break
    return tail


class Trimming:
    """Removes from the ledgers of a server's collections what their snapshots hold. Of one thread."""

    def __init__(self) -> None:
        self._kept: dict[str, set[int]] = {}  # by URL, the numbers of what stays

    def __call__(self, store: ObjectStore, position: int) -> None:
        """Removes batches of operations up to a position. store: of the collection's URL."""
        store.delete([batch_path(number) for number in self._held(store, position)])

    def _held(self, store: ObjectStore, position: int) -> Iterator[int]:
        kept = self._kept.setdefault(store.url, set())
        for number in listed_numbers(store)[:-1]:  # a number is never given twice
            if number in kept:
                continue
            try:
                batch = read_batch(store, number)
            except ObjectMissingError:  # another one trims, too
                continue
            if batch.kind == "entries":
                if batch.last > position:
                    return
                yield number
            else:
                kept.add(number)
