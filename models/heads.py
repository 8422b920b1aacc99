"""The three representations from the last hidden states, in torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.models.checkpoint import CONFIG_FILE, SETTINGS_FILE, EncodingSettings, read_json
from tercet.models.errors import CheckpointError
from tercet.models.formats.multi_vector import dense_of_tokens
from tercet.models.formats.sentence_transformers import MODULES_FILE, dense_after_pooling
from tercet.models.formats.stanford_colbert import is_stanford
from tercet.models.representations import Float32, Output, sides_of
from tercet.models.weights.array_files import read_arrays
from tercet.models.weights.dense_layers import Layers
from tercet.models.weights.dense_modules import Projection, linear_of, read_layers, stanford_projection
from tercet.models.weights.gte_head import token_weight_head
from tercet.models.weights.head_weights import (
    COLBERT,
    HEADS_FILE,
    SPARSE,
    HeadWeights,
    read_heads,
)
from tercet.models.weights.tensor_files import read_weights


class Heads(nn.Module):
    """Dense pooling, and linear heads for lexical weights and token vectors (Chen et al. 2024, section 3)."""

    sparse: nn.Linear | None
    colbert: nn.Linear | None

    def __init__(
        self,
        width: int,
        colbert_dimension: int,
        settings: EncodingSettings,
        *,
        sparse: bool = True,
        dense_layers: Layers = (),
        token_layers: Layers = (),
    ) -> None:
        """colbert_dimension: 0 without a linear head of token vectors; sparse: whether there are lexical
        weights; dense_layers, token_layers: as `HeadWeights` has them.
        """
        super().__init__()
        self.settings = settings
        self.sparse = nn.Linear(width, 1) if sparse else None
        self.colbert = nn.Linear(width, colbert_dimension) if colbert_dimension else None
        self.dense_layers = Projection(dense_layers)
        self.token_layers = Projection(token_layers)

    @staticmethod
    def from_weights(weights: HeadWeights, settings: EncodingSettings) -> Heads:
        """Heads with trained weights."""
        width = max((head.weight.shape[1] for head in (weights.sparse, weights.colbert) if head), default=0)
        heads = Heads(
            width,
            0 if weights.colbert is None else weights.colbert_dimension,
            settings,
            sparse=weights.sparse is not None,
            dense_layers=weights.dense,
            token_layers=weights.tokens,
        )
        for name, parameter in heads.named_parameters():
            if name in (*SPARSE, *COLBERT):
                parameter.data = torch.from_numpy(weights.arrays()[name]).clone()
        return heads

    def weights(self) -> HeadWeights:
        """A copy of the weights as arrays, to be written; further training does not change it."""
        arrays: dict[str, Float32] = {
            k: v.detach().float().cpu().numpy().copy()
            for k, v in self.state_dict().items()
            if k in (*SPARSE, *COLBERT)
        }
        width = max((head.in_features for head in (self.sparse, self.colbert) if head is not None), default=0)
        linear = HeadWeights.from_arrays(arrays, "heads", width)
        return replace(linear, dense=self.dense_layers.layers, tokens=self.token_layers.layers)

    @property
    def sides(self) -> tuple[Output, ...]:
        """What there is."""
        dense = int(self.settings.pooling != "none")
        colbert = int(self.colbert is not None or bool(self.token_layers.layers))
        return sides_of(dense, int(self.sparse is not None), colbert)

    def forward(self, hidden: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """hidden: float[B, L, d]; mask: int[B, L], 1 on tokens, padded on the right.

        Returns dense float32[B, d]; sparse float32[B, L], the weight of each token; colbert
        float32[B, L, C]; of these the sides that there are. Rows of padding are undefined.
        """
        hidden = hidden.float()
        compute = {
            "dense": lambda: self.dense(hidden, mask),
            "sparse": lambda: self.token_weights(hidden),
            "colbert": lambda: self.token_vectors(hidden),
        }
        return tuple(compute[side]() for side in self.sides)

    def dense(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors float[B, d] from hidden states float[B, L, d]."""
        return functional.normalize(self.dense_layers(pool(hidden, mask, self.settings)), dim=-1)

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
        """W·H[i] + c of each token, or what its layers give, float[B, L, C]."""
        if self.token_layers.layers:
            projected: Tensor = self.token_layers(hidden)
            return projected
        assert self.colbert is not None  # noqa: S101 - for the types: asked for only where it is there
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


