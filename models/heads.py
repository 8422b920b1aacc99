"""The three representations from the last hidden states, in torch."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.checkpoint import SETTINGS_FILE, EncodingSettings
from models.errors import CheckpointError
from models.gte_head import token_weight_head
from models.head_weights import HEADS_FILE, HeadWeights, read_heads
from models.representations import Float32, Output, sides_of


class Heads(nn.Module):
    """Dense pooling, and linear heads for lexical weights and token vectors (Chen et al. 2024, section 3)."""

    sparse: nn.Linear | None
    colbert: nn.Linear | None

    def __init__(
        self, width: int, colbert_dimension: int, settings: EncodingSettings, *, sparse: bool = True
    ) -> None:
        """colbert_dimension: 0 without token vectors; sparse: whether there are lexical weights."""
        super().__init__()
        self.settings = settings
        self.sparse = nn.Linear(width, 1) if sparse else None
        self.colbert = nn.Linear(width, colbert_dimension) if colbert_dimension else None

    @staticmethod
    def from_weights(weights: HeadWeights, settings: EncodingSettings) -> Heads:
        """Heads with trained weights."""
        width = max((head.weight.shape[1] for head in (weights.sparse, weights.colbert) if head), default=0)
        heads = Heads(width, weights.colbert_dimension, settings, sparse=weights.sparse is not None)
        linear = replace(weights, queries=None).arrays()
        heads.load_state_dict({name: torch.from_numpy(array) for name, array in linear.items()})
        return heads

    def weights(self) -> HeadWeights:
        """A copy of the weights as arrays, to be written; further training does not change it."""
        arrays: dict[str, Float32] = {
            k: v.detach().float().cpu().numpy().copy() for k, v in self.state_dict().items()
        }
        width = max((head.in_features for head in (self.sparse, self.colbert) if head is not None), default=0)
        return HeadWeights.from_arrays(arrays, "heads", width)

    @property
    def sides(self) -> tuple[Output, ...]:
        """What there is."""
        dense = int(self.settings.pooling != "none")
        colbert = 0 if self.colbert is None else self.colbert.out_features
        return sides_of(dense, int(self.sparse is not None), colbert)

    def forward(self, hidden: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """hidden: float[B, L, d]; mask: int[B, L], 1 on tokens, padded on the right.

        Returns dense float32[B, d]; sparse float32[B, L], the weight of each token; colbert
        float32[B, L, C]; of these the sides that there are. Rows of padding are undefined.
        """
        hidden = hidden.float()
        found = {
            "dense": lambda: self.dense(hidden, mask),
            "sparse": lambda: self.token_weights(hidden),
            "colbert": lambda: self.token_vectors(hidden),
        }
        return tuple(found[side]() for side in self.sides)

    def dense(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors float[B, d] from hidden states float[B, L, d]."""
        return functional.normalize(pool(hidden, mask, self.settings), dim=-1)

    def token_weights(self, hidden: Tensor) -> Tensor:
        """Lexical weight of each token, float[B, L]: relu(w·H[i] + b); of heads that have this side."""
        return torch.relu(self.lexical_logits(hidden)).squeeze(-1)

    def token_vectors(self, hidden: Tensor) -> Tensor:
        """Unit vector of each token, float[B, L, C]: normalize(W·H[i] + c); of heads that have this side."""
        return functional.normalize(self.projected(hidden), dim=-1)

    def lexical_logits(self, hidden: Tensor) -> Tensor:
        """w·H[i] + b of each token, float[B, L, 1]."""
        assert self.sparse is not None  # noqa: S101 - nobody asks for a side that is not among `sides`
        logits: Tensor = self.sparse(hidden)
        return logits

    def projected(self, hidden: Tensor) -> Tensor:
        """W·H[i] + c of each token, float[B, L, C]."""
        assert self.colbert is not None  # noqa: S101 - as above
        vectors: Tensor = self.colbert(hidden)
        return vectors


def pool(hidden: Tensor, mask: Tensor, settings: EncodingSettings) -> Tensor:
    """One vector of each text, float[B, d], not normalized.

    `cls`: the first state; `mean`: the mean over all tokens; `last`: the last state; with MCLS: the mean of
    the CLS states.
    """
    if settings.mcls_every is not None:
        chosen = cls_positions(mask, settings.mcls_every)
    elif settings.pooling == "cls":
        return hidden[:, 0]
    elif settings.pooling == "last":
        last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, hidden.shape[2])
        return hidden.gather(1, last).squeeze(1)
    else:
        chosen = mask
    weights = chosen.to(hidden.dtype).unsqueeze(-1)  # (B, L, 1)
    return (hidden * weights).sum(1) / weights.sum(1)


def cls_positions(mask: Tensor, every: int) -> Tensor:
    """1 where MCLS puts a CLS, int[B, L]: positions divisible by `every`, but for the last special token."""
    position = torch.arange(mask.shape[1], device=mask.device)
    followed = functional.pad(mask[:, 1:], (0, 1))
    return followed * (position % every == 0).to(mask.dtype)


def load_heads(folder: Path, width: int, settings: EncodingSettings) -> Heads:
    """Heads of a checkpoint, from heads.safetensors or from sparse_linear.pt and colbert_linear.pt, that of
    lexical weights also as GTE has it; without a file it has no such side.

    Raises CheckpointError naming the file that is damaged or of the wrong shape, or where no side is left.
    """
    if (folder / HEADS_FILE).is_file():
        weights = read_heads(folder, width)
    else:
        arrays = {**token_weight_head(folder), **_linear(folder, "sparse"), **_linear(folder, "colbert")}
        weights = HeadWeights.from_arrays(arrays, f"sparse_linear.pt or colbert_linear.pt in {folder}", width)
    weights.require_dimension(settings.colbert_dimension, folder)
    if settings.splade is not None:
        weights.require_no_sparse(folder)
    heads = Heads.from_weights(weights, settings)
    if not heads.sides and settings.splade is None:
        raise CheckpointError(
            f"{folder} has no side: {SETTINGS_FILE} says pooling none and no splade, and there is neither "
            f"{HEADS_FILE} nor sparse_linear.pt nor colbert_linear.pt"
        )
    return heads


def _linear(folder: Path, head: str) -> dict[str, Float32]:
    path = folder / f"{head}_linear.pt"
    if not path.is_file():
        return {}
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read as plain weights: {error}") from error
    return {f"{head}.{name}": value.float().numpy() for name, value in state.items()}
