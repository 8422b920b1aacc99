"""Files that a crash at any moment leaves whole: the former one or the new one, or whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tercet.models.files import force, force_open


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` at the end, once it is on the disk."""
    temporary = path.with_name(f"{path.name}.writing")
    with temporary.open("wb") as file:
        yield file
        file.flush()
        force_open(file.fileno())
    temporary.replace(path)
    force(path.parent)


def whole_lines(path: Path) -> int:
    """Lines of a file that a kill may have cut, after what is no whole line was cut off."""
    if not path.is_file():
        return 0
    count = end = 0
    with path.open("r+b") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, end = count + 1, end + len(line)
        file.truncate(end)
    return count
