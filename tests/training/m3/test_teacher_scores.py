"""Distillation from scores of training files against NumPy, and what it changes in a step and in a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError, TrainingDataError
from tercet.training.m3.finetune import Finetune
from tercet.training.m3.losses import TeacherScores, divergence, term_factors, total_loss, trained_sides
from tercet.training.run import finetuning
from tercet.training.runs.base import open_base
from tercet.training.settings.objective import DenseLosses, LossSettings

SettingsOf = Callable[[dict[str, Any]], Any]
Run = Callable[..., Any]
Matrix = npt.NDArray[np.float64]
SIDES = ("dense", "sparse", "colbert")
TAU, TEACHER_TAU = 0.5, 2.0
GENERATOR = np.random.default_rng(4)
# Three queries, five passages: two negatives are scored for query 0, one for query 1, none for query 2.
SCORES = {side: GENERATOR.normal(size=(3, 5)) for side in SIDES}
TEACHER = GENERATOR.normal(scale=4, size=(3, 5))
CANDIDATES = np.array([[1, 0, 0, 1, 1], [0, 1, 0, 0, 1], [0, 0, 1, 0, 0]], np.bool_)


def kl(student: Matrix, teacher: Matrix, student_tau: float, teacher_tau: float) -> float:
    """The mean over queries of KL between the softmaxes of their candidates, in plain NumPy."""
    total = 0.0
    for row in range(len(student)):
        chosen = CANDIDATES[row]
        p = np.exp(teacher[row, chosen] / teacher_tau)
        q = np.exp(student[row, chosen] / student_tau)
        p, q = p / p.sum(), q / q.sum()
        total += float((p * np.log(p / q)).sum())
    return total / len(student)


def taught(teacher: Matrix = TEACHER) -> TeacherScores:
    return TeacherScores(torch.tensor(teacher), torch.tensor(CANDIDATES))


def total(scores: dict[str, torch.Tensor], settings: LossSettings) -> tuple[torch.Tensor, dict[str, Any]]:
    settings = settings.model_copy(update={"temperature": TAU, "teacher_temperature": TEACHER_TAU})
    allowed = torch.ones(3, 5, dtype=torch.bool)
    return total_loss(scores, torch.tensor([0, 1, 2]), allowed, settings, taught())


def as_tensors() -> dict[str, torch.Tensor]:
    return {side: torch.tensor(scores, requires_grad=True) for side, scores in SCORES.items()}


@pytest.mark.parametrize("side", SIDES)
def test_the_divergence_is_that_of_numpy(side: str) -> None:
    found = divergence(torch.tensor(SCORES[side]), taught(), TAU, TEACHER_TAU)
    assert found.item() == pytest.approx(kl(SCORES[side], TEACHER, TAU, TEACHER_TAU), abs=1e-6)
    single = TeacherScores(torch.tensor(TEACHER, dtype=torch.float32), torch.tensor(CANDIDATES))
    in_float32 = divergence(torch.tensor(SCORES[side], dtype=torch.float32), single, TAU, TEACHER_TAU)
    assert in_float32.item() == pytest.approx(found.item(), abs=1e-6)


def test_the_divergence_by_hand() -> None:
    # Teacher 3/4 and 1/4, student 1/2 and 1/2.
    scores = torch.tensor([[np.log(3.0), 0.0]])
    both = TeacherScores(scores, torch.ones(1, 2, dtype=torch.bool))
    expected = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert divergence(torch.zeros(1, 2), both, 0.02, 1.0).item() == pytest.approx(expected)
    assert divergence(scores, both, 1.0, 1.0).item() == pytest.approx(0, abs=1e-7)


def test_the_gradient_equals_finite_differences_and_follows_the_teacher() -> None:
    student = torch.tensor(SCORES["dense"], requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: divergence(s, taught(), TAU, TEACHER_TAU), [student])
    gradients = []
    for teacher in (TEACHER, -TEACHER):
        (gradient,) = torch.autograd.grad(divergence(student, taught(teacher), TAU, TEACHER_TAU), student)
        assert gradient[~torch.tensor(CANDIDATES)].abs().max() == 0
        assert gradient[2].abs().max() == 0  # the only candidate of query 2 is its positive
        gradients.append(gradient)
    assert (gradients[0] - gradients[1])[:2].abs().max() > 1e-3


@pytest.mark.parametrize("form", ["first", "revised"])
def test_each_side_and_the_sum_have_the_factor_of_their_own_loss(form: Any) -> None:
    plain, before = total(as_tensors(), LossSettings(form=form))
    loss, terms = total(as_tensors(), LossSettings(form=form, teacher_scores=3.0))
    weights = {"first": (1, 1, 1), "revised": (1, 0.3, 1)}[form]
    factors = {"first": (1, 1, 1, 0), "revised": (1 / 8, 0.1 / 8, 1 / 8, 1 / 8)}[form]
    summed = sum(weight * SCORES[side] for weight, side in zip(weights, SIDES, strict=True))
    divergences = [kl(scores, TEACHER, TAU, TEACHER_TAU) for scores in (*SCORES.values(), summed)]
    added = sum(3 * factor * term for factor, term in zip(factors, divergences, strict=True))
    assert (loss - plain).item() == pytest.approx(added, abs=1e-6)
    assert set(terms) - set(before) == {
        f"teacher_{name}" for name, factor in zip((*SIDES, "sum"), factors, strict=True) if factor
    }


def test_a_side_may_learn_from_the_teacher_alone() -> None:
    settings = LossSettings(
        distill=False, dense=0.0, sparse=0.0, colbert=0.0, teacher_scores=2.0, teacher_dense=0.5
    )
    assert term_factors(settings) == {"teacher_dense": 1.0}
    assert trained_sides(settings) == ("dense",)
    assert trained_sides(settings.model_copy(update={"teacher_sum": 1.0})) == SIDES
    dense = LossSettings.of_dense_alone(DenseLosses(teacher_scores=0.5))
    assert term_factors(dense) == {"dense": 1.0, "teacher_dense": 0.5}


def test_self_distillation_begins_at_its_step() -> None:
    for form in ("first", "revised"):
        settings = LossSettings(form=form, distill_start_step=3)
        without = term_factors(LossSettings(form=form, distill=False))
        assert term_factors(settings.at(0)) == term_factors(settings.at(2)) == without
        assert term_factors(settings.at(3)) == term_factors(LossSettings(form=form))
        assert trained_sides(settings.at(0)) == SIDES


def write_scored(folder: Path, every: int, sign: int = 1) -> None:
    """Gives each line two negatives and every so-manieth line scores."""
    path = folder / "data" / "pairs.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["neg"] = [lines[(number + step) % len(lines)]["pos"][0] for step in (7, 11)]
        line.pop("pos_scores", None), line.pop("neg_scores", None)
        if number % every == 0:
            line |= {"pos_scores": [5.0 * sign], "neg_scores": [2.0 * sign, -3.0]}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def step_of(settings: Any, tmp_path: Path, name: str, step: int = 0) -> tuple[dict[str, float], torch.Tensor]:
    """Losses of a step without dropout, and the gradient of the projection of token vectors."""
    work = tmp_path / name
    (work / "tokens-0").mkdir(parents=True)
    torch.manual_seed(3)
    base = open_base(settings, work, "cpu", Ranks())
    stage, _ = finetuning(settings, base, tmp_path / "data", work, "cpu", Ranks(), None)
    assert isinstance(stage, Finetune)
    base.model.eval()
    losses = stage.accumulate(step, lambda loss: loss).losses
    gradient = base.model.heads.colbert.weight.grad
    assert gradient is not None
    return {name: float(loss) for name, loss in losses.items()}, gradient


def test_scores_of_the_file_change_what_a_step_learns(settings_of: SettingsOf, tmp_path: Path) -> None:
    settings = settings_of({"losses.teacher_scores": 1.0})
    write_scored(tmp_path, 1)
    losses, gradient = step_of(settings, tmp_path, "scored")
    write_scored(tmp_path, 1, sign=-1)
    other, changed = step_of(settings, tmp_path, "changed")
    for side in SIDES:
        assert losses[f"teacher_{side}"] > 0
        assert losses[side] == other[side]
        assert losses[f"teacher_{side}"] != other[f"teacher_{side}"]
    assert (gradient - changed).abs().max() > 1e-4
    write_scored(tmp_path, 2)
    mixed, _ = step_of(settings, tmp_path, "mixed")
    assert 0 < mixed["teacher_colbert"] < losses["teacher_colbert"]
    ignored, _ = step_of(settings_of({"losses.teacher_scores": 0.0}), tmp_path, "ignored")
    assert not any(name.startswith("teacher_") for name in ignored)
    cached, again = step_of(
        settings_of({"losses.teacher_scores": 1.0, "batches.gradient_cache": True}), tmp_path, "cached"
    )
    assert cached["teacher_colbert"] == pytest.approx(mixed["teacher_colbert"], abs=1e-6)
    assert again.abs().max() > 0


def test_what_cannot_be_learned_from_is_refused(settings_of: SettingsOf, run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"batches\.negatives: it is 0, but must be at least 1"):
        settings_of({"losses.teacher_scores": 1.0, "batches.negatives": 0})
    with pytest.raises(TrainingDataError, match="no line has neg_scores"):
        run("none", {"losses.teacher_scores": 1.0})
    write_scored(tmp_path, 1)
    with pytest.raises(TrainingDataError, match=r'pairs\.jsonl:1: "pos_scores" is not used'):
        run("unused", {})
    sides = {"losses.dense": 0.0, "losses.sparse": 0.0, "losses.colbert": 0.0, "losses.teacher_scores": 0.0}
    with pytest.raises(ConfigError, match="nothing before distill_start_step"):
        run("idle", {**sides, "losses.distill_start_step": 2})


def test_a_run_distils_from_its_step_on(run: Run, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    run("out", {"losses.distill_start_step": 2, "optimization.steps": 4}, lines.append)
    distils = ["distill_dense" in line["losses"] for line in lines if "losses" in line]
    assert distils == [False, False, True, True]
    assert all(set(SIDES) <= set(line["losses"]) for line in lines if "losses" in line)
