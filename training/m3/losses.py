"""The contrastive loss of each score and of their sum, and distillation from the sum or a teacher's scores.

Formulas: BGE-M3 (Chen et al. 2024, arXiv 2402.03216, section 3.3).
Letters in shapes: B queries, N passages of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from tercet.training.m3.encoded_texts import SIDES, EncodedTexts
from tercet.training.settings.objective import LossSettings
from tercet.training.transfer import on_device

SEARCH_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "first": {"dense": 1.0, "sparse": 1.0, "colbert": 1.0},
        "revised": {"dense": 1.0, "sparse": 0.3, "colbert": 1.0},
    }
)
"""Search weights in s_inter, by form."""
TERM_FACTORS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "first": {
            "dense": 1.0,
            "sparse": 1.0,
            "colbert": 1.0,
            "sum": 0.0,
            "distill_dense": 1 / 3,
            "distill_sparse": 1 / 3,
            "distill_colbert": 1 / 3,
        },
        "revised": {
            "dense": 1 / 8,
            "sparse": 0.1 / 8,
            "colbert": 1 / 8,
            "sum": 1 / 8,
            "distill_dense": 1 / 6,
            "distill_sparse": 0.1 / 6,
            "distill_colbert": 1 / 6,
        },
    }
)
"""Factor of each term in the total, by form."""


def search_weights(settings: LossSettings) -> dict[str, float]:
    """Search weights of the summed score, the teacher."""
    form = SEARCH_WEIGHTS[settings.form]
    return {side: given(getattr(settings, f"sum_{side}"), form[side]) for side in SIDES}


def term_factors(settings: LossSettings) -> dict[str, float]:
    """Factor of each term in the total. Terms of factor 0 are left out, and without distillation its terms.

    In the revised form the contrastive part then counts whole, since there is nothing to average it with.
    What is learned from the scores of training files stands beside each contrastive term, with its factor.
    """
    whole = 2.0 if settings.form == "revised" and not settings.distill else 1.0
    factors = {
        name: given(getattr(settings, name), whole * form)
        for name, form in TERM_FACTORS[settings.form].items()
        if settings.distill or not name.startswith("distill_")
    }
    for name in (*SIDES, "sum"):
        own = given(getattr(settings, f"teacher_{name}"), factors[name])
        factors[f"teacher_{name}"] = given(settings.teacher_scores, 0.0) * own
    return {name: factor for name, factor in factors.items() if factor != 0}


def trained_sides(settings: LossSettings) -> tuple[str, ...]:
    """The sides whose scores some term reads, itself or in the sum."""
    terms = set(term_factors(settings))
    reads_sum = any(name in ("sum", "teacher_sum") or name.startswith("distill_") for name in terms)
    summed = search_weights(settings) if reads_sum else {}
    own = {side: {side, f"distill_{side}", f"teacher_{side}"} for side in SIDES}
    return tuple(side for side in SIDES if own[side] & terms or summed.get(side, 0) != 0)


def given(value: float | None, otherwise: float) -> float:
    """The value, or the other where it is None."""
    return otherwise if value is None else value


def summed_scores(scores: Mapping[str, Tensor], settings: LossSettings) -> Tensor:
    """The sum of the sides' scores float32[B, N] with the search weights of the settings."""
    weights = search_weights(settings)
    return torch.stack([weights[side] * scores[side] for side in scores]).sum(dim=0)


@dataclass(frozen=True, slots=True)
class TeacherScores:
    """A teacher's scores float32[B, N] of each query's candidates, bool[B, N]: what its line scores.

    A query's own positive is always a candidate. Alone it is one of probability 1, from which nothing is
    learned.
    """

    scores: Tensor
    candidates: Tensor


