"""Compiled loops, kept on the disk for later processes while nothing changes that they are made of.

Numba keeps what it compiled as long as the file of the outermost function stays as it is. What that takes
from other files, functions and constants, is in its machine code too, so here a loop is kept under a digest
of its file and of all files of ours that this imports, directly or not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

try:
    from numba import njit
    from numba.core.caching import FunctionCache, IndexDataCacheFile
except ImportError as error:
    raise ImportError("the index needs Numba: pip install -c constraints.txt -e '.[cpu]'") from error

ROOT = Path(__file__).resolve().parent.parent
IMPORTED = re.compile(r"^\s*(?:from|import) ((?:index|models|training)(?:\.\w+)+)", re.MULTILINE)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compiles a function at its first call, or loads what an earlier process compiled of the same sources.

    options: of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        dispatcher._cache = _Kept(function)
        return dispatcher

    return decorate


@cache
def digest_of(file: Path) -> str:
    """Of a file below `ROOT` and all those of ours that it imports, directly or not."""
    total = hashlib.sha256()
    for path in sorted(_made_of(file)):
        total.update(f"{path.relative_to(ROOT)} {_content(path)[0]}\n".encode())
    return total.hexdigest()


def _made_of(file: Path) -> set[Path]:
    found, waiting = {file}, [file]
    while waiting:
        imported = set(_content(waiting.pop())[1]) - found
        found |= imported
        waiting.extend(imported)
    return found


@cache
def _content(file: Path) -> tuple[str, tuple[Path, ...]]:
    """The digest of a file, and the files of ours that it imports."""
    content = file.read_bytes()
    names = (ROOT.joinpath(*name.split(".")) for name in IMPORTED.findall(content.decode()))
    files: list[Path] = []
    for each in names:
        files.extend(each.glob("*.py") if each.is_dir() else [each.with_suffix(".py")])
    files = [each for each in files if each.exists()]  # but for the kernels, which are of C
    return hashlib.sha256(content).hexdigest(), tuple(files)


class _Kept:
    """A function's cache, looked up when it is first called: importing reads no sources."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._found: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._found is None:
            self._found = _by_sources(self._function)
        return getattr(self._found, name)


def _by_sources(function: Callable[..., Any]) -> Any:
    """Numba's cache of a function, which names the digest of its sources instead of its file's time."""
    found: Any = FunctionCache(function)  # type: ignore[no-untyped-call]
    digest = digest_of(Path(function.__code__.co_filename).resolve())
    kept = (found.cache_path, found._impl.filename_base, digest)
    found._cache_file = IndexDataCacheFile(*kept)  # type: ignore[no-untyped-call]
    return found
