"""Disks that fail or are full: a clear error, and what was acknowledged is there, meanwhile and later."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tercet.index.collection import Collection
from tercet.index.errors import StorageError, UnforcedPublicationError
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("live_process.py")


@pytest.fixture(scope="module")
def process() -> ModuleType:
    """What the other processes do, to be used here, too."""
    spec = importlib.util.spec_from_file_location("live_process", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def collection(root: Path, process: ModuleType) -> Collection:
    return Collection.create(root, "demo", process.SETTINGS)


def run(repository: Path, *arguments: object, before: tuple[str, ...] = ()) -> list[list[str]]:
    """The lines that a process says, as words."""
    done = subprocess.run(
        [*before, sys.executable, str(SCRIPT), *map(str, arguments)],
        cwd=repository,
        stdout=subprocess.PIPE,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return [line.split() for line in done.stdout.splitlines()]


class Failing:
    """Lets the nth of some calls fail, and those after it while `lasting`."""

    def __init__(self, real: Callable[..., Any], nth: int, number: int, lasting: bool) -> None:
        self._real = real
        self._left = nth
        self._error = OSError(number, os.strerror(number))
        self._lasting = lasting

    @property
    def failed(self) -> bool:
        return self._left <= 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._lasting):
            raise self._error
        return self._real(*arguments, **options)


@pytest.mark.parametrize("work", ["flush", "merge"])
@pytest.mark.parametrize("call", ["fsync", "rename", "replace", "mkdir"])
@pytest.mark.parametrize(("number", "lasting"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_whichever_step_of_a_flush_or_merge_fails_all_is_there(
    collection: Collection,
    root: Path,
    process: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    work: str,
    call: str,
    number: int,
    lasting: bool,
) -> None:
    real, nth, batch = getattr(os, call), 0, 0
    with LiveCollection(collection, process.LIMITS) as live:
        failed = True
        while failed:
            nth += 1
            for _ in range(3):  # a segment each; of two of them a part is replaced, and they are joined
                process.put(live, batch)
                batch += 1
                if work == "merge":
                    live.flush()
            failing = Failing(real, nth, number, lasting)
            with monkeypatch.context() as patched:
                patched.setattr(os, call, failing)
                became = outcome(getattr(live, work))
                failed = failing.failed
                assert became in ({"unforced", errno.errorcode[number]} if failed else {"done"})
                assert process.batches(live) == list(range(batch))
            assert verify(root, "demo") == []
            process.put(live, batch)
            batch += 1
            live.flush()
            live.merge()
            assert process.batches(live) == list(range(batch))
            assert verify(root, "demo") == []
    with LiveCollection(collection) as live:
        assert process.batches(live) == list(range(batch))
    least = {"fsync": 5, "rename": 1, "replace": 2, "mkdir": 1}
    assert nth > least[call]


def outcome(call: Callable[[], object]) -> str:
    """How a call ended; other errors than those of a disk are raised."""
    try:
        call()
    except UnforcedPublicationError:
        return "unforced"
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def traced(call: str, trace: Path | str = os.devnull) -> tuple[str, ...]:
    """strace of a system call before a command; others are not looked at."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("needs strace, which fails system calls")
    return (program, "-qq", "-f", "--seccomp-bpf", "-e", f"trace={call}", "-o", str(trace))


def count_calls(repository: Path, call: str, root: Path, tmp_path: Path, rounds: int) -> int:
    """How often a process makes a call where nothing fails, opening and closing included."""
    trace, copy = tmp_path / f"trace{rounds}", tmp_path / f"whole{rounds}"
    shutil.copytree(root, copy)
    run(repository, "attempt", copy, rounds, before=traced(call, trace))
    return sum(call in line for line in trace.read_text().splitlines())


