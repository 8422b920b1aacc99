"""The three representations from the last hidden states, in torch."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.checkpoint import EncodingSettings
from models.errors import CheckpointError
from models.head_weights import HEADS_FILE, HeadWeights, read_heads
from models.representations import Float32


class Heads(nn.Module):
    """Dense pooling, and linear heads for lexical weights and token vectors (Chen et al. 2024, section 3)."""

    def __init__(self, width: int, colbert_dimension: int, settings: EncodingSettings) -> None:
        super().__init__()
        self.settings = settings
        self.sparse = nn.Linear(width, 1)
        self.colbert = nn.Linear(width, colbert_dimension)

    @staticmethod
    def from_weights(weights: HeadWeights, settings: EncodingSettings) -> Heads:
        """Heads with trained weights."""
        heads = Heads(weights.colbert_weight.shape[1], weights.colbert_dimension, settings)
        heads.load_state_dict({name: torch.from_numpy(array) for name, array in weights.arrays().items()})
        return heads

    def weights(self) -> HeadWeights:
        """A copy of the weights as arrays, to be written; further training does not change it."""
        arrays: dict[str, Float32] = {
            k: v.detach().float().cpu().numpy().copy() for k, v in self.state_dict().items()
        }
        return HeadWeights.from_arrays(arrays, "heads", self.sparse.in_features)

    def forward(self, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """hidden: float[B, L, d]; mask: int[B, L], 1 on tokens, padded on the right.

        Returns dense float32[B, d]; sparse float32[B, L], the weight of each token; colbert
        float32[B, L, C]. Rows of padding are undefined.
        """
        hidden = hidden.float()
        return self.dense(hidden, mask), self.token_weights(hidden), self.token_vectors(hidden)

    def dense(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors float[B, d] from hidden states float[B, L, d]."""
        return functional.normalize(pool(hidden, mask, self.settings), dim=-1)

    def token_weights(self, hidden: Tensor) -> Tensor:
        """Lexical weight of each token, float[B, L]: relu(w·H[i] + b)."""
        return torch.relu(self.sparse(hidden)).squeeze(-1)

    def token_vectors(self, hidden: Tensor) -> Tensor:
        """Unit vector of each token, float[B, L, C]: normalize(W·H[i] + c)."""
        return functional.normalize(self.colbert(hidden), dim=-1)


def pool(hidden: Tensor, mask: Tensor, settings: EncodingSettings) -> Tensor:
    """One vector of each text, float[B, d], not normalized.

    `cls`: the first state; `mean`: the mean over all tokens; with MCLS: the mean of the CLS states.
    """
    if settings.mcls_every is not None:
        chosen = cls_positions(mask, settings.mcls_every)
    elif settings.pooling == "cls":
        return hidden[:, 0]
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
    """Heads of a checkpoint, from heads.safetensors or from sparse_linear.pt and colbert_linear.pt.

    Raises CheckpointError naming the file that is missing, damaged or of the wrong shape.
    """
    if (folder / HEADS_FILE).is_file():
        weights = read_heads(folder, width)
    else:
        arrays = {**_linear(folder, "sparse"), **_linear(folder, "colbert")}
        weights = HeadWeights.from_arrays(arrays, f"sparse_linear.pt or colbert_linear.pt in {folder}", width)
    weights.require_dimension(settings.colbert_dimension, folder)
    return Heads.from_weights(weights, settings)


def _linear(folder: Path, head: str) -> dict[str, Float32]:
    path = folder / f"{head}_linear.pt"
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing, and so is {HEADS_FILE}; a head is never random, "
            "so take it from the checkpoint or train one"
        )
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read as plain weights: {error}") from error
    return {f"{head}.{name}": value.float().numpy() for name, value in state.items()}
