"""HTML and PDF files parsed in a process of bounded memory and time.

Such a file may be made to take any of either, or to make the library that reads it fail in ways that end a
process. So a child parses them (`ingest/texts/parse_files.py`), one after the other; where a file ends it,
that file is said to be unreadable, and the next one gets a new child.
"""

from __future__ import annotations

import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import orjson

from tercet.ingest.child import module_command
from tercet.ingest.texts.extra import needed_for
from tercet.ingest.texts.files import MARKDOWN
from tercet.ingest.texts.parsed import ParsedText, UnreadableFileError

MEMORY_BYTES = 2**30
SECONDS = 60
PARSED = {".html": "selectolax", ".htm": "selectolax", ".pdf": "pypdfium2"}
"""Endings of names of files that a child parses, and the module that it needs."""
_PACKAGES = {**PARSED, **dict.fromkeys(MARKDOWN, "markdown_it")}


def require_packages(endings: set[str]) -> None:
    """Raises SourceError where files that end so cannot be read here."""
    for ending in sorted(endings & set(_PACKAGES)):
        with needed_for(f"reading {ending} files"):
            if not _is_there(_PACKAGES[ending]):
                raise ImportError(f"No module named {_PACKAGES[ending]!r}")


def _is_there(module: str) -> bool:
    """Whether it could be imported; it is not, since a child will do that."""
    try:
        return find_spec(module) is not None
    except ValueError:  # it was imported in a way of its own
        return False


class FileParser:
    """Parses files by a child process, which runs from the first file to the end of the block."""

    def __init__(self, limit_bytes: int, *, memory_bytes: int = MEMORY_BYTES, seconds: int = SECONDS) -> None:
        """limit_bytes: of a file's text."""
        self._limits = (memory_bytes, seconds, limit_bytes)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> FileParser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def parse(self, path: Path, encoding: str | None = None, read_as: str | None = None) -> ParsedText:
        """What a file holds. read_as: an ending, by default its own. Raises UnreadableFileError."""
        process = self._process or self._start()
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None  # noqa: S101 - it is a pipe
        assert stdout is not None  # noqa: S101 - so is it
        try:
            ending = read_as or path.suffix.lower()
            request = {"path": str(path.absolute()), "ending": ending, "encoding": encoding}
            stdin.write(orjson.dumps(request) + b"\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = b""
        except BaseException:
            self.close()
            raise
        if not line.endswith(b"\n"):
            raise UnreadableFileError(self._end_of(process))
        answer = orjson.loads(line)
        if "error" in answer:
            raise UnreadableFileError(answer["error"])
        return ParsedText.from_json(answer)

    def close(self) -> None:
        """Ends the child."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [*module_command("tercet.ingest.texts.parse_files"), *map(str, self._limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for this process, which then ends the child
        )
        return self._process

    def _end_of(self, process: subprocess.Popen[bytes]) -> str:
        """Why the child ended in the middle of a file."""
        process.wait()
        self.close()
        if process.returncode == -signal.SIGALRM:
            return f"it takes longer than {self._limits[1]} s"
        return (
            f"its reader ended with exit code {process.returncode}: it is damaged, or takes more than "
            f"{self._limits[0] >> 20} MiB of memory"
        )
