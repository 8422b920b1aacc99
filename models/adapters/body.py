"""Adapters in a transformers body: which layers they change, and for which rows of a batch.

Serving needs no PEFT: loaded adapters act through `AdaptedLinear` layers and an attention of their own, by
rows, so one batch holds texts of several adapters and of none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from tercet.models.adapters.blocks import PATHS, ROLES, BodyShape, Role
from tercet.models.adapters.changes import Below, Change, through
from tercet.models.adapters.prompts import install_prompts
from tercet.models.errors import UnsupportedError
from tercet.models.packed.attention import attention, mask_of_padding

ATTENTION = "tercet_adapters"
SELF_ATTENTION = "attention.self"
# Takes the middle of the feed-forward sub-layer, and the residual around it.
FEED_FORWARD_END = "output"
# Where a self-attention module keeps what `ActiveAdapters` it follows.
ACTIVE = "active_adapters"
Slot = tuple[int, Role]
# Of a prefix: float[P, hidden] each, the same for all texts, or float[R, P, hidden].
KeysAndValues = tuple[Tensor, Tensor]
# A prefix, or None for attention without one, and its weight float[R] for each row, or None for 1.
WeightedPrefix = tuple[Tensor | None, KeysAndValues | None]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One adapter in torch. changes: of linear layers, by block and role; prefix: keys and values for the
    queries float[R, heads, L, d/heads] of a block, and prompt: vectors float[P, hidden], or None where it has
    none.
    """

    changes: Mapping[Slot, Change]
    prefix: Callable[[int, Tensor], KeysAndValues] | None = None
    prompt: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Rows of a batch, int64[R], or None for all of them, and what they go through, the innermost first."""

    rows: Tensor | None
    parts: tuple[Part, ...]

    def changes(self, slot: Slot) -> list[Change]:
        """What the parts do in a slot."""
        return [part.changes[slot] for part in self.parts if slot in part.changes]

    def prefix(self, layer: int, query: Tensor) -> KeysAndValues | None:
        """Keys and values of all parts in a block. query: of all rows of the batch."""
        acting = [part.prefix for part in self.parts if part.prefix is not None]
        if not acting:
            return None
        own = query if self.rows is None else query[self.rows]
        keys, values = zip(*(prefix(layer, own) for prefix in acting), strict=True)
        return _together(keys), _together(values)

    def prefixes(self, layer: int, query: Tensor) -> list[WeightedPrefix]:
        """The one attention of a block."""
        return [(None, self.prefix(layer, query))]

    def prompt(self) -> Tensor | None:
        """Vectors of all parts, float[P, hidden]."""
        prompts = [part.prompt for part in self.parts if part.prompt is not None]
        return torch.cat(prompts) if prompts else None


class ActingShare(Protocol):
    """Rows of a batch, int64[R], or None for all of them, and what acts on them."""

    @property
    def rows(self) -> Tensor | None: ...

    def changes(self, slot: Slot) -> list[Change]:
        """What is done to the linear layer in a slot, the innermost first."""
        ...

    def prefixes(self, layer: int, query: Tensor) -> list[WeightedPrefix]:
        """The attentions of a block, whose outputs are added by weight.

        query: float[B, heads, L, d/heads] of all rows of the batch.
        """
        ...


class ActiveAdapters(Protocol):
    """Which adapters act now. The shares cover every row once; none at all means the base alone."""

    @property
    def shares(self) -> Sequence[ActingShare]: ...


class FixedAdapters:
    """Adapters whose parts act on every row, always: for training and export."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.shares = (Share(None, tuple(parts)),)


class ThreadAdapters(threading.local):
    """Shares that a thread chooses for its own pass, beside passes of other threads."""

    shares: tuple[ActingShare, ...] = ()

    @contextmanager
    def use(self, shares: Sequence[ActingShare]) -> Iterator[None]:
        """These shares act within the context."""
        self.shares = tuple(shares)
        try:
            yield
        finally:
            self.shares = ()


