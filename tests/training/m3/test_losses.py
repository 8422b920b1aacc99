"""Each term against loops over plain numbers, and the totals of both published forms written out.

Formulas: BGE-M3 (Chen et al. 2024, arXiv 2402.03216, first and revised version).
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tercet.training.m3.losses import (
    contrastive_loss,
    distillation_loss,
    search_weights,
    total_loss,
    trained_sides,
)
from tercet.training.settings.objective import DenseLosses, LossSettings

TEMPERATURE = 0.5
# Two queries, three passages. Passage 2 is another positive of query 0.
DENSE = [[0.9, 0.1, 0.8], [0.2, 0.7, 0.4]]
SPARSE = [[0.3, 0.0, 0.1], [0.1, 0.2, 0.6]]
COLBERT = [[0.8, 0.5, 0.9], [0.3, 0.6, 0.1]]
OWN = [0, 1]
ALLOWED = [[True, True, False], [True, True, True]]


def probabilities(row: list[float], allowed: list[bool]) -> list[float]:
    powers = [math.exp(s / TEMPERATURE) if a else 0.0 for s, a in zip(row, allowed, strict=True)]
    return [power / sum(powers) for power in powers]


def info_nce(scores: list[list[float]]) -> float:
    rows = zip(scores, ALLOWED, OWN, strict=True)
    return sum(-math.log(probabilities(row, allowed)[own]) for row, allowed, own in rows) / len(scores)


def distilled(student: list[list[float]], teacher: list[list[float]]) -> float:
    total = 0.0
    for row, taught, allowed in zip(student, teacher, ALLOWED, strict=True):
        pairs = zip(probabilities(taught, allowed), probabilities(row, allowed), allowed, strict=True)
        total += sum(-p * math.log(q) for p, q, a in pairs if a)
    return total / len(student)


def summed(dense: float, sparse: float, colbert: float) -> list[list[float]]:
    return [
        [dense * d + sparse * s + colbert * c for d, s, c in zip(*rows, strict=True)]
        for rows in zip(DENSE, SPARSE, COLBERT, strict=True)
    ]


def scores() -> dict[str, torch.Tensor]:
    values = {"dense": DENSE, "sparse": SPARSE, "colbert": COLBERT}
    return {side: torch.tensor(rows, requires_grad=True) for side, rows in values.items()}


def total(
    settings: LossSettings, found: dict[str, torch.Tensor] | None = None
) -> tuple[torch.Tensor, dict[str, Any]]:
    settings = settings.model_copy(update={"temperature": TEMPERATURE})
    return total_loss(found or scores(), torch.tensor(OWN), torch.tensor(ALLOWED), settings)


@pytest.mark.parametrize("side", [DENSE, SPARSE, COLBERT])
def test_info_nce(side: list[list[float]]) -> None:
    loss = contrastive_loss(torch.tensor(side), torch.tensor(OWN), torch.tensor(ALLOWED), TEMPERATURE)
    assert loss.item() == pytest.approx(info_nce(side), abs=1e-6)


def test_one_query_by_hand() -> None:
    # Both passages score the same, so each has probability 1/2.
    scores = torch.tensor([[0.3, 0.3]])
    both = torch.tensor([[True, True]])
    assert contrastive_loss(scores, torch.tensor([0]), both, 0.02).item() == pytest.approx(math.log(2))
    # Teacher 3/4 and 1/4, student 1/2 and 1/2: −(3/4 + 1/4)·ln(1/2).
    teacher = torch.tensor([[0.02 * math.log(3), 0.0]])
    assert distillation_loss(scores, teacher, both, 0.02).item() == pytest.approx(math.log(2))
    # And the other way: −(1/2·ln(3/4) + 1/2·ln(1/4)).
    expected = -0.5 * (math.log(0.75) + math.log(0.25))
    assert distillation_loss(teacher, scores, both, 0.02).item() == pytest.approx(expected)


@pytest.mark.parametrize("side", [DENSE, SPARSE, COLBERT])
def test_distillation(side: list[list[float]]) -> None:
    teacher = summed(1, 0.3, 1)
    loss = distillation_loss(torch.tensor(side), torch.tensor(teacher), torch.tensor(ALLOWED), TEMPERATURE)
    assert loss.item() == pytest.approx(distilled(side, teacher), abs=1e-6)


def test_the_first_form_written_out() -> None:
    loss, terms = total(LossSettings(form="first"))
    teacher = summed(1, 1, 1)
    contrastive = info_nce(DENSE) + info_nce(SPARSE) + info_nce(COLBERT)
    distillation = (distilled(DENSE, teacher) + distilled(SPARSE, teacher) + distilled(COLBERT, teacher)) / 3
    assert loss.item() == pytest.approx(contrastive + distillation, abs=1e-6)
    assert sorted(terms) == [
        "colbert",
        "dense",
        "distill_colbert",
        "distill_dense",
        "distill_sparse",
        "sparse",
    ]
    assert terms["distill_sparse"].item() == pytest.approx(distilled(SPARSE, teacher), abs=1e-6)
    assert not any(term.requires_grad for term in terms.values())


def test_a_softened_teacher() -> None:
    settings = LossSettings(sum_dense=1 / 3, sum_sparse=1 / 3, sum_colbert=1 / 3)
    soft, terms = total(settings.model_copy(update={"distill_temperature": 2.5 * TEMPERATURE}))
    columns, mask = torch.tensor(OWN), torch.tensor(ALLOWED)
    teacher = torch.tensor([[score / 3 for score in row] for row in summed(1, 1, 1)])
    for side, given in (("dense", DENSE), ("sparse", SPARSE), ("colbert", COLBERT)):
        expected = distillation_loss(torch.tensor(given), teacher, mask, 2.5 * TEMPERATURE)
        assert terms[f"distill_{side}"].item() == pytest.approx(expected.item(), abs=1e-6)
        alone = contrastive_loss(torch.tensor(given), columns, mask, TEMPERATURE)
        assert terms[side].item() == pytest.approx(alone.item(), abs=1e-6)
    assert soft.item() != pytest.approx(total(settings)[0].item(), abs=1e-3)


def test_the_revised_form_written_out() -> None:
    loss, terms = total(LossSettings(form="revised"))
    teacher = summed(1, 0.3, 1)
    contrastive = (info_nce(DENSE) + 0.1 * info_nce(SPARSE) + info_nce(COLBERT) + info_nce(teacher)) / 4
    distillation = (
        distilled(DENSE, teacher) + 0.1 * distilled(SPARSE, teacher) + distilled(COLBERT, teacher)
    ) / 3
    assert loss.item() == pytest.approx((contrastive + distillation) / 2, abs=1e-6)
    assert terms["sum"].item() == pytest.approx(info_nce(teacher), abs=1e-6)


def test_without_distillation_the_contrastive_part_counts_whole() -> None:
    first, terms = total(LossSettings(form="first", distill=False))
    assert first.item() == pytest.approx(info_nce(DENSE) + info_nce(SPARSE) + info_nce(COLBERT), abs=1e-6)
    assert sorted(terms) == ["colbert", "dense", "sparse"]
    revised, _ = total(LossSettings(form="revised", distill=False))
    teacher = summed(1, 0.3, 1)
    whole = (info_nce(DENSE) + 0.1 * info_nce(SPARSE) + info_nce(COLBERT) + info_nce(teacher)) / 4
    assert revised.item() == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("form", ["first", "revised"])
@pytest.mark.parametrize("distill", [True, False])
def test_a_given_weight_is_the_factor(form: Any, distill: bool) -> None:
    settings = LossSettings(form=form, distill=distill)
    before, terms = total(settings)
    after, again = total(settings.model_copy(update={"dense": 0.75}))
    assert terms["dense"] == again["dense"]
    other = {("first", True): 1.0, ("first", False): 1.0, ("revised", True): 1 / 8, ("revised", False): 1 / 4}
    change = (0.75 - other[form, distill]) * info_nce(DENSE)
    assert (after - before).item() == pytest.approx(change, abs=1e-6)


def test_weights_of_the_sum_are_overridden_one_by_one() -> None:
    assert search_weights(LossSettings(form="revised", sum_colbert=2.0)) == {
        "dense": 1.0,
        "sparse": 0.3,
        "colbert": 2.0,
    }
    _, terms = total(LossSettings(sum_sparse=0.0, sum=1.0))
    assert terms["sum"].item() == pytest.approx(info_nce(summed(1, 0, 1)), abs=1e-6)


def test_the_teacher_gets_no_gradient() -> None:
    student, teacher = (torch.tensor(side, requires_grad=True) for side in (DENSE, COLBERT))
    distillation_loss(student, teacher, torch.tensor(ALLOWED), TEMPERATURE).backward()
    assert teacher.grad is None
    assert student.grad is not None
    # The gradient of a row of −Σ p·log q is (q − p)/τ, and none flows to a passage that is not allowed.
    expected = [
        [(q - p) / TEMPERATURE / 2 for q, p in zip(probabilities(s, a), probabilities(t, a), strict=True)]
        for s, t, a in zip(DENSE, COLBERT, ALLOWED, strict=True)
    ]
    torch.testing.assert_close(student.grad, torch.tensor(expected))
    assert student.grad[0, 2] == 0


def test_the_dense_stage_needs_no_other_scores() -> None:
    settings = LossSettings.of_dense_alone(DenseLosses())
    assert trained_sides(settings) == ("dense",)
    loss, terms = total(settings, {"dense": torch.tensor(DENSE)})
    assert loss.item() == pytest.approx(info_nce(DENSE), abs=1e-6)
    assert list(terms) == ["dense"]


@pytest.mark.parametrize(
    ("settings", "sides"),
    [
        (LossSettings(), ("dense", "sparse", "colbert")),
        (LossSettings(distill=False, sparse=0.0), ("dense", "colbert")),
        (LossSettings(sum_sparse=0.0, sparse=0.0, distill_sparse=0.0), ("dense", "colbert")),
        # The teacher reads what no student learns.
        (
            LossSettings(dense=0.0, distill_dense=0.0, colbert=0.0, distill_colbert=0.0),
            ("dense", "sparse", "colbert"),
        ),
        (LossSettings(distill=False, dense=0.0, sparse=0.0, colbert=0.0), ()),
    ],
)
def test_sides_that_some_term_reads(settings: LossSettings, sides: tuple[str, ...]) -> None:
    assert trained_sides(settings) == sides


def test_the_gradient_equals_finite_differences() -> None:
    sides = [torch.tensor(side, dtype=torch.float64, requires_grad=True) for side in (DENSE, SPARSE, COLBERT)]

    def loss(*sides: torch.Tensor) -> torch.Tensor:
        settings = LossSettings(form="revised", distill=False)
        return total(settings, dict(zip(("dense", "sparse", "colbert"), sides, strict=True)))[0]

    assert torch.autograd.gradcheck(loss, sides)
