"""What a loss of power leaves: a model of the disk below one folder, which keeps nothing that was not forced.

A file holds what it held when it was last forced, and a folder the names that it had then: POSIX promises no
more. A disk may also have kept all names, and only the contents not: that is the other extreme.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.index.sqlite_calls import DONE, OK, Call, sqlite_calls

NOT_COPIED = "-shm"  # SQLite makes the index of its log anew


class ForcedDisk:
    """Follows what this process forces below a folder."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._contents: dict[int, bytes] = {}  # by inode
        self._names: dict[int, dict[str, int]] = {}
        self._held: list[int] = []  # so that no inode is given twice
        self._known: set[int] = set()
        self._force(base)

    def close(self) -> None:
        """Lets go of the inodes."""
        for descriptor in self._held:
            os.close(descriptor)

    def lay_out(self, target: Path, *, all_names: bool) -> Path:
        """Makes a folder of what is left, with the names that are there now or those that were forced."""
        self._lay_out(self._base, self._base.stat().st_ino, target, all_names)
        return target

    def _lay_out(self, live: Path, inode: int, target: Path, all_names: bool) -> None:
        target.mkdir()
        names = _names_in(live) if all_names else self._names.get(inode, {})
        for name, child in names.items():
            if name.endswith(NOT_COPIED):
                continue
            if child in self._names or (all_names and (live / name).is_dir()):
                self._lay_out(live / name, child, target / name, all_names)
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
            self._contents[found.st_ino] = path.read_bytes()

    def _forced_by_sqlite(self, path: Path) -> None:
        """It forces the names of its logs with their contents."""
        self._force(path)
        self._names.setdefault(path.parent.stat().st_ino, {})[path.name] = path.stat().st_ino

    @contextmanager
    def followed(self, patch: Any, renamed: Callable[[], None]) -> Iterator[None]:
        """Within the context calls count, and nothing is forced to the disk that this machine has.

        renamed: called after each renaming.
        """
        def fsync(descriptor: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 - of a descriptor
            if path.is_relative_to(self._base) and path.exists():
                self._force(path)

        def told(call: Call, path: Path) -> int:
            if call == "sync" and path.is_relative_to(self._base) and path.exists():
                self._forced_by_sqlite(path)
            return DONE if call == "sync" else OK

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
