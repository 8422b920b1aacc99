"""Losses against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from training.frozen.config import LossSettings
from training.frozen.losses import contrastive_loss, distillation_loss, total_loss
from training.scores import ThreeScores

ALL = torch.ones(2, 2, dtype=torch.bool)


def test_contrastive_loss_of_two_queries() -> None:
    # At temperature 1: row 0 has softmax e²/(e² + e¹) at its own place, row 1 has ½.
    scores = torch.tensor([[2.0, 1.0], [3.0, 3.0]])
    expected = (math.log(1 + math.exp(-1)) + math.log(2)) / 2
    assert contrastive_loss(scores, ALL, 1.0).item() == pytest.approx(expected)


def test_temperature_divides_the_scores() -> None:
    scores = torch.tensor([[0.02, 0.0], [0.0, 0.02]])
    assert contrastive_loss(scores, ALL, 0.02).item() == pytest.approx(math.log(1 + math.exp(-1)))


def test_another_positive_is_no_negative() -> None:
    scores = torch.tensor([[0.0, 9.0], [0.0, 5.0]])
    allowed = torch.tensor([[True, False], [True, True]])
    assert contrastive_loss(scores, allowed, 1.0).item() == pytest.approx(math.log(1 + math.exp(-5)) / 2)


def test_distillation_is_the_cross_entropy_of_teacher_and_student() -> None:
    # Teacher ¼, ¾; student ½, ½ in one row, ¾, ¼ in the other.
    third = math.log(3)
    teacher = torch.tensor([[0.0, third], [0.0, third]])
    student = torch.tensor([[1.0, 1.0], [third, 0.0]])
    expected = (math.log(2) - (0.25 * math.log(0.75) + 0.75 * math.log(0.25))) / 2
    assert distillation_loss(student, teacher, ALL, 1.0).item() == pytest.approx(expected)


def test_the_teacher_gets_no_gradient() -> None:
    scores = torch.zeros(2, 2, requires_grad=True)
    student = torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    distillation_loss(student, scores, ALL, 1.0).backward()
    assert scores.grad is None
    assert student.grad is not None


def test_distillation_passes_over_what_is_not_allowed() -> None:
    allowed = torch.tensor([[True, False], [True, True]])
    one = torch.tensor([[0.0, 9.0], [0.0, 0.0]])
    loss = distillation_loss(one, one, allowed, 1.0)
    assert loss.item() == pytest.approx(math.log(2) / 2)


def test_total_weighs_every_term_by_its_setting() -> None:
    scores = ThreeScores(
        torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    )
    settings = LossSettings(1.0, sparse=1, colbert=10, sum=100, distill_sparse=1000, distill_colbert=10000)
    total, terms = total_loss(scores, ALL, settings)
    assert terms["sparse"] == pytest.approx(math.log(1 + math.exp(-1)))
    assert terms["colbert"] == pytest.approx(math.log(1 + math.exp(-2)))
    assert terms["sum"] == pytest.approx(math.log(1 + math.exp(-3)))
    assert total.item() == pytest.approx(
        terms["sparse"]
        + 10 * terms["colbert"]
        + 100 * terms["sum"]
        + 1000 * terms["distill_sparse"]
        + 10000 * terms["distill_colbert"],
        rel=1e-5,
    )
