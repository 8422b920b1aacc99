"""A folder with the files of an export, made as a whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

from tercet.transfer.errors import TransferError
from tercet.transfer.push import exists


def begin_folder(folder: Path | None, marker: str, *, overwrite: bool, resume: bool) -> None:
    """Makes the folder. marker: a file by which an earlier export is known, which alone is overwritten.

    Raises TargetExistsError or TransferError.
    """
    if folder is None:
        return
    if resume:
        raise TransferError("files are written as a whole: leave --resume out, and give --overwrite")
    if not folder.parent.is_dir():
        raise TransferError(f"{folder.parent}: no such folder to write {folder.name} to")
    if folder.exists():
        if not overwrite:
            raise exists(str(folder))
        if not (folder / marker).exists():
            raise TransferError(f"{folder} is no folder of an export, and was left alone: choose another")
        shutil.rmtree(folder)
    folder.mkdir()


def abandon_folder(folder: Path | None) -> str:
    """Removes it; returns what to say of that."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return "nothing was written"
