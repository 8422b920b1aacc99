"""One run at a time in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.training.errors import RunStateError
from tercet.training.runs.lock import locked


def test_a_second_run_is_turned_away_until_the_first_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder, 0):
        with (
            pytest.raises(RunStateError, match="another run is writing there; wait for it"),
            locked(folder, 0),
        ):
            pytest.fail("two runs hold one folder")
        with locked(folder, 1):  # another process of the same run
            pass
    with locked(folder, 0):
        pass


def test_a_failed_run_gives_its_folder_back(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path, 0):
        raise ZeroDivisionError
    with locked(tmp_path, 0):
        pass