class AdaptedLinear(nn.Linear):
    """A layer of the base, its own weights unchanged, under the adapters that act now."""

    def __init__(self, base: nn.Linear, slot: Slot, active: ActiveAdapters) -> None:
        super().__init__(base.in_features, base.out_features, base.bias is not None, device="meta")
        self.weight, self.bias = base.weight, base.bias
        self.slot, self.active = slot, active
        self.train(base.training)

    def forward(self, input: Tensor) -> Tensor:
        """input: float[B, L, in]. Returns float[B, L, out]."""
        return adapted(self.slot, self.active, input, super().forward)


def adapted(slot: Slot, active: ActiveAdapters, x: Tensor, base: Below) -> Tensor:
    """The output of a base layer for x float[B, L, in], under the adapters that act now."""
    shares = [(share.rows, changes) for share in active.shares if (changes := share.changes(slot))]
    if len(shares) == 1 and shares[0][0] is None:
        return through(shares[0][1], x, base)
    output = base(x)
    if shares and output is x:  # rows of it are replaced
        output = x.clone()
    for rows, changes in shares:
        output[rows] = _changed(changes, x[rows], output[rows], base)
    return output


def _changed(changes: Sequence[Change], x: Tensor, y: Tensor, base: Below) -> Tensor:
    """The output under changes, where y is that without; computed again only if its input is changed."""
    return through(changes, x, lambda given: y if given is x else base(given))


