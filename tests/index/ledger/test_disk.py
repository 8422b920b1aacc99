"""What a ledger forces to the disk, and what it does where the disk refuses."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.index.errors import StorageError, StorageFullError, WriteUnknownError
from tercet.index.ledger import file as file_module
from tercet.index.ledger import ledger as ledger_module
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.reader import LedgerReader
from tests.index.ledger.ledger_process import batch
from tests.index.ledger.test_ledger import NOW, batches_of, entry, run
from tests.index.sqlite_calls import FULL, OK, SYNC_FAILED, WRITE_FAILED, Call, sqlite_calls


def kinds(path: Path) -> list[str]:
    with LedgerReader.open(path) as reader:
        return [found.kind for _, found in reader.entries(0)]


def test_every_connection_forces_its_commits(path: Path) -> None:
    ledger = Ledger.open(path)
    for _ in range(2):
        assert ledger._row("PRAGMA synchronous") == (2,)
        assert ledger._row("PRAGMA journal_mode") == ("wal",)
        assert ledger._row("PRAGMA secure_delete") == (0,)
        with ledger._lock:
            ledger._drop()  # the next call opens anew
    ledger.close()


def test_a_new_ledger_is_forced_before_it_has_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, Path, bool]] = []
    for name in ("force", "put_in_place"):
        real = getattr(file_module, name)

        def noted(*paths: Path, name: str = name, real: Callable[..., None] = real) -> None:
            done.append((name, paths[0], path.exists()))
            real(*paths)

        monkeypatch.setattr(file_module, name, noted)
    Ledger.open(path).close()
    new = path.with_name(".ledger.sqlite.new")
    assert done == [("force", new, False), ("put_in_place", new, False)]


def traced(*inject: str) -> tuple[str, ...]:
    """strace before a command, with faults that it injects."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("needs strace, which shows and fails system calls")
    return (program, "-qq", "-f", "-o", os.devnull, *(f"--inject={fault}" for fault in inject))


class Calls:
    """Notes what SQLite writes and forces, and refuses the nth of a kind."""

    def __init__(self, kind: Call | None = None, nth: int = 0, code: int = OK) -> None:
        self.seen: list[tuple[Call, str]] = []
        self._kind, self._left, self._code = kind, nth, code

    def __call__(self, call: Call, file: Path, written: range) -> int:
        self.seen.append((call, file.name))
        self._left -= call == self._kind
        return self._code if call == self._kind and self._left == 0 else OK


def test_each_append_is_written_and_forced_once_before_it_is_acknowledged(path: Path) -> None:
    calls = Calls()
    with sqlite_calls(calls), Ledger.open(path) as ledger:
        for number in range(5):
            calls.seen.clear()
            ledger.append(batch(number))
            assert set(calls.seen) == {("write", "ledger.sqlite-wal"), ("sync", "ledger.sqlite-wal")}
            assert calls.seen.count(("sync", "ledger.sqlite-wal")) == 1
            assert calls.seen[-1][0] == "sync"


def test_each_append_is_one_force(path: Path, repository: Path, tmp_path: Path) -> None:
    Ledger.open(path).close()
    forces = []
    for count in (1, 11):
        trace = tmp_path / f"trace{count}"
        before = (*traced(), "-e", "trace=fsync,fdatasync", "-y", "-o", str(trace))
        assert len(run(repository, "append", path, 0, count, before=before)) == count
        forces.append(trace.read_text().count("ledger.sqlite-wal"))
        Ledger.open(path).close()
    assert forces[1] - forces[0] == 10