def total_loss(
    scores: Mapping[str, Tensor],
    own: Tensor,
    allowed: Tensor,
    settings: LossSettings,
    teacher: TeacherScores | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The weighted sum of all terms, and each term without a graph.

    scores: float32[B, N] of each of `trained_sides`. own: int64[B] and allowed: bool[B, N], as in
    `contrastive_loss`. teacher: given where the settings have `teacher_scores`. Terms of factor 0 are not
    computed.
    """
    summed = summed_scores(scores, settings)
    sides = {**scores, "sum": summed}
    factors = term_factors(settings)
    terms: dict[str, Tensor] = {}
    for name in factors:
        if name.startswith("distill_"):
            student = sides[name.removeprefix("distill_")]
            temperature = given(settings.distill_temperature, settings.temperature)
            terms[name] = distillation_loss(student, summed, allowed, temperature)
        elif name.startswith("teacher_"):
            assert teacher is not None  # noqa: S101 - as the caller says
            student = sides[name.removeprefix("teacher_")]
            terms[name] = divergence(student, teacher, settings.temperature, settings.teacher_temperature)
        else:
            terms[name] = contrastive_loss(sides[name], own, allowed, settings.temperature)
    total = torch.stack([factor * terms[name] for name, factor in factors.items()]).sum()
    return total, {name: term.detach() for name, term in terms.items()}


def anchor_losses(texts: EncodedTexts, base: EncodedTexts) -> dict[str, Tensor]:
    """How far dense and token vectors are from those of the base, by the term's name in `LossSettings`.

    Each is the mean of one minus the cosine, over texts or over their token vectors.
    """
    counted = on_device(texts.vector_mask, texts.vectors.device)
    apart = (1 - (texts.vectors * base.vectors).sum(dim=-1)) * counted
    return {
        "anchor_dense": (1 - (texts.dense * base.dense).sum(dim=-1)).mean(),
        "anchor_colbert": apart.sum() / int(texts.vector_mask.sum()),
    }


def contrastive_loss(scores: Tensor, own: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """InfoNCE: −log softmax(s/τ) at each query's own passage, averaged over queries.

    scores float32[B, N]; own int64[B] is the column of each query's positive. allowed bool[B, N] is false for
    columns that are no negatives of that query (another of its positives).
    """
    logits = (scores / temperature).masked_fill(~allowed, float("-inf"))
    return torch.nn.functional.cross_entropy(logits, own)


def distillation_loss(
    student: Tensor,
    teacher: Tensor,
    allowed: Tensor,
    temperature: float,
    teacher_temperature: float | None = None,
) -> Tensor:
    """−Σ softmax(teacher/τ')·log softmax(student/τ), averaged over queries; the teacher gets no gradient.

    τ' is τ unless it is given. Shapes as in `contrastive_loss`.
    """
    targets = (
        (teacher.detach() / given(teacher_temperature, temperature))
        .masked_fill(~allowed, float("-inf"))
        .softmax(dim=1)
    )
    log_probabilities = (student / temperature).masked_fill(~allowed, float("-inf")).log_softmax(dim=1)
    return -(targets * log_probabilities.masked_fill(~allowed, 0.0)).sum(dim=1).mean()


def divergence(
    student: Tensor, teacher: TeacherScores, temperature: float, teacher_temperature: float
) -> Tensor:
    """KL(p‖q) = Σ p·(log p − log q) over each query's candidates, averaged over all queries of the batch.

    p = softmax(teacher/τ') and q = softmax(student/τ), both over the candidates alone: the query's positive
    and the negatives that the teacher scored. Source: distillation from a cross-encoder in RetroMAE (Liu and
    Shao 2022, arXiv 2205.12035, section 4.1), for every score as in M3 (arXiv 2402.03216, section 3.3).
    student: float32[B, N].
    """
    left_out = ~teacher.candidates
    log_p, log_q = (
        scores.masked_fill(left_out, float("-inf")).log_softmax(dim=1).masked_fill(left_out, 0.0)
        for scores in (teacher.scores.detach() / teacher_temperature, student / temperature)
    )
    p = log_p.exp().masked_fill(left_out, 0.0)
    return (p * (log_p - log_q)).sum(dim=1).mean()
