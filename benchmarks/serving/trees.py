"""The code of other commits of this repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from serving.server import ROOT


def tree_of(commit: str, folder: Path) -> Path | None:
    """The code of a commit, unpacked; None, with a word, where this is no clone that has it, or where its
    code is not the package `tercet`: a server would take the installed one in its place.
    """
    done = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
    if done.returncode:
        print(f"commit {commit} is not here to compare with: {done.stderr.decode().strip()}")
        return None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    if not (folder / "src" / "tercet").is_dir():
        print(f"commit {commit} is not compared with: it has no package tercet")
        return None
    return folder
