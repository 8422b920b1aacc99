"""All that the index does to names on the disk: what forces, renames, links and removes files is here alone.

A loss of power leaves of a file what was forced of it, and of a folder the names that were forced. So content
is forced before it gets its name, and a name is forced before anything relies on it; what is removed is no
longer named by then.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tercet.index.files.content import json_bytes, missing
from tercet.models.files import force, force_open

# Of os.link: another file system, one without links, one link too many, or a file of another user.
_CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, and forces the names of those that were missing to the disk.

    What is forced within a folder is lost with the folder's own name.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        force(path.parent)


def write_atomically(
    path: Path, pieces: Iterable[bytes], check: Callable[[Path], None] = lambda _: None
) -> None:
    """Replaces a file: after a crash it holds its former content or the new one, never a part.

    check: of the complete file, before it gets its name; may raise.
    """
    _write(path, pieces, check, lambda temporary: temporary.replace(path))


def create_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Writes a file that is not there: whole or not at all. Raises FileExistsError where it is.

    Of several who do so at once, one succeeds. Takes a file system with hard links.
    """
    _write(path, pieces, lambda _: None, lambda temporary: os.link(temporary, path))


def _write(
    path: Path, pieces: Iterable[bytes], check: Callable[[Path], None], name: Callable[[Path], object]
) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with temporary.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            force_open(file.fileno())
        check(temporary)
        name(temporary)
    except OSError as error:
        # A write that finds the disk full names nothing.
        if error.errno is not None and error.filename is None:
            error.filename = str(path.parent)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    force(path.parent)


def write_json_atomically(path: Path, value: Any) -> None:
    """Replaces a file by readable JSON."""
    write_atomically(path, [json_bytes(value)])


def rename(source: Path, target: Path) -> None:
    """Gives what is complete and forced its name, which is still to be forced where it has to last."""
    source.rename(target)


def put_in_place(source: Path, target: Path) -> None:
    """Gives what is complete and forced its name in the same folder, and forces that name.

    It may have its name where this raises.
    """
    rename(source, target)
    force(target.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Gives a file, which is on the disk and never changes, a second name; its folder is still to be forced.

    A hard link where the file system has them, else a copy. Raises DamagedIndexError where it is missing.
    """
    try:
        os.link(source, target)
    except FileNotFoundError as error:
        raise missing(source) from error
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        shutil.copyfile(source, target)
        force(target)


def link_folder(source: Path, target: Path, names: Iterable[str]) -> None:
    """Gives files of a folder second names in a new one, which appears at once and complete.

    Its own name is still to be forced to the disk. Raises DamagedIndexError where a file is missing.
    """
    unfinished = target.with_name(f"{target.name}.partial")
    remove_folder(unfinished)
    unfinished.mkdir()
    for name in names:
        link_or_copy(source / name, unfinished / name)
    force(unfinished)
    rename(unfinished, target)


def remove_file(path: Path) -> None:
    """Removes a file, if it is there."""
    path.unlink(missing_ok=True)


def remove_files(paths: Iterable[Path]) -> None:
    """Removes files that nothing names; what cannot be removed only takes room."""
    for path in list(paths):
        with suppress(OSError):
            path.unlink()


def remove_folder(folder: Path) -> None:
    """Removes a folder that nothing names, with all in it; what cannot be removed only takes room."""
    shutil.rmtree(folder, ignore_errors=True)
