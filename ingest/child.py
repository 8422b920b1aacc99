"""How a Python module of ours is started as a child process, wherever the caller's working folder is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[1]


def module_command(module: str) -> list[str]:
    """The command that runs the module.

    `-P`: otherwise a folder called `index` in the working folder would be taken for our package.
    """
    return [sys.executable, "-P", "-m", module]


def child_environment() -> dict[str, str]:
    """This process's variables, and a path on which our packages are found."""
    pythonpath = os.pathsep.join(filter(None, (str(_PACKAGES), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": pythonpath}
