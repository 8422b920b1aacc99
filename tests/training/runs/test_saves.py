"""Saves by steps, by time and by signal; a run that a signal stopped ends as one without a break."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

import tercet.training.runs.saves
from tercet.training.distributed import ALONE
from tercet.training.errors import RunStoppedError
from tercet.training.runs.log import UNDONE_FILE, read_log
from tercet.training.runs.saves import SaveTimes, stop_requests

SettingsOf = Callable[[dict[str, Any]], Any]
Run = Callable[..., Any]


def test_saves_by_steps_and_at_the_end(settings_of: SettingsOf) -> None:
    times = SaveTimes(settings_of({"save_steps": 3}), ALONE, lambda: False)
    assert [times.due(step, last=step == 7) for step in range(1, 8)] == [
        *[False, False, True],
        *[False, False, True],
        True,
    ]


def test_saves_by_time_since_the_last_save(settings_of: SettingsOf, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(tercet.training.runs.saves.time, "monotonic", lambda: now)
    times = SaveTimes(settings_of({"save_steps": 100, "save_minutes": 2.0}), ALONE, lambda: False)
    due = []
    for step in range(1, 7):
        now += 50.0
        due.append(times.due(step, last=False))
    assert due == [False, False, True, False, False, True]
    assert not times.stopping


def test_a_requested_stop_saves_but_after_the_last_step_changes_nothing(settings_of: SettingsOf) -> None:
    times = SaveTimes(settings_of({"save_steps": 100}), ALONE, lambda: True)
    assert times.due(1, last=False)
    assert times.stopping
    assert times.due(2, last=True)
    assert not times.stopping


def test_a_second_signal_acts_as_before() -> None:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        _require_two_signals()
    finally:
        signal.signal(signal.SIGINT, former)


def _require_two_signals() -> None:
    with stop_requests() as requested:
        assert not requested()
        signal.raise_signal(signal.SIGINT)
        assert requested()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_than_the_main_one_handles_no_signals() -> None:
    requests = []

    def watched() -> None:
        with stop_requests() as requested:
            requests.append(requested())

    thread = Thread(target=watched)
    thread.start()
    thread.join()
    assert requests == [False]


def parameters(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes() + (folder / "heads.safetensors").read_bytes()


def logged(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in read_log(folder / "run")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_stopped_by_a_signal_goes_on_to_the_same_parameters(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    changes = {"save_steps": 500, "evaluate_steps": 4, "mining": {"every_steps": 5, "last": 8}}
    run("whole", changes)

    def stop_at(step: int) -> Callable[[dict[str, Any]], None]:
        return lambda line: signal.raise_signal(number) if line["step"] == step and "losses" in line else None

    for step in (3, 6):
        with pytest.raises(RunStoppedError, match=f"stopped after step {step + 1} of 12, which is saved"):
            run("out", changes, stop_at(step))
        assert torch.load(tmp_path / "out" / "run" / "state.pt", weights_only=True)["step"] == step + 1
    run("out", changes)
    assert logged(tmp_path / "out") == logged(tmp_path / "whole")
    assert parameters(tmp_path / "out") == parameters(tmp_path / "whole")
    assert not (tmp_path / "out" / "run" / UNDONE_FILE).exists()