class AdaptedResidual:
    """A hook before a feed-forward sub-layer's end: its residual goes through the adapters that act now."""

    def __init__(self, slot: Slot, active: ActiveAdapters) -> None:
        self.slot, self.active = slot, active

    def __call__(self, module: nn.Module, inputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """inputs: the sub-layer's middle and its residual, float[B, L, d]."""
        middle, residual = inputs
        return middle, adapted(self.slot, self.active, residual, lambda given: given)


def adapted_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention over query, key and value float[B, heads, L, d/heads], and over the prefixes of each row.

    attention_mask: bool[B, 1, L or 1, L], true where a token is seen, or None.
    Returns float[B, L, heads, d/heads].
    """
    shares = _active(module).shares
    prefixes_of_shares = [share.prefixes(_layer_of(module), query) for share in shares]
    if all(prefix is None for prefixes in prefixes_of_shares for _, prefix in prefixes):
        return attention(module, query, key, value, attention_mask, **options)
    attended = query.new_zeros(query.transpose(1, 2).shape)
    for share, prefixes in zip(shares, prefixes_of_shares, strict=True):
        rows = slice(None) if share.rows is None else share.rows
        mask = None if attention_mask is None else attention_mask[rows]
        for weight, prefix in prefixes:
            part = _attention_with(prefix, module, query[rows], key[rows], value[rows], mask, **options)
            if share.rows is None and weight is None:
                return part, None
            attended[rows] += part if weight is None else part * weight.view(-1, 1, 1, 1).to(part.dtype)
    return attended, None


def _attention_with(
    prefix: KeysAndValues | None,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    **options: Any,
) -> Tensor:
    """Attention over a prefix, if any, and the tokens. Shapes as of `adapted_attention`."""
    if prefix is not None:
        length = key.shape[2]
        key, value = with_prefix(prefix, key, value)
        if mask is not None:
            mask = functional.pad(mask, (key.shape[2] - length, 0), value=True)
    attended, _ = sdpa_attention_forward(module, query, key, value, mask, **options)
    return attended


def with_prefix(prefix: KeysAndValues, key: Tensor, value: Tensor) -> KeysAndValues:
    """Keys and values float[B, heads, P + L, d/heads] of a prefix and of the tokens after it."""
    batch, heads, _, width = key.shape

    def joined(prefix: Tensor, tokens: Tensor) -> Tensor:
        by_head = prefix.to(tokens.dtype).view(*prefix.shape[:-1], heads, width).transpose(-3, -2)
        return torch.cat([by_head.expand(batch, -1, -1, -1), tokens], dim=2)

    return joined(prefix[0], key), joined(prefix[1], value)


def fixed_prefix(module: nn.Module, query: Tensor) -> KeysAndValues | None:
    """Keys and values that a self-attention module gets for every row, where its adapters are fixed."""
    active: ActiveAdapters | None = getattr(module, ACTIVE, None)
    return None if active is None else active.shares[0].prefixes(_layer_of(module), query)[0][1]


def body_shape(body: nn.Module) -> BodyShape:
    """The sizes of a body."""
    config: Any = body.config
    return BodyShape.of_config(config.to_dict())


def linear_at(body: nn.Module, slot: Slot) -> nn.Module:
    """The layer in a slot, whatever wraps it now. Raises UnsupportedError where there is none."""
    return body.get_submodule(path_of(body, slot))


def path_of(body: nn.Module, slot: Slot) -> str:
    """The name of the layer in a slot. Raises UnsupportedError where the body is not laid out as BERT."""
    layer, role = slot
    path = f"encoder.layer.{layer}.{PATHS[role]}"
    try:
        body.get_submodule(path)
    except AttributeError as error:
        raise UnsupportedError(
            f"{type(body).__name__} has no layer {path}; adapters need the blocks of BERT or XLM-RoBERTa"
        ) from error
    return path


def install(body: nn.Module, active: ActiveAdapters) -> None:
    """Makes every slot of a body follow `active`. Without adapters it computes what it did before.

    Raises UnsupportedError where the body is not laid out as BERT.
    """
    for layer in range(body_shape(body).layers):
        for role in ROLES:
            base = linear_at(body, (layer, role))
            if not isinstance(base, nn.Linear):
                raise UnsupportedError(f"the layer at {path_of(body, (layer, role))} has an adapter already")
            body.set_submodule(path_of(body, (layer, role)), AdaptedLinear(base, (layer, role), active))
        end = body.get_submodule(f"encoder.layer.{layer}.{FEED_FORWARD_END}")
        end.register_forward_pre_hook(AdaptedResidual((layer, "residual"), active))
        setattr(body.get_submodule(f"encoder.layer.{layer}.{SELF_ATTENTION}"), ACTIVE, active)
    install_prompts(body.get_submodule("encoder"), lambda: _prompt(active))
    AttentionInterface.register(ATTENTION, adapted_attention)
    AttentionMaskInterface.register(ATTENTION, mask_of_padding)
    model: Any = body
    model.set_attn_implementation(ATTENTION)


def fold(body: nn.Module, parts: Sequence[Part]) -> tuple[Part, ...]:
    """Puts into the body's weights what can be: in each slot, every change up to the first that cannot.

    Returns parts with the rest, to be installed; those of LoRA and (IA)³ alone have nothing left.
    """
    left: list[dict[Slot, Change]] = [dict(part.changes) for part in parts]
    for slot in {slot for changes in left for slot in changes if slot[1] in PATHS}:
        linear = linear_at(body, slot)
        assert isinstance(linear, nn.Linear)  # noqa: S101 - as `install` has checked or will
        for changes in left:
            if slot in changes:
                if not changes[slot].fold(linear):
                    break
                del changes[slot]
    rest = (replace(part, changes=changes) for changes, part in zip(left, parts, strict=True))
    return tuple(part for part in rest if part.changes or part.prefix is not None or part.prompt is not None)


def _together(parts: Sequence[Tensor]) -> Tensor:
    """Keys or values of several prefixes, for each row where those of one are."""
    rows = max((part.shape[:-2] for part in parts), key=len)
    return torch.cat([part.expand(*rows, *part.shape[-2:]) for part in parts], dim=-2)


def _layer_of(attention: Any) -> int:
    return int(attention.layer_idx)


def _prompt(active: ActiveAdapters) -> Tensor | None:
    """What stands before every text; a pass with prompts has one share."""
    share = active.shares[0] if active.shares else None
    return share.prompt() if isinstance(share, Share) else None


def _active(module: nn.Module) -> ActiveAdapters:
    active: ActiveAdapters = getattr(module, ACTIVE)
    return active