@pytest.mark.parametrize(
    "fault", ["fdatasync:error=EIO", "pwrite64:error=ENOSPC", "write:error=ENOSPC", "fsync:error=EIO"]
)
def test_whatever_the_system_refuses_acknowledged_batches_stay(
    collection: Collection,
    root: Path,
    process: ModuleType,
    repository: Path,
    tmp_path: Path,
    fault: str,
) -> None:
    """The nth call alone, and that and all later ones."""
    with LiveCollection(collection):
        pass  # the ledger is made
    call = fault.partition(":")[0]
    opening, calls = (count_calls(repository, call, root, tmp_path, rounds) for rounds in (0, 4))
    times = range(opening + 1, calls + 1, max(1, (calls - opening) // 3))
    for nth, lasting in product(times, ("", "+")):
        copy = tmp_path / f"at{nth}{lasting}"
        shutil.copytree(root, copy)
        inject = f"--inject={fault}:when={nth}{lasting}"
        lines = run(repository, "attempt", copy, 4, before=(*traced(call), inject))
        assert ["searched", "True"] in lines
        assert all(words[1] == "True" for words in lines if words[0] == "searched" and words[1] != "False")
        puts = {int(words[1]): words[2] for words in lines if words[0] == "put"}
        done = [number for number, became in puts.items() if became == "done"]
        unknown = {number for number, became in puts.items() if became == "WriteUnknownError"}
        assert lines[-1] == ["there", *map(str, done)]
        assert verify(copy, "demo") == []
        with LiveCollection(Collection.open(copy, "demo")) as live:
            assert set(done) <= set(process.batches(live)) <= set(done) | unknown
            process.put(live, 7)
            live.flush()
        assert verify(copy, "demo") == []


def in_namespace(repository: Path, command: str, folder: Path) -> list[list[str]]:
    """Runs a command that mounts file systems, which no other process sees."""
    unshare = shutil.which("unshare")
    probe = [str(unshare), "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if unshare is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs unshare and the right to mount")
    return run(repository, command, folder, before=(unshare, "--mount"))


def test_a_full_disk_refuses_writes_and_searches_go_on(tmp_path: Path, repository: Path) -> None:
    assert in_namespace(repository, "full", tmp_path) == [
        ["full", "StorageFullError", "True"],
        ["flush", "ENOSPC"],
        ["searched", "10"],
        ["there", "True"],
        ["freed", "True"],
        ["reopened", "True", "True"],
    ]


def test_a_read_only_disk_is_read_and_its_writes_are_there_later(tmp_path: Path, repository: Path) -> None:
    assert in_namespace(repository, "read-only", tmp_path) == [
        ["published", "4"],
        ["open", "EROFS"],
        ["there", "0", "1", "2"],
    ]


def test_a_torn_end_of_the_ledger_keeps_every_batch_before_it(
    collection: Collection, root: Path, process: ModuleType, repository: Path, tmp_path: Path
) -> None:
    said = [list(map(int, words)) for words in run(repository, "write", root, 5)]
    ends = dict(said)
    log = collection.layout.ledger.with_name("ledger.sqlite-wal").read_bytes()
    for cut in range(len(log) - 1, ends[2], -1517):
        copy = tmp_path / f"at{cut}"
        shutil.copytree(root, copy)
        (copy / "demo" / "ledger.sqlite-wal").write_bytes(log[:cut])
        with LiveCollection(Collection.open(copy, "demo")) as live:
            assert process.batches(live) == [number for number, end in ends.items() if end <= cut]
            process.put(live, 9)
        assert verify(copy, "demo") == []


def test_a_limit_on_file_sizes_is_an_error_like_a_full_disk(
    collection: Collection, process: ModuleType, root: Path
) -> None:
    resource = pytest.importorskip("resource")
    with LiveCollection(collection) as live:
        process.put(live, 0)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        log = collection.layout.ledger.with_name("ledger.sqlite-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (log + 100, before[1]))
        try:
            with pytest.raises(StorageError):
                process.put(live, 1)
            with pytest.raises(StorageError):  # published, and the ledger cannot be trimmed
                live.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert process.batches(live) == [0]
        process.put(live, 2)
        live.flush()
        assert process.batches(live) == [0, 2]
    assert verify(root, "demo") == []
