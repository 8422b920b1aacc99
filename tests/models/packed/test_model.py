"""The steps of a packed pass behind the body, by hand."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.packed.bodies import Positions, has_kernel, positions_of
from tercet.models.packed.model import NO_KEY, kept_first, largest_by_key, pool

BEGINS = torch.tensor([0, 2, 5, 5])
HIDDEN = torch.tensor([[1.0], [3.0], [4.0], [5.0], [9.0], [torch.nan]])  # the last is padding


def test_kept_tokens_come_first_in_their_order() -> None:
    kept = torch.tensor([False, True, True, False, True, False])
    assert kept_first(kept)[:3].tolist() == [1, 2, 4]


def test_the_largest_weight_of_each_id() -> None:
    # Text 0: id 3 twice; text 1: nothing; text 2: ids 1 and 3; vocabulary of 10.
    keys = torch.tensor([3, NO_KEY, 3, 23, 21])
    weights = torch.tensor([0.5, torch.nan, 0.75, 0.25, 1.0])
    found = largest_by_key(keys, weights, 3, 10)
    assert found["sparse_indptr"].tolist() == [0, 1, 1, 3]
    assert found["sparse_ids"][:3].tolist() == [3, 1, 3]
    assert found["sparse_weights"][:3].tolist() == [0.75, 1.0, 0.25]


@pytest.mark.parametrize(
    ("pooling", "expected"), [("cls", [1.0, 4.0]), ("last", [3.0, 9.0]), ("mean", [2.0, 6.0])]
)
def test_pooling_leaves_padding_out(pooling: str, expected: list[float]) -> None:
    found = pool(HIDDEN, BEGINS, None, EncodingSettings(pooling=pooling))
    assert found[:2, 0].tolist() == expected


def test_pooling_over_the_cls_states() -> None:
    averaged = torch.tensor([True, False, True, False, True, False])
    found = pool(HIDDEN, BEGINS, averaged, EncodingSettings(mcls_every=4))
    assert found[:2, 0].tolist() == [1.0, 6.5]


def test_positions_begin_anew_in_each_text() -> None:
    ids = torch.tensor([7, 8, 7, 1, 9, 1])
    starts = torch.tensor([0, 0, 2, 2, 2, 5])
    assert Positions(None).of(ids, starts).tolist() == [0, 1, 0, 1, 2, 0]
    # As in fairseq the padding id itself, 1, is not counted: it stands at its own number.
    assert Positions(1).of(ids, starts).tolist() == [2, 3, 2, 1, 3, 1]


def test_a_body_that_cannot_be_packed(model_of: Callable[..., Any]) -> None:
    body = model_of("bert").body
    assert positions_of(body) == Positions(None)
    body.config.model_type = "unheard-of"
    assert positions_of(body) is None


def test_where_a_gpu_has_the_kernel(model_of: Callable[..., Any]) -> None:
    body = model_of("bert").body
    assert has_kernel(body, torch.bfloat16, (9, 0))
    assert not has_kernel(body, torch.float32, (9, 0))
    assert not has_kernel(body, torch.bfloat16, (7, 5))
    body.config.num_attention_heads = 8  # heads of 4 values
    assert not has_kernel(body, torch.bfloat16, (9, 0))
