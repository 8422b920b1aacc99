"""One packed pass: from token ids to what leaves the device, every step an array operation.

Letters: T token places of the pass, of which the last may be padding; N text places, of which the last may be
empty. Rows of padding are undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.models.checkpoint import EncodingSettings
from tercet.models.heads import Heads
from tercet.models.packed.bodies import Positions
from tercet.models.representations import Output

NO_KEY = torch.iinfo(torch.int64).max  # sorts behind every text's tokens


States = Callable[[Tensor, Tensor, Tensor, int], Tensor]
"""Token ids int32[T], positions int64[T], offsets int32[N+1], the longest text's tokens, to states [T, d]."""


class PackedBody(nn.Module):
    """A transformers body whose attention is `tercet.models.packed.attention`, as `States`."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, token_ids: Tensor, positions: Tensor, offsets: Tensor, longest: int) -> Tensor:
        """The last hidden states."""
        states: Tensor = self.body(
            input_ids=token_ids.unsqueeze(0),
            position_ids=positions.unsqueeze(0),
            cu_seq_lens_q=offsets,
            cu_seq_lens_k=offsets,
            max_length_q=longest,
            max_length_k=longest,
        ).last_hidden_state
        return states[0]


class PackedModel(nn.Module):
    """The states of packed texts, and the heads."""

    special: Tensor

    def __init__(
        self, states: States, heads: Heads, positions: Positions, special: Tensor, vectors: torch.dtype
    ) -> None:
        """special: bool[V], ids without lexical weight; vectors: the type that token vectors leave in."""
        super().__init__()
        self.states, self.heads = states, heads
        self._positions = positions
        self._vectors = vectors
        self.register_buffer("special", special, persistent=False)

    def forward(
        self,
        token_ids: Tensor,
        offsets: Tensor,
        weightless: Tensor,
        longest: int,
        outputs: Sequence[Output],
    ) -> dict[str, Tensor]:
        """token_ids: int32[T]; offsets: int32[N+1]; weightless: bool[T], tokens of an instruction; longest:
        tokens of the longest text at least.

        Returns of the sides asked for: dense float32[N, D]; sparse_ids int32[T], sparse_weights float32[T]
        and sparse_indptr int64[N+1], as `SparseRows`; colbert [T, C], whose first rows are the kept tokens'.
        """
        text = _text_of_token(len(token_ids), offsets)
        begins = offsets.long()
        starts, ends = begins[text], begins[(text + 1).clamp(max=len(offsets) - 1)]
        position = torch.arange(len(token_ids), device=token_ids.device)
        present = position < begins[-1]
        positions = torch.where(present, self._positions.of(token_ids, starts), 0)
        hidden = self.states(token_ids, positions, offsets, longest).float()
        settings, heads = self.heads.settings, self.heads
        inner = _inner_cls(position - starts, ends - 1 - position, settings)
        rows: dict[str, Tensor] = {}
        if "dense" in outputs:
            averaged = None if inner is None else inner | (position == starts)
            pooled = heads.dense_layers(pool(hidden, begins, averaged, settings))
            rows["dense"] = functional.normalize(pooled, dim=-1)
        if "sparse" in outputs:
            weights = heads.token_weights(hidden)
            weighs = present & (weights > 0) & ~weightless & ~self.special[token_ids]
            keys = torch.where(weighs, text * len(self.special) + token_ids, NO_KEY)
            rows |= largest_by_key(keys, weights, len(offsets) - 1, len(self.special))
        if "colbert" in outputs:
            vectors = heads.token_vectors(hidden).to(self._vectors)
            kept = present & (position > starts)
            rows["colbert"] = vectors[kept_first(kept if inner is None else kept & ~inner)]
        return rows


def pool(hidden: Tensor, begins: Tensor, averaged: Tensor | None, settings: EncodingSettings) -> Tensor:
    """One vector of each text, float[N, d], as `tercet.models.heads.pool` defines it.

    hidden: float[T, d]; begins: int64[N+1]; averaged: with MCLS, whose states are averaged, bool[T].
    """
    if averaged is None and settings.pooling == "cls":
        return hidden[begins[:-1].clamp(max=len(hidden) - 1)]
    if averaged is None and settings.pooling == "last":
        return hidden[(begins[1:] - 1).clamp(min=0)]
    chosen = torch.ones_like(hidden[:, 0]) if averaged is None else averaged.to(hidden.dtype)
    total = _sums(hidden * chosen.unsqueeze(-1), begins)
    return total / _sums(chosen, begins).unsqueeze(-1)


def _sums(values: Tensor, begins: Tensor) -> Tensor:
    """Sums of each text's values; unsafe as checks of the offsets would wait for the device."""
    return torch.segment_reduce(values, "sum", offsets=begins, axis=0, unsafe=True)


def largest_by_key(keys: Tensor, weights: Tensor, texts: int, vocabulary: int) -> dict[str, Tensor]:
    """The largest weight of each token id in each text, ascending, as `tercet.models.lexical.reduction`
    has it.

    keys: int64[T], text times vocabulary plus id, NO_KEY for tokens left out; weights: float32[T]. Every
    array keeps its size; behind the last row lies nothing of use.
    """
    keys, order = torch.sort(keys)
    differs = (keys[1:] != keys[:-1]).long()
    group = functional.pad(torch.cumsum(differs, 0), (1, 0))
    largest = torch.zeros_like(weights).scatter_reduce(0, group, weights[order], "amax")
    unique = torch.full_like(keys, NO_KEY).scatter(0, group, keys)
    borders = torch.arange(texts + 1, device=keys.device) * vocabulary
    return {
        "sparse_ids": (unique % vocabulary).int(),
        "sparse_weights": largest,
        "sparse_indptr": torch.searchsorted(unique, borders),
    }


def kept_first(kept: Tensor) -> Tensor:
    """Positions int64[T] of the kept tokens in their order; behind them is nothing of use. kept: bool[T]."""
    size = len(kept)
    position = torch.arange(size, device=kept.device)
    target = torch.where(kept, torch.cumsum(kept, 0) - 1, size)
    return position.new_zeros(size + 1).scatter(0, target, position)[:size]


def _text_of_token(tokens: int, offsets: Tensor) -> Tensor:
    """The text of each token, int64[T]; N for padding behind the last one."""
    position = torch.arange(tokens, device=offsets.device, dtype=offsets.dtype)
    return torch.searchsorted(offsets[1:], position, right=True)


def _inner_cls(position: Tensor, following: Tensor, settings: EncodingSettings) -> Tensor | None:
    """Which tokens are a CLS inserted by MCLS, bool[T]; None without MCLS.

    position: in the text; following: tokens that follow in it.
    """
    if settings.mcls_every is None:
        return None
    return (position > 0) & (position % settings.mcls_every == 0) & (following > 0)
