"""Attention of a transformers body as the one fused operator of onnxruntime, for export.

The operator takes a mask of keys and a bias on the scores of all pairs. What transformers' masks say beyond
padding goes into these: a window becomes a bias, a causal mask an attribute of the operator. With a window
there are two ways, of all pairs and by blocks, of which `tercet.models.export.attention_mask` takes one at
run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

from tercet.models.adapters.body import fixed_prefix, with_prefix
from tercet.models.errors import UnsupportedError
from tercet.models.export.attention_mask import CHOICE

ATTENTION = "onnx_multi_head"
# Score given to keys that a query does not attend to before the softmax.
MASKED_SCORE = -1e9
# Of so many windows on, a text's scores are fewer by blocks than of all pairs.
BLOCKS = 3
# Of attention functions, what changes scores or their sum and has no counterpart in the operator.
UNSUPPORTED = ("softcap", "s_aux", "position_bias")


Seen = Callable[[Tensor, Tensor], Tensor]


class Mask(NamedTuple):
    """What each query attends to. keys: int32[B, L], 1 on tokens; seen: which keys of a window by the
    positions of queries and of keys, or None for all; causal: whether only keys up to the query count.
    """

    keys: Tensor
    seen: Seen | None
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
    keys, seen, causal = attention_mask
    shared = heads // key.shape[1]
    if shared > 1:
        key, value = (part.repeat_interleave(shared, dim=1) for part in (key, value))
    prefix = fixed_prefix(module, query)
    if prefix is not None:
        key, value = with_prefix(prefix, key, value)
        keys = functional.pad(keys, (prefix[0].shape[-2], 0), value=1)
    query, key, value = (
        part.transpose(1, 2).reshape(batch, -1, heads * width) for part in (query, key, value)
    )
    attributes = {
        "num_heads": heads,
        "scale": width**-0.5 if scaling is None else float(scaling),
        "mask_filter_value": MASKED_SCORE,
    }
    if causal:
        attributes["unidirectional"] = 1
    bias = None if seen is None else _bias(seen, length, length, 0)
    attended = whole = _operator(query, key, value, keys, bias, attributes)
    window: int | None = others.get("sliding_window")
    if seen is not None and window is not None:
        attended = torch.onnx.ops.symbolic(
            CHOICE,
            [_in_blocks(query, key, value, keys, window, seen, attributes), whole, keys],
            {"above": BLOCKS * window},
            dtype=whole.dtype,
            shape=whole.shape,
            version=1,
        )
    return attended.view(batch, length, heads, width), None


def _operator(
    query: Tensor, key: Tensor, value: Tensor, keys: Tensor, bias: Tensor | None, attributes: dict[str, Any]
) -> Tensor:
    """The fused operator over float[B, L, D] each and a mask of keys int32[B, L]: float[B, L, D]."""
    inputs = [query, key, value, None, keys, *([] if bias is None else [bias])]
    return torch.onnx.ops.symbolic(
        "com.microsoft::MultiHeadAttention",
        inputs,
        attributes,
        dtype=query.dtype,
        shape=query.shape,
        version=1,
    )


def _in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    keys: Tensor,
    window: int,
    seen: Seen,
    attributes: dict[str, Any],
) -> Tensor:
    """The same where no query sees a key `window` tokens away: block by block of so many queries, each with
    the keys of its own block and of the two beside it, so that scores grow with L and not with its square.
    """
    batch, length, width = query.shape
    rest = -length % window
    count = (length + rest) // window

    def around(part: Tensor) -> Tensor:
        """[B, L, ...] to [B, blocks, 3 · window, ...]."""
        sides = [0, 0] * (part.ndim - 2) + [window, rest + window]
        blocks = functional.pad(part, sides).reshape(batch, count + 2, window, *part.shape[2:])
        return torch.cat([blocks[:, :-2], blocks[:, 1:-1], blocks[:, 2:]], dim=2)

    attended = _operator(
        functional.pad(query, [0, 0, 0, rest]).reshape(batch * count, window, width),
        around(key).reshape(batch * count, 3 * window, width),
        around(value).reshape(batch * count, 3 * window, width),
        around(keys).reshape(batch * count, 3 * window),
        _bias(seen, window, 3 * window, window),
        attributes,
    )
    return attended.reshape(batch, count * window, width)[:, :length]


def _bias(seen: Seen, queries: int, keys: int, first: int) -> Tensor:
    """float32[1, 1, queries, keys] to add to scores. first: the index of the first query among the keys."""
    visible = seen(first + torch.arange(queries)[:, None], torch.arange(keys)[None, :])
    return torch.where(visible, 0.0, MASKED_SCORE).expand(1, 1, queries, keys)


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
    return Mask(keys, lambda queries, others: mask_function(none, none, queries, others), causal=False)
