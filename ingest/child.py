"""How a Python module of ours is started as a child process, wherever the caller's working folder is."""

from __future__ import annotations

import sys


def module_command(module: str) -> list[str]:
    """The command that runs the module.

    `-P`: no file of the working folder, say a `types.py`, is imported, as it is not by the command `tercet`.
    """
    return [sys.executable, "-P", "-m", module]
