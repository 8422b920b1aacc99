"""Reads what strace wrote: the calls of a process that change files, in the order in which they returned."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CALLS = (
    "openat open creat close dup dup2 dup3 fcntl lseek write pwrite64 writev pwritev pwritev2 "
    "ftruncate truncate fallocate fsync fdatasync sync syncfs rename renameat renameat2 link linkat "
    "symlink symlinkat unlink unlinkat mkdir mkdirat rmdir mmap copy_file_range sendfile splice chdir "
    "fchdir"
)
LONGEST_WRITE = 2**26

_WHOLE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\w+).*")
_BEGUN = re.compile(r"(\d+) +(\w+)\((.*) <unfinished \.\.\.>")
_RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (-?\w+).*")
_ARGUMENT = re.compile(r'(?:"(?:[^"\\]|\\.)*"(?:\.\.\.)?|\[[^\]]*\]|\{[^}]*\}|[^,\[{"])+')
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """A call that succeeded. begun, ended: lines of the trace; arguments: as strace shows them."""

    name: str
    arguments: list[str]
    result: int
    begun: int
    ended: int

    def number(self, place: int) -> int:
        """An argument that is a number."""
        return int(self.arguments[place], 0)

    def content(self, place: int) -> bytes:
        """The bytes of an argument: a string, or several of a vector."""
        argument = self.arguments[place]
        if "..." in argument:
            raise ValueError(f"{self.name} at line {self.ended}: the trace has a part of the string alone")
        return b"".join(bytes.fromhex(part.replace("\\x", "")) for part in _STRING.findall(argument))

    def path(self, place: int) -> str:
        """An argument that is a path."""
        return self.content(place).decode()


def record(command: Sequence[str], trace: Path, environment: dict[str, str]) -> None:
    """Runs a command under strace. Raises CalledProcessError."""
    strace = ["strace", "-f", "-xx", "-s", str(LONGEST_WRITE), "-e", "signal=none", "-o", str(trace)]
    traced = [*strace, "-e", "trace=" + ",".join(CALLS.split()), *command]
    subprocess.run(traced, check=True, env=environment, stdout=subprocess.DEVNULL)


def calls(trace: Path) -> Iterator[Call]:
    """The calls of a trace that succeeded."""
    begun: dict[tuple[str, str], tuple[int, str]] = {}
    with trace.open(encoding="ascii") as lines:
        for place, line in enumerate(lines):
            if found := _WHOLE.fullmatch(line.rstrip("\n")):
                thread, name, arguments, result = found.groups()
                start = place
                if name.startswith("resumed"):
                    continue
            elif found := _BEGUN.fullmatch(line.rstrip("\n")):
                thread, name, arguments = found.groups()
                begun[thread, name] = (place, arguments)
                continue
            elif found := _RESUMED.fullmatch(line.rstrip("\n")):
                thread, name, rest, result = found.groups()
                start, arguments = begun.pop((thread, name))
                arguments += rest
            else:  # a thread began or ended
                continue
            if not result.startswith("-") and result != "?":
                split = [argument.strip() for argument in _ARGUMENT.findall(arguments)]
                yield Call(name, split, int(result, 0), start, place)