@pytest.mark.slow
@pytest.mark.parametrize("nth", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("fault", ["fdatasync:error=EIO", "pwrite64:error=ENOSPC", "pwrite64:error=EIO"])
def test_a_failing_call_leaves_whole_batches_and_the_same_object_goes_on(
    path: Path, repository: Path, tmp_path: Path, fault: str, nth: int
) -> None:
    Ledger.open(path).close()
    # Opening and closing again makes the same calls; the fault falls into an append after it.
    trace = tmp_path / "trace"
    call = fault.partition(":")[0]
    run(repository, "attempt", path, 0, before=(*traced(), "-e", f"trace={call}", "-o", str(trace)))
    opening = sum(call in line for line in trace.read_text().splitlines())
    lines = run(repository, "attempt", path, 9, before=traced(f"{fault}:when={opening + nth}"))
    done = [int(words[0]) for words in lines if words[1].isdigit()]
    failed = [words[1] for words in lines if not words[1].isdigit()]
    assert len(done) == 8
    assert failed == ["StorageFullError" if "ENOSPC" in fault else "StorageError"]
    with LedgerReader.open(path) as reader:
        reader.check()
        assert batches_of([found.kind for _, found in reader.entries(0)]) == done


@pytest.mark.parametrize("nth", range(1, 8))
@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        ("sync", SYNC_FAILED, StorageError),
        ("write", WRITE_FAILED, StorageError),
        ("write", FULL, StorageFullError),
    ],
)
def test_what_the_disk_refuses_is_not_there_and_the_same_object_goes_on(
    path: Path, kind: Call, code: int, error: type[StorageError], nth: int
) -> None:
    calls = Calls(kind, -1, code)
    with sqlite_calls(calls), Ledger.open(path) as ledger:
        calls._left = nth
        became: dict[int, str] = {}
        for number in range(9):
            try:
                ledger.append(batch(number))
                became[number] = "done"
            except StorageError as failure:
                became[number] = type(failure).__name__
            with LedgerReader.open(path) as reader:  # what is told is what others find
                found = batches_of([entry.kind for _, entry in reader.entries(0)])
                assert found == [batch for batch, end in became.items() if end == "done"]
        assert sorted(became.values()) == [error.__name__, *["done"] * 8]
    with LedgerReader.open(path) as reader:
        reader.check()
        assert len(batches_of([entry.kind for _, entry in reader.entries(0)])) == 8


def test_unknown_is_said_and_undone_by_the_next_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(path) as ledger:
        ledger.append([entry(b"a")])
        connect = ledger_module.connect

        def broken(_: Path) -> sqlite3.Connection:
            raise StorageError("the disk is gone")

        class FailingCommit:
            """Commits, and then says that it failed, as where the force of a commit fails."""

            def __init__(self, connection: sqlite3.Connection) -> None:
                self._connection = connection

            def execute(self, statement: str, *values: object) -> object:
                result = self._connection.execute(statement, *values)
                if statement == "COMMIT":
                    raise StorageError("the force failed")
                return result

            def close(self) -> None:
                self._connection.close()

        def fail_commit() -> None:
            assert ledger._connection is not None
            ledger._connection = FailingCommit(ledger._connection)  # type: ignore[assignment]

        fail_commit()
        monkeypatch.setattr(ledger_module, "connect", broken)
        with pytest.raises(WriteUnknownError, match=r"the force failed.*unknown.*the disk is gone"):
            ledger.append([entry(b"b", key="k")], now=NOW)
        with pytest.raises(StorageError, match="the disk is gone"):
            ledger.append([entry(b"c")], now=NOW)
        monkeypatch.setattr(ledger_module, "connect", connect)
        assert ledger.append([entry(b"d")], now=NOW) == 2
        assert [found.payload for _, found in ledger.entries(0)] == [b"a", b"d"]
        assert ledger.answer_of("k", NOW) is None
        fail_commit()
        with pytest.raises(StorageError, match=r"^the force failed$"):
            ledger.append([entry(b"e")])
        assert kinds(path) == ["put", "put"]
        assert ledger.append([entry(b"f")]) == 3


def test_a_full_file_is_no_space_left(ledger: Ledger) -> None:
    ledger.append([entry(b"a")])
    pages = ledger._row("PRAGMA page_count")[0]
    ledger._row(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(StorageFullError, match=r"ledger\.sqlite: no space left .* free some and try again"):
        ledger.append([entry(b"b"), entry(bytes(100_000))])
    assert [found.payload for _, found in ledger.entries(0)] == [b"a"]
    assert ledger.append([entry(bytes(100_000))]) == 2


def test_a_full_disk(tmp_path: Path, repository: Path) -> None:
    full, freed, reopened = in_namespace(repository, "full", tmp_path)
    acknowledged = int(full[1])
    assert full == ["full", str(acknowledged), str(acknowledged), "True"]
    assert acknowledged > 0
    assert freed == ["freed", str(acknowledged + 1), str(acknowledged + 1)]
    assert reopened == ["reopened", str(acknowledged + 1)]


def test_a_read_only_disk_is_read_and_not_written(tmp_path: Path, repository: Path) -> None:
    lines = in_namespace(repository, "read-only", tmp_path)
    assert lines == [["read", "1"], ["refused", "True"], ["writable", "2"]]


def in_namespace(repository: Path, command: str, folder: Path) -> list[list[str]]:
    """Runs a command that mounts file systems, which no other process sees."""
    unshare = shutil.which("unshare")
    probe = [unshare, "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if unshare is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs unshare and the right to mount")
    return run(repository, command, folder, before=(unshare, "--mount"))


def test_a_folder_that_takes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"/proc/ledger\.sqlite: .*mounted for writing"):
        Ledger.open(Path("/proc/ledger.sqlite"))
    with pytest.raises(StorageError, match="failed"):
        Ledger.open(tmp_path / "missing" / "ledger.sqlite")
