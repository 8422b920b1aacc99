"""Second names of immutable files: hard links where the file system has them, else copies."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from index.files.storage import missing, sync_file, sync_folder

# Of os.link: another file system, one without links, one link too many, or a file of another user.
_CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


def link_or_copy(source: Path, target: Path) -> None:
    """Gives a file, which is on the disk and never changes, a second name; its folder is still to be forced.

    Raises DamagedIndexError where the file is missing.
    """
    try:
        os.link(source, target)
    except FileNotFoundError as error:
        raise missing(source) from error
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        shutil.copyfile(source, target)
        sync_file(target)


def link_folder(source: Path, target: Path, names: Iterable[str]) -> None:
    """Gives files of a folder second names in a new one, which appears at once and complete.

    Its own name is still to be forced to the disk. Raises DamagedIndexError where a file is missing.
    """
    unfinished = target.with_name(f"{target.name}.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for name in names:
        link_or_copy(source / name, unfinished / name)
    sync_folder(unfinished)
    unfinished.rename(target)
