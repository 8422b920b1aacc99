"""The new rows learn, the others do not."""

from __future__ import annotations

import math

import torch

from training.multilingual.distil import cut, rate_at
from training.multilingual.distillation import ExtendedTable, translation_loss


def test_only_new_rows_learn() -> None:
    table = ExtendedTable(torch.arange(8.0).reshape(4, 2), fixed=2)
    ids = torch.tensor([[0, 3]])
    torch.testing.assert_close(table(ids), torch.tensor([[[0.0, 1.0], [6.0, 7.0]]]))
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    table(ids).sum().backward()
    optimizer.step()
    whole = table.whole()
    torch.testing.assert_close(whole[:3], torch.arange(6.0).reshape(3, 2))
    torch.testing.assert_close(whole[3], torch.tensor([5.9, 6.9]))


def test_the_loss_of_one_pair() -> None:
    """Cosine 0 with its own translation, 1 with another text: 4 · (1 − 0) + ln(1 + e^(1/τ))."""
    student, teacher = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    loss = translation_loss(student, teacher, torch.tensor([[1.0, 0.0]]), temperature=1.0)
    assert math.isclose(loss.item(), 4 + math.log(1 + math.e), rel_tol=1e-6)


def test_the_same_english_text_twice_is_no_wrong_answer() -> None:
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    loss = translation_loss(rows, rows, rows[:1], temperature=1.0)
    assert loss.item() == 0


def test_rate_and_length() -> None:
    assert rate_at(0, 1000) == 1 / 50
    assert rate_at(1000, 1000) < 0.0501
    assert cut([[1, 2, 3, 9], [1, 9]], 3) == [[1, 2, 9], [1, 9]]
