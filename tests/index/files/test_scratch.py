"""Folders for what is needed only while it is worked on, and what is left of them."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tercet.index.files.scratch import scratch_folder

PROCESS = """
import sys
from tercet.index.files.scratch import {function}
{enter}
(folder / "large").write_bytes(bytes(1000))
print(folder, flush=True)
sys.stdin.readline()
"""
WITHIN = PROCESS.format(
    function="scratch_folder", enter="within = scratch_folder()\nfolder = within.__enter__()"
)
OF_PROCESS = PROCESS.format(function="process_scratch_folder", enter="folder = process_scratch_folder()")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def started(program: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder until it reads a line or dies, and that folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_empty_and_goes_with_the_context(temporary: Path) -> None:
    with scratch_folder() as folder, scratch_folder() as other:
        assert folder != other
        assert list(folder.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_and_that_of_a_living_one_stays(temporary: Path) -> None:
    mine = temporary / "tercet-mine"
    mine.mkdir()
    killed, left = started(WITHIN)
    living, held = started(WITHIN)
    with killed, living:
        killed.kill()
        killed.wait()
        assert left.is_dir()
        with scratch_folder():
            assert not left.parent.exists()
            assert (held / "large").is_file()
        living.kill()
    with scratch_folder():
        assert not held.parent.exists()
    assert list(temporary.iterdir()) == [mine]


def test_that_of_a_process_goes_with_it(temporary: Path) -> None:
    process, folder = started(OF_PROCESS)
    assert folder.is_dir()
    process.communicate("\n")
    assert list(temporary.iterdir()) == []
