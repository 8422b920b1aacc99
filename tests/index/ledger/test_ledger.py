"""The ledger: whole batches, positions that only grow, answers kept for a day, and what faults leave."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from tercet.index.errors import CollectionBusyError, DamagedIndexError, InvalidDocumentError, StorageError
from tercet.index.ledger import ledger as ledger_module
from tercet.index.ledger.file import LOG_PAGES, PAGE_BYTES, log_of
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.reader import KEPT_SECONDS, LedgerReader
from tercet.index.ledger.records import IdempotencyKey, LedgerEntry, StoredAnswer

SCRIPT = Path(__file__).with_name("ledger_process.py")
NOW = 1_000_000.0
DIGEST = hashlib.sha256(b"request").hexdigest()


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
