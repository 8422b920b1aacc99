"""Kill and resume: what follows a saved state is the same to the last bit as without the kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from tercet.training.errors import TrainingError
from tercet.training.run import run_training
from tercet.training.runs.log import read_log
from tercet.training.settings.reading import read_settings

STEPS = 24
# A run killed after step 17 goes on from 15, or a later step where the kill comes late, and 50 steps and more
# follow.
LONG_STEPS = 100
DEADLINE_SECONDS = 240


@pytest.fixture
def command(tmp_path: Path, base_folder: Path, run_values: dict[str, Any]) -> list[str]:
    """`tercet train` of the tiny settings with mining, and dropout as the base has it."""
    values = deepcopy(run_values)
    base = {"name": "tiny", "licence": "Apache-2.0", "checkpoint": str(base_folder)}
    values["base"] = base
    values["optimization"]["steps"] = STEPS
    values["mining"] = {"every_steps": 7, "last": 8}
    values["evaluate_steps"] = values["save_steps"] = 5
    assert json.loads((base_folder / "config.json").read_text())["hidden_dropout_prob"] > 0
    config = tmp_path / "run.json"
    config.write_text(json.dumps(values))
    return [
        *["-m", "tercet.cli.main", "train"],
        str(config),
        "--data",
        str(tmp_path / "data"),
        "--threads",
        "1",
    ]


def started(command: list[str], output: Path) -> subprocess.Popen[bytes]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *command, "--output", str(output), "--json"],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(config: Path, output: Path) -> None:
    """The same run in this process, from its beginning or from where another was killed."""
    settings = read_settings(config)
    run_training(settings, config.parent / "data", output, lambda _: None, threads=1)


def kill_after(command: list[str], output: Path, step: int) -> None:
    """Runs until the line of a step appears, and kills the process without notice, some steps later where
    this one has to wait for a core.
    """
    process = started(command, output)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["step"] >= step:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == -signal.SIGKILL


def kept(folder: Path) -> list[dict[str, Any]]:
    """The log without what a clock measured."""
    return [{k: v for k, v in line.items() if k != "seconds"} for line in read_log(folder / "run")]


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_losses_to_the_last_bit(
    tmp_path: Path, command: list[str]
) -> None:
    config = tmp_path / "run.json"
    values = json.loads(config.read_text())
    config.write_text(json.dumps({**values, "optimization": {**values["optimization"], "steps": LONG_STEPS}}))
    finish(config, tmp_path / "whole")
    whole = kept(tmp_path / "whole")
    assert [line["step"] for line in whole if "losses" in line] == list(range(1, LONG_STEPS + 1))

    broken = tmp_path / "broken"
    kill_after(command, broken, 9)  # after step 5 was saved, and negatives mined at step 7
    assert torch.load(broken / "run" / "state.pt", weights_only=True)["step"] in range(5, LONG_STEPS, 5)
    with (broken / "run" / "log.jsonl").open("a") as log:
        log.write('{"step": 9, "lo')  # a kill may cut a line off
    kill_after(command, broken, 17)
    assert LONG_STEPS - torch.load(broken / "run" / "state.pt", weights_only=True)["step"] >= 50
    # A kill while the state is written leaves the former one beside the beginning of the new one.
    (broken / "run" / "state.pt.writing").write_bytes(b"PK\x03\x04 cut off")
    finish(config, broken)

    assert kept(broken) == whole
    for name in ("model.safetensors", "heads.safetensors"):
        assert (broken / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_kill_while_states_are_written_all_the_time(
    tmp_path: Path, command: list[str], run_values: dict[str, Any]
) -> None:
    config = tmp_path / "run.json"
    values = json.loads(config.read_text())
    config.write_text(json.dumps({**values, "save_steps": 1, "evaluate_steps": STEPS}))
    output = tmp_path / "out"
    for step in (3, 8):
        kill_after(command, output, step)
        state = torch.load(output / "run" / "state.pt", weights_only=True)
        assert state["step"] >= step - 1
    finish(config, output)
    assert [line["step"] for line in kept(output) if "losses" in line] == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_two_processes_of_torchrun_make_one_run(tmp_path: Path, command: list[str]) -> None:
    output = tmp_path / "out"
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    torchrun = [*["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], *command]

    result = subprocess.run(
        [sys.executable, *torchrun, "--output", str(output)],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Wrote ") == 1
    assert "Writing model shards" not in result.stderr
    lines = kept(output)
    assert [line["step"] for line in lines if "losses" in line] == list(range(1, STEPS + 1))
    figures = [line["development"]["Made pairs"]["sum"] for line in lines if "development" in line]
    assert len(figures) == 6
    assert max(figures) > figures[0]
    assert (output / "heads.safetensors").is_file()
    # Another number of processes is another run.
    with pytest.raises(TrainingError, match=r"a run with other processes \(2, now 1\) was begun there"):
        finish(tmp_path / "run.json", output)
