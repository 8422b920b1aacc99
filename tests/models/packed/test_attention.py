"""Attention within each text: against one matrix product under a mask, on the CPU's way and on the GPU's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tercet.models.packed.attention import UNBOUNDED, on_gpu, seen, within_texts

OFFSETS = torch.tensor([0, 4, 4, 9, 10, 10], dtype=torch.int32)
TOKENS = 12  # two behind the last text
WINDOWS = [(UNBOUNDED, UNBOUNDED), (2, 2), (UNBOUNDED, 0), (3, 0)]
Attend = Callable[..., Tensor]


def by_one_product(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor, scale: float, before: int, after: int
) -> Tensor:
    """All tokens against all, those of other texts and beyond the window masked."""
    groups = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(groups, dim=1) for states in (key, value))
    text = torch.bucketize(torch.arange(len(query)), offsets[1:], right=True)
    ahead = torch.arange(len(query)) - torch.arange(len(query))[:, None]
    allowed = text == text[:, None]
    if before != UNBOUNDED:
        allowed &= ahead >= -before
    if after != UNBOUNDED:
        allowed &= ahead <= after
    scores = torch.einsum("qhd,khd->hqk", query, key) * scale
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, value)


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    """Gives torch's packed attention, which only GPUs have, a kernel for CPUs: the call is as there."""

    def on_cpu(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        cu_seq_q: Tensor,
        cu_seq_k: Tensor,
        max_q: int,
        max_k: int,
        is_causal: bool = False,
        scale: float | None = None,
        window_size: list[int] | None = None,
        enable_gqa: bool = False,
        *_: object,
    ) -> tuple[Tensor, Tensor, Tensor]:
        assert cu_seq_q.dtype == torch.int32
        assert cu_seq_q is cu_seq_k
        assert max_q == max_k >= int(cu_seq_q.diff().max())
        assert enable_gqa == (query.shape[1] != key.shape[1])
        assert scale is not None
        before, after = window_size or (UNBOUNDED, UNBOUNDED)
        assert is_causal == ((before, after) == (UNBOUNDED, 0))
        found = by_one_product(query, key, value, cu_seq_q, scale, before, after)
        return found, query.new_empty(0), query.new_empty(0)

    torch.library.register_kernel("torch_attn::_varlen_attn", "cpu", on_cpu)


@pytest.mark.parametrize("attend", [within_texts, on_gpu])
@pytest.mark.parametrize(("before", "after"), WINDOWS)
@pytest.mark.parametrize("key_heads", [4, 2])
def test_tokens_see_their_own_text_alone(attend: Attend, before: int, after: int, key_heads: int) -> None:
    torch.manual_seed(0)
    query = torch.randn(TOKENS, 4, 8)
    key, value = torch.randn(2, TOKENS, key_heads, 8)
    found = attend(query, key, value, OFFSETS, 8, 0.3, before, after)
    expected = by_one_product(query, key, value, OFFSETS, 0.3, before, after)
    assert found.shape == (TOKENS, 4, 8)
    torch.testing.assert_close(found[:10], expected[:10], atol=1e-5, rtol=0)


def test_windows_by_hand() -> None:
    assert seen(3, UNBOUNDED, UNBOUNDED) is None
    assert seen(3, 2, 2) is None
    causal = seen(3, UNBOUNDED, 0)
    assert causal is not None
    assert causal.int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    narrow = seen(3, 1, 1)
    assert narrow is not None
    assert narrow.int().tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