def load_heads(folder: Path, width: int, settings: EncodingSettings, borrowed: Path | None = None) -> Heads:
    """Heads of a checkpoint, from heads.safetensors, or from sparse_linear.pt and colbert_linear.pt, or from
    the modules that it lists, that of lexical weights also as GTE has it; without a file it has no such side.

    borrowed: folder of another checkpoint, whose sparse and ColBERT heads take the place of its own.
    Raises CheckpointError naming the file that is damaged or of the wrong shape, or where no side is left.
    """
    own = checkpoint_heads(folder, width)
    weights = own if borrowed is None else with_heads_of(own, settings, folder, width, borrowed)
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


def checkpoint_heads(folder: Path, width: int) -> HeadWeights:
    """Heads of a checkpoint as arrays. Raises as `load_heads`."""
    if (folder / HEADS_FILE).is_file():
        heads = read_heads(folder, width)
    else:
        heads = HeadWeights.from_arrays(_linear_heads(folder), _linear_files(folder), width)
    if not heads.dense:
        heads = replace(heads, dense=read_layers(dense_after_pooling(folder), width))
    if heads.colbert_dimension:
        return heads
    if not (folder / MODULES_FILE).is_file() and is_stanford(read_json(folder / CONFIG_FILE)):
        return replace(heads, colbert=stanford_projection(folder, width))
    layers = read_layers(dense_of_tokens(folder), width)
    if len(layers) == 1 and layers[0].is_linear:
        return replace(heads, colbert=linear_of(layers[0]))
    return replace(heads, tokens=layers)


def with_heads_of(
    own: HeadWeights, settings: EncodingSettings, folder: Path, width: int, lender: Path
) -> HeadWeights:
    """The heads of a checkpoint with the sparse and ColBERT heads of another in the place of its own.

    folder, width: of the checkpoint that borrows. Raises CheckpointError where there are none, or none of its
    width.
    """
    if settings.late_interaction is not None:
        raise CheckpointError(
            f"{folder} has token vectors of ColBERT's kind, with markers or expansion, with which no other "
            "head goes; leave heads out"
        )
    if (lender / HEADS_FILE).is_file():
        source, arrays = str(lender / HEADS_FILE), read_arrays(lender / HEADS_FILE)
    else:
        source, arrays = _linear_files(lender), _linear_heads(lender)
    arrays = {name: array for name, array in arrays.items() if name in (*SPARSE, *COLBERT)}
    if not arrays:
        raise CheckpointError(
            f"{lender} has no heads to borrow: neither {HEADS_FILE} nor sparse_linear.pt nor "
            "colbert_linear.pt is there; name a checkpoint that has them, such as BAAI/bge-m3"
        )
    for name in (SPARSE[0], COLBERT[0]):
        lent = arrays[name].shape[-1] if name in arrays else width
        if lent != width:
            raise CheckpointError(
                f"the heads of {lender} are for states of width {lent}, and {folder} has width {width}; "
                "borrow from a checkpoint of that width"
            )
    borrowed = HeadWeights.from_arrays(arrays, source, width)
    return replace(own, sparse=borrowed.sparse or own.sparse, colbert=borrowed.colbert or own.colbert)


def _linear_files(folder: Path) -> str:
    return f"sparse_linear.pt or colbert_linear.pt in {folder}"


def _linear_heads(folder: Path) -> dict[str, Float32]:
    return {**token_weight_head(folder), **_linear(folder, "sparse"), **_linear(folder, "colbert")}


def _linear(folder: Path, head: str) -> dict[str, Float32]:
    path = folder / f"{head}_linear.pt"
    if not path.is_file():
        return {}
    arrays = read_weights(path)
    if not {"weight", "bias"} <= set(arrays):
        raise CheckpointError(f"{path} holds {sorted(arrays)}; a head has weight and bias")
    return {f"{head}.{name}": array for name, array in arrays.items()}
