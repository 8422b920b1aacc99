"""Passes of a body that trains: without padding where it takes that, and without a look of the host at them.

Letters in shapes: B texts, L tokens of the longest, T of all, d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.masking_utils import sdpa_mask

from tercet.models.packed.attention import install
from tercet.models.packed.bodies import has_kernel, positions_of
from tercet.models.representations import Int64, offsets_of
from tercet.training.transfer import on_device

ATTENTION = "tercet_training"
LAST = -1


def prepare(body: nn.Module) -> None:
    """Makes a body take its attention from here, where it takes it by name."""
    if positions_of(body) is None:
        return
    install(body, ATTENTION, mask_of_padding)


def mask_of_padding(attention_mask: Tensor | None = None, **options: Any) -> Tensor | None:
    """The library's mask. It is not left out for texts without padding: to see that is to wait for a GPU."""
    if attention_mask is None:
        return None
    return sdpa_mask(
        attention_mask=attention_mask,
        **{**options, "allow_is_bidirectional_skip": False, "allow_is_causal_skip": False},
    )


def states(body: nn.Module, ids: Tensor, mask: Tensor, lengths: Int64, layer: int = LAST) -> Tensor:
    """Hidden states after one layer, as `states_of_layers` gives them."""
    return states_of_layers(body, ids, mask, lengths, [layer])[0]


def states_of_layers(
    body: nn.Module, ids: Tensor, mask: Tensor, lengths: Int64, layers: Sequence[int]
) -> list[Tensor]:
    """Hidden states float[B, L, d] after each of the layers, `LAST` after all; undefined on padding.

    ids, mask: int64[B, L], padded on the right; lengths: int64[B] on the host, tokens of each text.
    """
    if not packs(body, ids.device):
        return _chosen(body(input_ids=ids, attention_mask=mask, **_layer_options(layers)), layers)
    positions, starts, offsets = (
        on_device(array, ids.device)
        for array in (
            np.flatnonzero(np.arange(ids.shape[1]) < lengths[:, None]),
            np.repeat(offsets_of(lengths)[:-1], lengths),
            offsets_of(lengths).astype(np.int32),
        )
    )
    tokens = ids.flatten().index_select(0, positions)
    counted = positions_of(body)
    assert counted is not None  # noqa: S101 - `packs` says so
    longest = int(lengths.max())
    output = body(
        input_ids=tokens.unsqueeze(0),
        position_ids=counted.of(tokens, starts).unsqueeze(0),
        cu_seq_lens_q=offsets,
        cu_seq_lens_k=offsets,
        max_length_q=longest,
        max_length_k=longest,
        lengths=lengths.tolist(),
        **_layer_options(layers),
    )
    return [
        hidden.new_zeros(ids.numel(), hidden.shape[2])
        .index_copy(0, positions, hidden[0])
        .view(*ids.shape, -1)
        for hidden in _chosen(output, layers)
    ]


def packs(body: nn.Module, device: torch.device) -> bool:
    """Whether a pass is packed. The kernel of a GPU wants 16-bit products, and leaves nothing out."""
    config: Any = body.config
    if config._attn_implementation != ATTENTION:
        return False
    if device.type == "cpu":
        return True
    if not torch.is_autocast_enabled(device.type) or drops_attention(body):
        return False
    dtype = torch.get_autocast_dtype(device.type)
    return has_kernel(body, dtype, torch.cuda.get_device_capability(device))


def drops_attention(body: nn.Module) -> bool:
    """Whether attention may leave out weights, as dropout does."""
    config: Any = body.config
    if not body.training:
        return False
    dropped = any(isinstance(module, nn.Dropout) and module.p > 0 for module in body.modules())
    return dropped or bool(getattr(config, "attention_dropout", 0.0))


def _layer_options(layers: Sequence[int]) -> dict[str, bool]:
    return {} if set(layers) == {LAST} else {"output_hidden_states": True}


def _chosen(output: Any, layers: Sequence[int]) -> list[Tensor]:
    return [output.last_hidden_state if layer == LAST else output.hidden_states[layer] for layer in layers]
