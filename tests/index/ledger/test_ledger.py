"""The ledger: whole batches, positions that only grow, answers kept for a day, and what faults leave."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tercet.index.errors import (
    CollectionBusyError,
    DamagedIndexError,
    InvalidDocumentError,
    StorageError,
    StorageFullError,
    WriteUnknownError,
)
from tercet.index.ledger import file as file_module
from tercet.index.ledger import ledger as ledger_module
from tercet.index.ledger.file import LOG_PAGES, PAGE_BYTES, log_of
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.reader import KEPT_SECONDS, LedgerReader
from tercet.index.ledger.records import IdempotencyKey, LedgerEntry, StoredAnswer
from tests.index.ledger.ledger_process import batch
from tests.index.sqlite_calls import FULL, OK, SYNC_FAILED, WRITE_FAILED, Call, sqlite_calls

SCRIPT = Path(__file__).with_name("ledger_process.py")
NOW = 1_000_000.0
DIGEST = hashlib.sha256(b"request").hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        yield opened


def entry(payload: bytes = b"x", key: str | None = None) -> LedgerEntry:
    return LedgerEntry("put", payload, None if key is None else IdempotencyKey(key, DIGEST, f'"{key}"'))


def kept(ledger: LedgerReader) -> int:
    """Entries that are not trimmed."""
    return ledger.last_position - ledger.trimmed_position


def start(repository: Path, *arguments: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, sys.executable, str(SCRIPT), *map(str, arguments)],
        cwd=repository,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(repository: Path, *arguments: object, before: tuple[str, ...] = ()) -> list[list[str]]:
    """The lines that a process says, as words."""
    process = start(repository, *arguments, before=before)
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    return [line.split() for line in output.splitlines()]


def kinds(path: Path) -> list[str]:
    with LedgerReader.open(path) as reader:
        return [found.kind for _, found in reader.entries(0)]


def batches_of(found: list[str]) -> list[int]:
    """The batches of which these are the entries; each must be whole."""
    numbers = sorted(set(map(int, found)))
    assert found == [str(number) for number in numbers for _ in range(number % 3 + 1)]
    return numbers


def test_what_was_appended_is_read_in_order(ledger: Ledger) -> None:
    assert (ledger.last_position, kept(ledger)) == (0, 0)
    assert ledger.append([LedgerEntry("put", b"a"), LedgerEntry("delete", b"")]) == 2
    assert ledger.append([LedgerEntry("put", bytes(10_000))]) == 3
    assert list(ledger.entries(0)) == [
        (1, LedgerEntry("put", b"a")),
        (2, LedgerEntry("delete", b"")),
        (3, LedgerEntry("put", bytes(10_000))),
    ]
    assert [position for position, _ in ledger.entries(2)] == [3]
    assert list(ledger.entries(3)) == []
    assert (ledger.last_position, kept(ledger), ledger.trimmed_position) == (3, 3, 0)
    ledger.check()
    with pytest.raises(ValueError, match="at least one entry"):
        ledger.append([])


def test_reopening_finds_all(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append([entry(b"a"), entry(b"b")])
    assert not log_of(path).exists()
    with Ledger.open(path) as ledger:
        assert [found.payload for _, found in ledger.entries(0)] == [b"a", b"b"]
        assert ledger.append([entry()]) == 3
    with pytest.raises(ValueError, match="closed"):
        ledger.append([entry()])


def test_positions_are_never_given_twice(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert ledger.append([entry(), entry(), entry()]) == 3
        ledger.trim(2)
        assert [position for position, _ in ledger.entries(2)] == [3]
        assert (kept(ledger), ledger.trimmed_position) == (1, 2)
        ledger.trim(1)
        assert ledger.trimmed_position == 2
        ledger.trim(3)
        assert (kept(ledger), ledger.last_position) == (0, 3)
    with Ledger.open(path) as ledger:
        assert (kept(ledger), ledger.last_position) == (0, 3)
        assert ledger.append([entry()]) == 4


def test_a_lost_file_gives_no_position_again(ledger: Ledger) -> None:
    assert ledger.append([entry()], least_position=1) == 1
    assert ledger.append([entry(b"b"), entry(b"c")], least_position=58) == 59
    assert (ledger.trimmed_position, kept(ledger)) == (57, 2)
    assert ledger.append([entry()], least_position=58) == 60
    assert [position for position, _ in ledger.entries(57)] == [58, 59, 60]
    ledger.trim(70)
    assert ledger.append([entry()]) == 71


def test_asking_for_what_was_trimmed_is_an_error(ledger: Ledger) -> None:
    ledger.append([entry() for _ in range(9)])
    ledger.trim(4)
    with pytest.raises(DamagedIndexError, match="up to position 4 are trimmed, 3 is asked for"):
        next(ledger.entries(2))


def test_a_slow_reader_sees_the_trim_that_overtakes_it(ledger: Ledger) -> None:
    ledger.append([entry(bytes(3_000_000)) for _ in range(6)])
    slow, followed = ledger.entries(0), ledger.entries(0)
    assert [next(slow)[0], next(followed)[0]] == [1, 1]
    ledger.trim(2)
    assert ledger.append([entry()]) == 7
    assert [position for position, _ in slow] == [2, 3, 4, 5, 6, 7]
    ledger.trim(6)
    with pytest.raises(DamagedIndexError, match="up to position 6 are trimmed, 3 is asked for"):
        list(followed)


def test_answers_are_kept_a_day_and_survive_trimming(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append([entry(key="a"), entry(), entry(key="ключ")], now=NOW)
        ledger.trim(3, now=NOW)
    with Ledger.open(path) as ledger:
        assert ledger.answer_of("a", NOW + KEPT_SECONDS - 1) == StoredAnswer(DIGEST, '"a"', 1)
        assert ledger.answer_of("ключ", NOW + 1) == StoredAnswer(DIGEST, '"ключ"', 3)
        assert ledger.answer_of("b", NOW) is None
        assert ledger.answer_of("a", NOW + KEPT_SECONDS) is None
        # The next day the key is new, and the other one is forgotten.
        ledger.append([entry(key="a")], now=NOW + KEPT_SECONDS)
        assert ledger.answer_of("a", NOW + KEPT_SECONDS) == StoredAnswer(DIGEST, '"a"', 4)
        assert ledger.answer_of("ключ", NOW) is None


@pytest.mark.parametrize("by", ["append", "trim"])
def test_old_answers_leave_the_file(ledger: Ledger, path: Path, by: str) -> None:
    ledger.append([entry(key=f"k{number}") for number in range(1500)], now=NOW)
    later = NOW + KEPT_SECONDS + 1
    if by == "trim":
        ledger.trim(0, now=later)
        assert answers(path) == 0
    else:
        ledger.append([entry()], now=later)
        assert answers(path) == 500  # a thousand at a time
        ledger.append([entry()], now=later)
        assert answers(path) == 0


def test_answers_up_to_a_position_are_forgotten(ledger: Ledger, path: Path) -> None:
    ledger.append([entry(key=f"k{number}") for number in range(2500)], now=NOW)
    ledger.forget_answers(2499)
    assert answers(path) == 1
    assert ledger.answer_of("k2498", NOW) is None
    assert ledger.answer_of("k2499", NOW) == StoredAnswer(DIGEST, '"k2499"', 2500)


def answers(path: Path) -> int:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM answer").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("step", [-3 * KEPT_SECONDS, -600, 3 * KEPT_SECONDS])
def test_answers_are_kept_a_day_whatever_the_clock_is_set_to(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    clock = {"time": NOW, "monotonic": 5.0}
    monkeypatch.setattr("tercet.index.ledger.clock.time.time", lambda: clock["time"])
    monkeypatch.setattr("tercet.index.ledger.clock.time.monotonic", lambda: clock["monotonic"])
    with Ledger.open(path) as ledger:
        ledger.append([entry(key="a")])
        clock["time"] += step
        clock["monotonic"] += KEPT_SECONDS - 1
        assert ledger.answer_of("a") == StoredAnswer(DIGEST, '"a"', 1)
        clock["monotonic"] += 1
        assert ledger.answer_of("a") is None
        clock["time"] -= 600  # between the look and the append
        assert ledger.append([entry(), entry(key="a")]) == 3
        assert ledger.answer_of("a") == StoredAnswer(DIGEST, '"a"', 3)


def test_a_clock_that_is_behind_at_the_opening_goes_on_from_the_last_answer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"time": NOW, "monotonic": 5.0}
    monkeypatch.setattr("tercet.index.ledger.clock.time.time", lambda: clock["time"])
    monkeypatch.setattr("tercet.index.ledger.clock.time.monotonic", lambda: clock["monotonic"])
    with Ledger.open(path) as ledger:
        ledger.append([entry(key="a")])
    clock.update(time=0.0, monotonic=0.0)  # a machine without a clock of its own has started
    with Ledger.open(path) as ledger:
        ledger.append([entry(key="b")])
        clock["monotonic"] += KEPT_SECONDS
        ledger.append([entry(key="a"), entry(key="b")])
        assert answers(path) == 2


def test_a_key_in_use_changes_nothing(ledger: Ledger) -> None:
    ledger.append([entry(b"a", key="a")], now=NOW)
    with pytest.raises(ValueError, match="'a' is in use by position 1"):
        ledger.append([entry(b"b"), entry(b"c", key="a")], now=NOW)
    with pytest.raises(ValueError, match="'b' is in use by position 2"):
        ledger.append([entry(key="b"), entry(key="b")], now=NOW)
    assert [found.payload for _, found in ledger.entries(0)] == [b"a"]
    assert ledger.answer_of("b", NOW) is None
    assert ledger.append([entry()]) == 2


@pytest.mark.parametrize(
    ("key", "message"), [("", "0 bytes"), ("é" * 128, "256 bytes"), ("\ud800", "lone surrogate")]
)
def test_keys_have_limits(key: str, message: str) -> None:
    with pytest.raises(InvalidDocumentError, match=message):
        IdempotencyKey(key, DIGEST, "{}")
    IdempotencyKey("é" * 127, DIGEST, "{}")
    with pytest.raises(ValueError, match="64 hexadecimal"):
        IdempotencyKey("a", "0", "{}")


def test_a_payload_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tercet.index.ledger.records.PAYLOAD_BYTES", 10)
    LedgerEntry("put", bytes(10))
    with pytest.raises(InvalidDocumentError, match=r"takes 11 bytes .* the limit is 10: write fewer"):
        LedgerEntry("put", bytes(11))


def test_space_is_used_again_and_the_log_stays_small(ledger: Ledger, path: Path) -> None:
    largest_log = 0
    for number in range(1, 61):  # 60 MB in all, of which 10 MB are kept
        ledger.append([entry(os.urandom(1_000_000))])
        ledger.trim(number - 10)
        largest_log = max(largest_log, log_of(path).stat().st_size)
    assert ledger.total_bytes < 25_000_000
    assert largest_log < 2 * LOG_PAGES * PAGE_BYTES + 2_000_000
    ledger.check()


def test_a_slow_reader_does_not_hold_the_log(ledger: Ledger, path: Path) -> None:
    ledger.append([entry(bytes(3_000_000)) for _ in range(4)])
    slow = ledger.entries(0)
    next(slow)
    for _ in range(30):
        ledger.append([entry(bytes(1_000_000))])
    # The first appends brought 12 MB into the log at once.
    assert log_of(path).stat().st_size < 12_000_000 + 2 * LOG_PAGES * PAGE_BYTES
    assert len(list(slow)) == 33


def test_space_beyond_the_spare_is_given_back(path: Path) -> None:
    with Ledger(path, spare_bytes=2_000_000) as ledger:
        for number in range(30):
            ledger.append([entry(bytes([number]) * 1_000_000)])
        assert path.stat().st_size > 20_000_000
        ledger.trim(29)
        assert path.stat().st_size < 5_000_000
        assert [found.payload[:1] for _, found in ledger.entries(29)] == [bytes([29])]
        ledger.check()


def test_a_trim_goes_in_bounded_steps(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "STEP_BYTES", 250)
    ledger.append([entry(bytes(100)) for _ in range(10)])
    lengths: list[int] = []
    step = Ledger._remove_step

    def counted(self: Ledger) -> bool:
        found = step(self)
        lengths.append(self._row("SELECT count(*) FROM entry")[0])
        return found

    monkeypatch.setattr(Ledger, "_remove_step", counted)
    ledger.trim(8)
    assert lengths == [7, 4, 2, 2]


def test_a_trim_that_was_cut_short_is_taken_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(path) as ledger:
        ledger.append([entry() for _ in range(5)])
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "_remove_step", lambda _: False)
            ledger.trim(3)
    with Ledger.open(path) as ledger:
        assert (kept(ledger), [position for position, _ in ledger.entries(3)]) == (2, [4, 5])
        ledger.trim(3)
        assert ledger._row("SELECT count(*) FROM entry") == (2,)


def test_appends_of_threads_each_get_their_positions(ledger: Ledger) -> None:
    def appending(name: str) -> None:
        for _ in range(10):
            last = ledger.append([LedgerEntry(name, b""), LedgerEntry(name, b"")])
            seen.append((last, name))

    seen: list[tuple[int, str]] = []
    threads = [threading.Thread(target=appending, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {position: each.kind for position, each in ledger.entries(0)}
    assert sorted(found) == list(range(1, 81))
    assert all(found[last] == found[last - 1] == name for last, name in seen)


def test_iteration_holds_a_few_entries_at_a_time(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.append([entry(bytes(1_000_000)) for _ in range(5)])
    tracemalloc.start()
    try:
        count = sum(1 for _ in ledger.entries(0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 50
    assert peak < 12_000_000


def test_a_reader_in_another_process_changes_nothing(ledger: Ledger, path: Path, repository: Path) -> None:
    ledger.append([entry(), entry(), entry()])
    ledger.trim(1)
    before = digests(path)
    assert run(repository, "stats", path) == [["3", "2", "2"]]
    assert digests(path) == before
    ledger.append([entry()])
    assert run(repository, "stats", path) == [["4", "3", "3"]]
    with LedgerReader.open(path) as reader, pytest.raises(StorageError, match="readonly"):
        reader._row("UPDATE state SET trimmed = 9")


def digests(path: Path) -> list[str]:
    """Of the file and its log, read by another process: see the class about descriptors."""
    files = [str(path), str(log_of(path))]
    return subprocess.run(["sha256sum", *files], capture_output=True, check=True, text=True).stdout.split()


def test_opening_to_read_needs_a_ledger(path: Path) -> None:
    with pytest.raises(DamagedIndexError, match="is missing"):
        LedgerReader.open(path)
    assert not path.exists()


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "is not a ledger; restore it"),
        (lambda content: b"not a database" * 1000, "damaged"),
        (lambda content: content[:68] + b"OTHR" + content[72:], "is not a ledger; restore it"),
        (
            lambda content: content[:60] + b"\0\0\0\2" + content[64:],
            "version 2, and this program reads version 1",
        ),
    ],
)
def test_another_file_is_refused(path: Path, change: Callable[[bytes], bytes], message: str) -> None:
    Ledger.open(path).close()
    path.write_bytes(change(path.read_bytes()))
    content = path.read_bytes()
    for kind in (Ledger, LedgerReader):
        with pytest.raises(DamagedIndexError, match=rf"ledger\.sqlite.*{message}"):
            kind.open(path)
    assert path.read_bytes() == content


def test_a_lost_file_beside_its_log_is_damage(path: Path, repository: Path) -> None:
    run(repository, "append", path, 0, 3)
    path.unlink()
    with pytest.raises(DamagedIndexError, match=r"ledger\.sqlite-wal beside it holds what was written"):
        Ledger.open(path)
    log_of(path).unlink()
    Ledger.open(path).close()


def test_creation_that_was_cut_short_begins_again(path: Path) -> None:
    path.with_name(".ledger.sqlite.new").write_bytes(b"a part")
    with Ledger.open(path) as ledger:
        assert ledger.append([entry()]) == 1
    assert [found.name for found in path.parent.iterdir()] == ["ledger.sqlite"]


def test_a_flipped_bit_is_found(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append([entry(b"first"), entry(b"N" * 20_000), entry(b"last")])
    content = path.read_bytes()
    at = content.index(b"N" * 1000) + 500
    path.write_bytes(content[:at] + b"O" + content[at + 1 :])
    with LedgerReader.open(path) as reader:
        with pytest.raises(DamagedIndexError, match="position 2 does not have its checksum; restore"):
            reader.check()
        assert [position for position, _ in reader.entries(2)] == [3]


def test_a_missing_entry_is_found(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.append([entry(), entry(), entry()])
        ledger._row("DELETE FROM entry WHERE position = 2")
        with pytest.raises(DamagedIndexError, match="position 2 is missing"):
            ledger.check()


def test_a_held_file_is_busy(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        ledger._row("PRAGMA busy_timeout = 10")
        with pytest.raises(CollectionBusyError, match="held by another process"):
            ledger.append([entry()])
        holder.execute("ROLLBACK")
        assert ledger.append([entry()]) == 1
    finally:
        holder.close()


@pytest.mark.slow
def test_sigkill_loses_nothing_acknowledged(path: Path, repository: Path) -> None:
    numbers = np.random.default_rng()
    first, acknowledged = 0, list[int]()
    for _ in range(4):
        process = start(repository, "append", path, first, 100_000)
        assert process.stdout is not None
        said = [process.stdout.readline()]
        time.sleep(float(numbers.uniform(0, 0.5)))
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        acknowledged += [
            int(line.split()[0]) for line in said if line.endswith("\n") or len(line.split()) == 3
        ]
        with Ledger.open(path) as ledger:
            found = batches_of([each.kind for _, each in ledger.entries(0)])
            ledger.check()
        # At most one more than was said: forced, and killed before it was said.
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1
        acknowledged = found
        first = found[-1] + 1


@pytest.mark.slow
@pytest.mark.parametrize("garbled", [False, True])
def test_a_torn_end_of_the_log_keeps_all_before_it(
    path: Path, repository: Path, tmp_path: Path, garbled: bool
) -> None:
    said = [list(map(int, words)) for words in run(repository, "append", path, 0, 12)]
    ends = {number: size for number, _, size in said}
    log = log_of(path).read_bytes()
    assert ends[11] == len(log)
    for cut in range(len(log), ends[5], -1517):
        copy = tmp_path / f"at{cut}"
        copy.mkdir()
        shutil.copy(path, copy)
        torn = bytes(byte ^ 0x55 for byte in log[cut:]) if garbled else b""
        (copy / log_of(path).name).write_bytes(log[:cut] + torn)
        with Ledger.open(copy / path.name) as ledger:
            found = batches_of([each.kind for _, each in ledger.entries(0)])
            assert found == [number for number, end in ends.items() if end <= cut]
            assert ledger.append([entry()]) == kept(ledger)
            ledger.check()
