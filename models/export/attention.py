"""Attention of a transformers body as the one fused operator of onnxruntime, for export.

The operator takes a mask of keys and a bias on the scores of all pairs. What transformers' masks say beyond
padding goes into these: a window becomes a bias, a causal mask an attribute of the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

from models.adapters.body import fixed_prefix, with_prefix
from models.errors import UnsupportedError

ATTENTION = "onnx_multi_head"
# Score given to keys that a query does not attend to before the softmax.
MASKED_SCORE = -1e9
# Of attention functions, what changes scores or their sum and has no counterpart in the operator.
UNSUPPORTED = ("softcap", "s_aux", "position_bias")


class Mask(NamedTuple):
    """What each query attends to. keys: int32[B, L], 1 on tokens; bias: float32[1, 1, L, L], added to the
    scores, or None; causal: whether only keys up to the query count.
    """

    keys: Tensor
    bias: Tensor | None
    causal: bool


def register() -> None:
    """Makes transformers know `ATTENTION`."""
    AttentionInterface.register(ATTENTION, _fused_attention)
    AttentionMaskInterface.register(ATTENTION, _mask)


def _fused_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Mask,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention over query float[B, heads, L, d/heads], key and value, which may have fewer heads."""
    unsupported = next((name for name in UNSUPPORTED if others.get(name) is not None), None)
    if unsupported is not None:
        raise UnsupportedError(f"attention with {unsupported} has no operator in onnxruntime")
    batch, heads, length, width = query.shape
    keys, bias, causal = attention_mask
    shared = heads // key.shape[1]
    if shared > 1:
        key, value = (part.repeat_interleave(shared, dim=1) for part in (key, value))
    prefix = fixed_prefix(module)
    if prefix is not None:
        key, value = with_prefix(prefix, key, value)
        keys = functional.pad(keys, (prefix[0].shape[0], 0), value=1)
    flat = [part.transpose(1, 2).reshape(batch, -1, heads * width) for part in (query, key, value)]
    inputs = [*flat, None, keys] if bias is None else [*flat, None, keys, bias]
    attributes = {
        "num_heads": heads,
        "scale": width**-0.5 if scaling is None else float(scaling),
        "mask_filter_value": MASKED_SCORE,
    }
    if causal:
        attributes["unidirectional"] = 1
    attended = torch.onnx.ops.symbolic(
        "com.microsoft::MultiHeadAttention",
        inputs,
        attributes,
        dtype=query.dtype,
        shape=(batch, length, heads * width),
        version=1,
    )
    return attended.view(batch, length, heads, width), None


def _mask(
    *_: Any,
    q_length: int,
    kv_length: int,
    mask_function: Callable[..., Any],
    attention_mask: Tensor,
    **__: Any,
) -> Mask:
    """The padding int64[B, L], and what transformers says by indices of queries and keys."""
    keys = attention_mask.to(torch.int32)
    causal = mask_function is causal_mask_function
    if causal or mask_function is bidirectional_mask_function:
        return Mask(keys, None, causal)
    none = torch.zeros((), dtype=torch.int64)
    seen = mask_function(none, none, torch.arange(q_length)[:, None], torch.arange(kv_length)[None, :])
    bias = torch.where(seen, 0.0, MASKED_SCORE).expand(1, 1, q_length, kv_length)
    return Mask(keys, bias, causal=False)
