"""The gradient of the vocabulary's matrix is one product a step, and that of autograd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from tercet.training.distributed import Ranks
from tercet.training.pretraining.token_loss import linear_cross_entropy
from tercet.training.pretraining.vocabulary_gradient import VocabularyGradient
from tercet.training.run import pretraining
from tercet.training.runs.base import open_base

VOCABULARY, WIDTH = 40, 6
SIZES = (11, 0, 4, 7)
FACTORS = (1 / 7, 1.0, 0.5, 1 / 7)


class Products(TorchDispatchMode):
    """Counts the matrix products of a given shape."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        self.shape = shape
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in ("mm", "addmm", "addmm_") and tuple(found.shape) == self.shape:
            self.count += 1
        return found


def parts() -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """States and labels of four losses, one of them over nothing; weight and bias."""
    torch.manual_seed(3)
    given = [
        (torch.randn(size, WIDTH, requires_grad=True), torch.randint(VOCABULARY, (size,))) for size in SIZES
    ]
    return (
        given,
        torch.randn(VOCABULARY, WIDTH, requires_grad=True),
        torch.randn(VOCABULARY, requires_grad=True),
    )


@pytest.mark.parametrize(("waiting", "products"), [(None, 1), (11 * VOCABULARY, 2), (1, 4)])
def test_losses_one_after_another_give_the_gradient_of_their_sum(waiting: int | None, products: int) -> None:
    given, weight, bias = parts()
    full = sum(
        factor * functional.cross_entropy(states @ weight.T + bias, labels, reduction="sum")
        for (states, labels), factor in zip(given, FACTORS, strict=True)
    )
    expected = torch.autograd.grad(full, [weight, bias, *(states for states, _ in given)])
    gradient = VocabularyGradient(len(given), waiting)
    with Products((VOCABULARY, WIDTH)) as counted:
        for (states, labels), factor in zip(given, FACTORS, strict=True):
            assert weight.grad is None  # it comes with the last
            loss = linear_cross_entropy(states, weight, bias, labels, gradient=gradient)
            (factor * loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    # As many rows are multiplied together as may wait.
    assert counted.count == products
    found = [weight.grad, bias.grad, *(states.grad for states, _ in given)]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours is not None
        torch.testing.assert_close(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["mlm", "retromae", "condenser", "cocondenser"])
def test_a_step_forms_it_once_however_it_is_cut(
    settings_of: Callable[[dict[str, Any]], Any], tmp_path: Path, stage: str
) -> None:
    changes = {
        "stage": stage,
        "architecture": {"layers": 2, "width": 16, "attention_heads": 2, "intermediate": 32, "positions": 32},
        "data.sources": [{"path": "pairs.jsonl", "title": "P", "licence": "CC0 1.0", "format": "texts"}],
        "batches.sub_batch_tokens": 20,
        "losses": None,
        "heads": None,
        "batches.negatives": None,
        "data.query_tokens": None,
    }
    settings = settings_of(changes)
    (tmp_path / "tokens-0").mkdir()
    base = open_base(settings, tmp_path, "cpu", Ranks())
    trained, _, _ = pretraining(settings, base, tmp_path / "data", tmp_path, "cpu", Ranks())
    assert len(trained._batches.sub_batches(trained._batches.documents(0))) == 4  # type: ignore[attr-defined]
    words = base.model.body.get_input_embeddings().weight  # type: ignore[operator,union-attr]
    with Products((len(words), 16)) as counted:
        trained.accumulate(0, lambda loss: loss)
    assert counted.count == 1
    assert words.grad is not None
