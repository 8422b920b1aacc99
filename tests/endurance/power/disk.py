"""A disk that may lose what was not forced: files and folders with what is durable and what waits.

A force makes durable what was done to its file or folder before it began: contents by a force of the file,
names by one of the folder. Of the rest each change may be there or not. What is not torn: a sector of 512
bytes has one of the contents that were written to it, and a rename took place or did not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

SECTOR = 512

Mode = Literal["lost", "there", "names alone", "contents alone", "zeros", "random"]
MODES: tuple[Mode, ...] = ("lost", "there", "names alone", "contents alone", "zeros")
"""What a loss of power leaves of what waits: see `Loss`."""

Tree = dict[str, "bytes | Tree"]
"""Names of a folder, with contents and folders."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a place of a file."""

    at: int
    content: bytes
    ended: int

    def on(self, before: bytes) -> bytes:
        """The file after it."""
        if self.at > len(before):
            before += bytes(self.at - len(before))
        return before[: self.at] + self.content + before[self.at + len(self.content) :]


@dataclass(frozen=True, slots=True)
class Resize:
    """A new size of a file."""

    size: int
    ended: int

    def on(self, before: bytes) -> bytes:
        """The file after it."""
        return before[: self.size] + bytes(max(0, self.size - len(before)))


@dataclass(slots=True)
class File:
    """A file. durable: what it holds for certain; waiting: changes since, in order."""

    durable: bytes = b""
    waiting: list[Write | Resize] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        """What a reader sees while the power is on."""
        return self.versions()[-1]

    @property
    def size(self) -> int:
        """Bytes that a reader sees."""
        size = len(self.durable)
        for change in self.waiting:
            size = change.size if isinstance(change, Resize) else max(size, change.at + len(change.content))
        return size

    def force(self, begun: int) -> None:
        """Makes durable what had ended when the force began."""
        done = [change for change in self.waiting if change.ended < begun]
        for change in done:
            self.durable = change.on(self.durable)
        self.waiting = self.waiting[len(done) :]

    def versions(self) -> list[bytes]:
        """The durable content, and that after each change since."""
        found = [self.durable]
        for change in self.waiting:
            found.append(change.on(found[-1]))
        return found


@dataclass(slots=True)
class Renaming:
    """A change of names, in one folder or two: what each name gets, None where it is removed."""

    changes: list[tuple[Folder, dict[str, Folder | File | None]]]
    ended: int


@dataclass(slots=True)
class Folder:
    """A folder; as `File`, of names."""

    durable: dict[str, Folder | File] = field(default_factory=dict)
    current: dict[str, Folder | File] = field(default_factory=dict)
    waiting: list[Renaming] = field(default_factory=list)

    def force(self, begun: int) -> None:
        """Makes durable which names had changed when the force began; a rename is so in both its folders."""
        for renaming in [each for each in self.waiting if each.ended < begun]:
            for folder, change in renaming.changes:
                _apply(folder.durable, change)
                folder.waiting.remove(renaming)


def rename(changes: list[tuple[Folder, dict[str, Folder | File | None]]], ended: int) -> None:
    """Changes names: each gets what is given, or is removed."""
    renaming = Renaming(changes, ended)
    for folder, change in changes:
        _apply(folder.current, change)
        if not any(renaming is each for each in folder.waiting):
            folder.waiting.append(renaming)


@dataclass(frozen=True, slots=True)
class Loss:
    """One way in which the power goes.

    mode: "lost": nothing that waits is there; "there": all; "names alone": names, and no contents; "contents
    alone": the other way round; "zeros": names and sizes, and zeros in the place of what was added; "random":
    of each file and folder nothing, all, the first changes (the next one torn), or any of them.
    """

    mode: Mode
    generator: random.Random

    def tree(self, root: Folder) -> Tree:
        """What is found below a folder afterwards."""
        chosen: dict[int, bool] = {}
        contents: dict[int, bytes] = {}
        return self._tree(root, chosen, contents)

    def _tree(self, folder: Folder, chosen: dict[int, bool], contents: dict[int, bytes]) -> Tree:
        tree: Tree = {}
        for name, entry in sorted(self._names(folder, chosen).items()):
            if isinstance(entry, Folder):
                tree[name] = self._tree(entry, chosen, contents)
            else:
                if id(entry) not in contents:  # two names of one file
                    contents[id(entry)] = self._content(entry)
                tree[name] = contents[id(entry)]
        return tree

    def _names(self, folder: Folder, chosen: dict[int, bool]) -> dict[str, Folder | File]:
        if self.mode in ("there", "names alone", "zeros"):
            return folder.current
        if self.mode in ("lost", "contents alone"):
            return folder.durable
        names = dict(folder.durable)
        kept = _kept(len(folder.waiting), self.generator)
        for renaming, keep in zip(folder.waiting, kept, strict=True):
            if chosen.setdefault(id(renaming), keep):
                for each, change in renaming.changes:
                    if each is folder:
                        _apply(names, change)
        return names

    def _content(self, file: File) -> bytes:
        if self.mode in ("lost", "names alone") or not file.waiting:
            return file.durable
        if self.mode in ("there", "contents alone"):
            return file.content
        if self.mode == "zeros":
            return file.durable[: file.size] + bytes(max(0, file.size - len(file.durable)))
        return _torn(file.versions(), self.generator)


def _apply(names: dict[str, Folder | File], change: dict[str, Folder | File | None]) -> None:
    for name, entry in change.items():
        if entry is None:
            names.pop(name, None)
        else:
            names[name] = entry


def _kept(count: int, generator: random.Random) -> list[bool]:
    """Which of some changes are there."""
    way = generator.choice(("none", "all", "first", "any"))
    first = generator.randint(0, count)
    choose: dict[str, Callable[[int], bool]] = {
        "none": lambda place: False,
        "all": lambda place: True,
        "first": lambda place: place < first,
        "any": lambda place: generator.random() < 0.5,
    }
    return [choose[way](place) for place in range(count)]


def _torn(versions: Sequence[bytes], generator: random.Random) -> bytes:
    """A mixture of the versions of a file, by sectors; its size is that of one of them."""
    way = generator.choice(("none", "all", "first", "any"))
    if way in ("none", "all"):
        return versions[-1 if way == "all" else 0]
    longest = -(-max(map(len, versions)) // SECTOR) * SECTOR
    sectors = np.stack(
        [np.frombuffer(version.ljust(longest, b"\0"), np.uint8).reshape(-1, SECTOR) for version in versions]
    )
    last = len(versions) - 1
    numbers = np.random.default_rng(generator.randrange(2**32))
    if way == "first":  # all of the first changes, and sectors of the next up to one
        done = int(numbers.integers(0, last)) if last else 0
        written = np.arange(sectors.shape[1]) < numbers.integers(0, sectors.shape[1] + 1)
        choice = np.where(written, min(done + 1, last), done).astype(np.int64)
        size = len(versions[int(numbers.integers(done, min(done + 1, last) + 1))])
    else:
        choice = numbers.integers(0, last + 1, (sectors.shape[1],))
        size = len(versions[int(numbers.integers(0, last + 1))])
    mixed: bytes = sectors[choice, np.arange(sectors.shape[1])].tobytes()
    return mixed[:size]
