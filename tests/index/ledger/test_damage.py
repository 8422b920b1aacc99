"""What is no ledger, or a damaged one, is refused; what was cut short is taken up."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.ledger.file import log_of
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.reader import LedgerReader
from tests.index.ledger.test_ledger import batches_of, entry, kept, run, start


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
