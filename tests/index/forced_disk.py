"""What a loss of power leaves: a model of the disk below one folder, which keeps nothing that was not forced.

A file holds what it held when it was last forced, and a folder the names that it had then: POSIX promises no
more. A disk may have kept more than that, the names in some folders among it. What a failed force was to
bring there is lost, and no later force tries again, until it is written again: so Linux has it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.index.sqlite_calls import DONE, OK, SYNC_FAILED, Call, sqlite_calls

LOG, NOT_COPIED = "-wal", "-shm"  # SQLite makes the index of its log anew


class ForcedDisk:
    """Follows what this process forces below a folder."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._contents: dict[int, bytes] = {}  # by inode
        self._names: dict[int, dict[str, int]] = {}
        self._held: list[int] = []  # so that no inode is given twice
        self._known: set[int] = set()
        self._written: dict[int, set[int]] = {}  # bytes of SQLite's files, since they were forced
        self._lost: dict[int, set[int]] = {}
        self.failing: Path | None = None  # the file or folder whose next force fails
        self._force(base)

    def close(self) -> None:
        """Lets go of the inodes."""
        for descriptor in self._held:
            os.close(descriptor)

    def lay_out(self, target: Path, kept: Callable[[Path], bool]) -> Path:
        """Makes a folder of what is left.

        kept: of which folders the names are those that are there now, and not only those that were forced.
        """
        self._lay_out(self._base, self._base.stat().st_ino, target, kept)
        return target

    def _lay_out(self, live: Path, inode: int, target: Path, kept: Callable[[Path], bool]) -> None:
        target.mkdir()
        there = live.is_dir() and live.stat().st_ino == inode
        names = _names_in(live) if there and kept(live) else self._names.get(inode, {})
        for name, child in names.items():
            if name.endswith(NOT_COPIED):
                continue
            if child in self._names or (there and (live / name).is_dir()):
                self._lay_out(live / name, child, target / name, kept)
            else:
                (target / name).write_bytes(self._contents.get(child, b""))

    def _force(self, path: Path) -> None:
        found = path.stat()
        if found.st_ino not in self._known:
            self._known.add(found.st_ino)
            self._held.append(os.open(path, os.O_PATH))
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = _names_in(path)
            for name in self._names[found.st_ino]:
                if (path / name).is_dir():  # a folder is one before anything in it is forced
                    self._names.setdefault((path / name).stat().st_ino, {})
        else:
            self._contents[found.st_ino] = self._content(found.st_ino, path.read_bytes())

    def _content(self, inode: int, now: bytes) -> bytes:
        """What a force leaves of a file that holds this now."""
        content, former = bytearray(now), self._contents.get(inode, b"")
        for place in self._lost.get(inode, ()):
            if place < len(content):
                content[place] = former[place] if place < len(former) else 0
        self._written.pop(inode, None)
        return bytes(content)

    def _forced_by_sqlite(self, path: Path) -> None:
        """It forces the names of its logs with their contents, and relies on that of the file."""
        self._force(path)
        if path.name.endswith(LOG):
            self._names.setdefault(path.parent.stat().st_ino, {})[path.name] = path.stat().st_ino

    @contextmanager
    def followed(self, patch: Any, renamed: Callable[[], None]) -> Iterator[None]:
        """Within the context calls count, and nothing is forced to the disk that this machine has.

        renamed: called after each renaming.
        """

        def fsync(descriptor: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 - of a descriptor
            if path == self.failing:
                self.failing = None
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            if path.is_relative_to(self._base) and path.exists():
                self._force(path)

        def told(call: Call, path: Path, written: range) -> int:
            if not path.is_relative_to(self._base) or not path.exists():
                return DONE if call == "sync" else OK
            inode = path.stat().st_ino
            if call == "write":
                self._written.setdefault(inode, set()).update(written)
                self._lost.get(inode, set()).difference_update(written)
                return OK
            if path == self.failing:
                self.failing = None
                self._lost.setdefault(inode, set()).update(self._written.pop(inode, ()))
                return SYNC_FAILED
            self._forced_by_sqlite(path)
            return DONE

        def following(change: Callable[..., None]) -> Callable[..., None]:
            def act(*arguments: Any, **options: Any) -> None:
                change(*arguments, **options)
                renamed()

            return act

        with patch.context() as patched, sqlite_calls(told):
            patched.setattr(os, "fsync", fsync)
            for name in ("rename", "replace"):
                patched.setattr(os, name, following(getattr(os, name)))
            yield


def _names_in(folder: Path) -> dict[str, int]:
    with os.scandir(folder) as entries:
        return {entry.name: entry.inode() for entry in entries}
