"""The saved state: whole or absent, and refused where it does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tercet.training.distributed import Ranks
from tercet.training.errors import RunStateError
from tercet.training.runs.state import (
    STATE_FILE,
    Progress,
    load_state,
    put_weights,
    read_tensors,
    save_state,
    write_tensors,
)

ALONE = Ranks()


class Training:
    """A small model with AdamW after two steps."""

    def __init__(self, width: int = 3, seed: int = 1) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(width, 2), nn.Dropout(0.5), nn.Linear(2, 1))
        self.trained = dict(self.model.named_parameters())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)

    def step(self) -> float:
        loss = self.model(torch.randn(4, self.model[0].in_features)).square().sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def save(self, folder: Path, progress: Progress) -> None:
        save_state(folder, progress, self.trained, self.optimizer, self.scaler, ALONE)

    def load(self, folder: Path, ranks: Ranks = ALONE) -> Progress:
        return load_state(folder, self.trained, self.optimizer, self.scaler, ranks)


def test_what_follows_is_the_same_to_the_last_bit(tmp_path: Path) -> None:
    first = Training()
    first.step()
    first.save(tmp_path, Progress(7, 0.5, 4))
    expected = [first.step() for _ in range(5)]
    again = Training(seed=99)
    assert again.load(tmp_path) == Progress(7, 0.5, 4)
    assert [again.step() for _ in range(5)] == expected


def test_nothing_saved_is_the_beginning(tmp_path: Path) -> None:
    assert Training().load(tmp_path) == Progress(0, None, 0)


def test_each_process_gets_its_own_random_numbers_back(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, Progress(1))
    values = read_tensors(tmp_path / STATE_FILE)
    states, expected = [], []
    for seed in range(2):
        torch.manual_seed(seed)
        states.append(torch.get_rng_state())
        expected.append(torch.rand(3))
    write_tensors(tmp_path / STATE_FILE, {**values, "random": torch.stack(states)})
    for rank in range(2):
        training.load(tmp_path, Ranks(rank, 2))
        assert torch.equal(torch.rand(3), expected[rank])


def test_a_failed_write_leaves_the_former_state(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, Progress(1))
    with pytest.raises(Exception, match="pickle"):
        write_tensors(tmp_path / STATE_FILE, {"weights": lambda: None})
    assert training.load(tmp_path) == Progress(1)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no state at all"])
def test_a_damaged_state_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE_FILE).write_bytes(content)
    with pytest.raises(RunStateError, match=r"state\.pt: .*; remove it to begin again"):
        Training().load(tmp_path)


def test_half_a_state_is_named(tmp_path: Path) -> None:
    Training().save(tmp_path, Progress(1))
    whole = (tmp_path / STATE_FILE).read_bytes()
    (tmp_path / STATE_FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunStateError, match="cannot be read"):
        Training().load(tmp_path)


def test_a_state_of_another_model_is_refused(tmp_path: Path) -> None:
    Training().save(tmp_path, Progress(1))
    with pytest.raises(RunStateError, match=r"0\.weight has shape \(2, 3\), not \(2, 4\)"):
        Training(width=4).load(tmp_path)
    other = Training()
    del other.trained["0.bias"]
    with pytest.raises(RunStateError, match=r"other parameters, such as 0\.bias"):
        other.load(tmp_path)


@pytest.mark.parametrize("missing", ["optimizer", "random", "step"])
def test_a_state_without_a_part_is_refused(tmp_path: Path, missing: str) -> None:
    training = Training()
    training.save(tmp_path, Progress(1))
    values: dict[str, Any] = read_tensors(tmp_path / STATE_FILE)
    del values[missing]
    write_tensors(tmp_path / STATE_FILE, values)
    with pytest.raises(RunStateError, match="does not fit this run"):
        training.load(tmp_path)


def test_a_state_runs_no_code(tmp_path: Path) -> None:
    torch.save({"step": Path("/")}, tmp_path / STATE_FILE)
    with pytest.raises(RunStateError, match="holds no plain tensors; remove it"):
        Training().load(tmp_path)


def test_weights_go_where_their_names_say() -> None:
    training = Training()
    weights = {name: torch.full_like(weight, 2.0) for name, weight in training.trained.items()}
    put_weights(training.trained, weights, Path("best.pt"))
    assert all((weight == 2.0).all() for weight in training.model.parameters())
