"""Attention within each text of a packed pass, for every body that takes its attention by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "tercet_packed"
Mask = Callable[..., Tensor | None]
UNBOUNDED = -1  # tokens seen on one side, as `varlen_attn` has it


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention as the library asks for it, float[B, heads, L, d/heads] each, to float[B, L, heads, d/heads].

    With `cu_seq_lens_q` int32[N+1] among the options, of a packed pass (B = 1) over N texts; its
    `max_length_q` is the longest one's tokens; with `lengths`, those of each, it may be trained on a CPU,
    too. Else of a padded pass under its mask.
    """
    offsets: Tensor | None = options.get("cu_seq_lens_q")
    if offsets is None:
        attended, weights = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return attended, weights
    scale = options.get("scaling") or query.shape[-1] ** -0.5
    queries, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
    before, after = _window(module, options.get("sliding_window"))
    longest: int = options["max_length_q"]
    lengths: list[int] | None = options.get("lengths")
    if lengths is not None and not query.is_cuda:
        dropout: float = options.get("dropout") or 0.0
        attended = torch.cat(
            attention_of_texts(queries, keys, values, lengths, scale, before, after, dropout)
        )
    else:
        attended = within_texts(queries, keys, values, offsets, longest, scale, before, after)
    return attended.unsqueeze(0), None


def within_texts(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: Tensor,
    longest: int,
    scale: float,
    before: int,
    after: int,
) -> Tensor:
    """Attention of each token over those of its own text, float[T, heads, d/heads].

    query: float[T, heads, d/heads]; key and value may have fewer heads, each for a group of the query's;
    offsets: int32[N+1]; before, after: how far a token sees, or UNBOUNDED. Tokens after the last text get
    nothing of use.
    """
    if not query.is_cuda:
        attended: Tensor = _by_text(query, key, value, offsets, scale, before, after)
        return attended
    return on_gpu(query, key, value, offsets, longest, scale, before, after)


def on_gpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: Tensor,
    longest: int,
    scale: float,
    before: int,
    after: int,
) -> Tensor:
    """As `within_texts`, by the one kernel that a GPU has for it."""
    attended = varlen_attn(
        query,
        key,
        value,
        offsets,
        offsets,
        longest,
        longest,
        scale=scale,
        window_size=(before, after),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    assert isinstance(attended, Tensor)  # noqa: S101 - it gives more only where asked
    return attended


# An operation of its own, so that a compiled graph takes the walk over texts as one step.
@torch.library.custom_op("tercet::attention_by_text", mutates_args=())
def _by_text(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor, scale: float, before: int, after: int
) -> Tensor:
    attended = torch.zeros_like(query, memory_format=torch.contiguous_format)
    edges = offsets.tolist()
    tokens = edges[-1]
    lengths = [end - start for start, end in itertools.pairwise(edges)]
    given = (query[:tokens], key[:tokens], value[:tokens])
    torch.cat(attention_of_texts(*given, lengths, scale, before, after), out=attended[:tokens])
    return attended


def attention_of_texts(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lengths: list[int],
    scale: float,
    before: int,
    after: int,
    dropout: float = 0.0,
) -> list[Tensor]:
    """Attention of the tokens of each text, float[L, heads, d/heads], one text after another. lengths: of
    texts, as many tokens as there are.
    """
    grouped = query.shape[1] != key.shape[1]
    attended = []
    for text in zip(*(torch.split(states, lengths) for states in (query, key, value)), strict=True):
        q, k, v = (states.transpose(0, 1).unsqueeze(0) for states in text)
        if q.shape[2]:
            mask = seen(q.shape[2], before, after)
            result = scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=dropout, scale=scale, enable_gqa=grouped
            )
            attended.append(result[0].transpose(0, 1))
    return attended


@_by_text.register_fake
def _(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor, scale: float, before: int, after: int
) -> Tensor:
    return torch.empty_like(query, memory_format=torch.contiguous_format)


def seen(length: int, before: int, after: int) -> Tensor | None:
    """Which tokens each token of a text sees, bool[L, L]; None for all."""
    left, right = (length if side == UNBOUNDED else side for side in (before, after))
    if min(left, right) >= length - 1:
        return None
    position = torch.arange(length)
    ahead = position - position[:, None]
    return (ahead <= right) & (ahead >= -left)


def _window(module: nn.Module, sliding_window: int | None) -> tuple[int, int]:
    """Tokens seen before and after. A window of the library counts the token itself."""
    side = UNBOUNDED if sliding_window is None else sliding_window - 1
    return side, 0 if getattr(module, "is_causal", False) else side


def mask_of_padding(attention_mask: Tensor | None = None, **options: Any) -> Tensor | None:
    """The library's mask for a padded pass; a packed one has none."""
    return None if attention_mask is None else sdpa_mask(attention_mask=attention_mask, **options)


def install(body: nn.Module, name: str = ATTENTION, mask: Mask = mask_of_padding) -> None:
    """Makes a body take `attention`, by a name; a padded pass has this mask, and computes what it did."""
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, mask)
    model: Any = body
    model.set_attn_implementation(name)
