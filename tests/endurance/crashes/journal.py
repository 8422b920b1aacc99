"""What a process said that it had written, and whether what is found is explained by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast

from tests.endurance.crashes.workload import THREADS, Contents, Record, Write, thread_of

FORGETFUL = {"restore", "replace"}
"""Phases that forget the keys of writes that were acknowledged before they began."""


@dataclass(slots=True)
class _Told:
    """Of one thread: what its ids hold, its last acknowledged write, the one that it has begun, and the
    number of the last it ever began. last_kept, begun_kept: no forgetful phase may have forgotten its key.
    """

    contents: Contents = field(default_factory=dict)
    last: Write | None = None
    begun: Write | None = None
    number: int = 0
    last_kept: bool = True
    begun_kept: bool = True


@dataclass(slots=True)
class Comparison:
    """acknowledged_lost: writes that were acknowledged and are not there; half_applied: that are there in
    part, or whose key says otherwise than the documents; survived: begun ones that are there.
    """

    acknowledged_lost: list[str] = field(default_factory=list)
    half_applied: list[str] = field(default_factory=list)
    survived: int = 0

    @property
    def sound(self) -> bool:
        """Whether all is explained."""
        return not self.acknowledged_lost and not self.half_applied


class Journal:
    """Listens to the lines of a writer, over several of its lives."""

    def __init__(self) -> None:
        self._threads = [_Told() for _ in range(THREADS)]
        self.acknowledged: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        """What is under way: how often each was begun and not ended."""
        self.failure: str | None = None
        self._restoring: Contents | None = None
        self._backups: set[str] = set()

    def hear(self, line: list[object]) -> None:
        """One line."""
        kind, *words = line
        if kind == "begun":
            write = Write.of(cast(Record, words[0]))
            told = self._threads[write.thread]
            told.begun, told.number = write, write.number
            told.begun_kept = not any(self.phases[phase] for phase in FORGETFUL)
        elif kind == "acknowledged":
            told = self._threads[cast(int, words[0])]
            assert told.begun is not None
            self.acknowledged[told.begun.kind] += 1
            told.contents, told.last, told.begun = told.begun.after(told.contents), told.begun, None
            told.last_kept = told.begun_kept
        elif kind == "restoring":
            self._restoring = contents_in(words[0])
        elif kind == "restored":
            assert self._restoring is not None
            self.go_on_with(self._restoring)
        elif kind == "backed up":
            self._backups.add(str(words[0]))
        elif kind == "forgotten":
            self._backups.discard(str(words[0]))
        elif kind == "phase":
            self.phases[str(words[0])] += cast(int, words[1])
            if words[0] in FORGETFUL:
                for told in self._threads:
                    told.last_kept = told.begun_kept = False
        else:
            self.failure = str(words[0])

    @property
    def contents(self) -> list[Contents]:
        """What each thread's ids hold."""
        return [told.contents for told in self._threads]

    @property
    def numbers(self) -> list[int]:
        """Of each thread's next write; that of one that came to nothing is not used again."""
        return [told.number + 1 for told in self._threads]

    @property
    def writing(self) -> int:
        """Writes that are begun and not acknowledged."""
        return sum(told.begun is not None for told in self._threads)

    def asked_after(self) -> list[Write]:
        """The writes whose keys tell what became of them: each thread's last and begun ones."""
        return [write for told in self._threads for write in (told.last, told.begun) if write is not None]

    def compare(self, documents: Contents, keys: Collection[str], backups: Collection[str]) -> Comparison:
        """Whether acknowledged writes, and of each thread's begun one all or nothing, are what is there.

        keys: those that have an answer, of `asked_after` at least; backups: those that are sound.
        """
        result = Comparison([f"backup {id}" for id in sorted(self._backups.difference(backups))])
        restored = self._restoring is not None and documents == self._restoring
        for place, told in enumerate(self._threads):
            found = {id: versions for id, versions in documents.items() if thread_of(id) == place}
            expected = found if restored else told.contents
            if told.last is not None and told.last_kept and told.last.key.key not in keys:
                result.acknowledged_lost.append(f"the key of {told.last}")
            if told.begun is not None:
                after = told.begun.after(told.contents)
                if told.begun.key.key in keys or (not told.begun_kept and found == after):
                    expected = after
            if found == expected:
                result.survived += not restored and expected is not told.contents
            elif told.begun is None or any(
                found.get(id) != expected.get(id)
                for id in found.keys() | expected.keys()
                if id not in told.begun.ids
            ):
                result.acknowledged_lost.append(_difference(place, expected, found))
            else:
                result.half_applied.append(f"{told.begun}: {_difference(place, expected, found)}")
        return result

    def go_on_with(self, documents: Contents) -> None:
        """What is there now is what each thread goes on with; nothing is under way."""
        for place, told in enumerate(self._threads):
            told.contents = {id: versions for id, versions in documents.items() if thread_of(id) == place}
            told.begun = None
        self._restoring = None

    def next_life(self) -> None:
        """Nothing is under way."""
        self.phases.clear()


def contents_in(record: object) -> Contents:
    """Contents as JSON has them."""
    return {id: (text, metadata) for id, (text, metadata) in cast(dict[str, list[int]], record).items()}


def _difference(thread: int, expected: Contents, found: Contents) -> str:
    ids = sorted(id for id in expected.keys() | found.keys() if expected.get(id) != found.get(id))
    shown = ", ".join(f"{id} {expected.get(id)} → {found.get(id)}" for id in ids[:5])
    return f"thread {thread}: {len(ids)} documents differ: {shown}"
