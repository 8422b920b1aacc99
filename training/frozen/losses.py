"""The contrastive loss of each score and of their sum, and self-knowledge distillation from the sum.

Formulas: BGE-M3 (Chen et al. 2024, arXiv 2402.03216, section 3.3).
Letters in shapes: B queries, N passages of the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.frozen.config import LossSettings
from training.scores import ThreeScores


def total_loss(
    scores: ThreeScores, allowed: Tensor, settings: LossSettings
) -> tuple[Tensor, dict[str, float]]:
    """The weighted sum of all terms, and each term's value by its name in `LossSettings`.

    allowed: bool[B, N], as in `contrastive_loss`.
    """
    terms = {
        "sparse": contrastive_loss(scores.sparse, allowed, settings.temperature),
        "colbert": contrastive_loss(scores.colbert, allowed, settings.temperature),
        "sum": contrastive_loss(scores.sum, allowed, settings.temperature),
        "distill_sparse": distillation_loss(scores.sparse, scores.sum, allowed, settings.temperature),
        "distill_colbert": distillation_loss(scores.colbert, scores.sum, allowed, settings.temperature),
    }
    weights = {name: float(getattr(settings, name)) for name in terms}
    total = torch.stack([weights[name] * term for name, term in terms.items()]).sum()
    return total, {name: float(term.detach()) for name, term in terms.items()}


def contrastive_loss(scores: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """InfoNCE: −log softmax(s/τ) at each query's own passage, averaged.

    scores float32[B, N]; row i's own passage is column i. allowed bool[B, N] is false for columns that are
    no negatives of that query (another of its positives).
    """
    logits = (scores / temperature).masked_fill(~allowed, float("-inf"))
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(scores)))


def distillation_loss(student: Tensor, teacher: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """−Σ softmax(teacher/τ)·log softmax(student/τ), averaged over queries; the teacher gets no gradient.

    Shapes as in `contrastive_loss`.
    """
    targets = (teacher.detach() / temperature).masked_fill(~allowed, float("-inf")).softmax(dim=1)
    log_probabilities = (student / temperature).masked_fill(~allowed, float("-inf")).log_softmax(dim=1)
    return -(targets * log_probabilities.masked_fill(~allowed, 0.0)).sum(dim=1).mean()
