"""Scores of a batch against plain loops, and gradients against those of the written-out formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tercet.models.representations import Bool
from tercet.training.m3 import max_sim
from tercet.training.m3.scores import colbert_scores, dense_scores, lexical_scores


def test_dense_scores_are_inner_products() -> None:
    queries = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    passages = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.8, 0.6]])
    expected = torch.tensor([[0.0, 1.0, 0.8], [0.8, 0.6, 0.96]])
    torch.testing.assert_close(dense_scores(queries, passages), expected)


def test_lexical_score_takes_the_largest_weight_of_a_repeated_token() -> None:
    # Query: token 7 weighs 2 and 3, token 9 weighs 1. Passage: token 7 weighs 0.5, token 8 weighs 4.
    query_ids, query_weights = np.array([[7, 9, 7]]), torch.tensor([[2.0, 1.0, 3.0]])
    passage_ids = np.array([[7, 8, 0], [9, 9, 7]])
    passage_weights = torch.tensor([[0.5, 4.0, 0.0], [0.2, 0.1, 1.0]])
    scores = lexical_scores(query_weights, query_ids, passage_weights, passage_ids)
    torch.testing.assert_close(scores, torch.tensor([[3 * 0.5, 1 * 0.2 + 3 * 1.0]]))


def test_padding_with_an_id_of_the_query_adds_nothing() -> None:
    scores = lexical_scores(
        torch.tensor([[1.0, 0.0]]), np.array([[5, 0]]), torch.tensor([[0.0, 0.0]]), np.array([[0, 0]])
    )
    assert scores.item() == 0.0


Ragged = tuple[torch.Tensor, Bool, torch.Tensor, Bool]


@pytest.fixture(params=["padding", "inside"])
def ragged(
    request: pytest.FixtureRequest,
) -> Ragged:
    """Masks of padding, and with MCLS of tokens inside a text, too."""
    torch.manual_seed(0)
    queries = torch.nn.functional.normalize(torch.randn(3, 4, 5), dim=-1).requires_grad_()
    passages = torch.nn.functional.normalize(torch.randn(2, 6, 5), dim=-1).requires_grad_()
    query_mask = np.arange(4) < np.array([[4], [1], [3]])
    passage_mask = np.arange(6) < np.array([[2], [6]])
    if request.param == "inside":
        passage_mask[1, [0, 3]] = False
        query_mask[0, 1] = False
    return queries, query_mask, passages, passage_mask


def written_out(
    queries: torch.Tensor, query_mask: Bool, passages: torch.Tensor, passage_mask: Bool
) -> torch.Tensor:
    rows = []
    for query, tokens in zip(queries, query_mask, strict=True):
        row = []
        for passage, kept in zip(passages, passage_mask, strict=True):
            row.append((query[tokens] @ passage[kept].T).max(dim=1).values.mean())
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("at_once", [0, 60, 1000], ids=["one passage", "some", "all"])
def test_colbert_scores_and_gradients_equal_the_written_out_formula(
    ragged: Ragged,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(max_sim.AT_ONCE, "cpu", at_once)
    queries, _, passages, _ = ragged
    weights = torch.tensor([[1.0, -2.0], [0.5, 3.0], [-1.0, 1.0]])
    found = colbert_scores(*ragged)
    expected = written_out(*ragged)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad((found * weights).sum(), [queries, passages])
    brute_force = torch.autograd.grad((expected * weights).sum(), [queries, passages])
    torch.testing.assert_close(gradients, brute_force)


def test_what_is_kept_for_the_gradient_grows_with_tokens_and_pairs_alone() -> None:
    """Not with their product: a vector for each query token and passage would be T · N · C numbers."""
    queries = torch.nn.functional.normalize(torch.randn(8, 4, 64), dim=-1).requires_grad_()
    passages = torch.nn.functional.normalize(torch.randn(50, 6, 64), dim=-1).requires_grad_()
    kept: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        colbert_scores(queries, np.ones((8, 4), np.bool_), passages, np.ones((50, 6), np.bool_))
    assert max(tensor.numel() for tensor in kept) <= 50 * 6 * 64


def test_a_masked_token_never_beats_a_negative_match() -> None:
    query, mask = torch.tensor([[[1.0, 0.0]]]), np.array([[True]])
    passage = torch.tensor([[[-0.6, 0.8], [0.0, 0.0]]])
    scores = colbert_scores(query, mask, passage, np.array([[True, False]]))
    assert math.isclose(scores.item(), -0.6, abs_tol=1e-6)
