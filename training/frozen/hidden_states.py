"""Last hidden states of a frozen encoder, computed once and kept on disk as float16.

With the body frozen, an epoch over the heads only reads this file, so hours become minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from models.representations import Int32, Int64, TokenBatch, ragged_positions
from training.errors import TrainingDataError

Float16 = npt.NDArray[np.float16]
Body = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Maps token ids and mask, int64[B, L] each, to last hidden states float32[B, L, D]."""
Progress = Callable[[int, int], None]
"""Is told tokens done and tokens in all."""
DONE = "done.json"
REPORTS = 20


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """Hidden states of T texts, packed: states float16[ΣL, D], token_ids int32[ΣL], offsets int64[T+1]."""

    states: Float16
    token_ids: Int32
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def dimension(self) -> int:
        """Width of a hidden state."""
        return int(self.states.shape[1])

    def padded(self, rows: Int64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """States float32[B, L, D], token ids int64[B, L] and mask int64[B, L], padded right by zeros."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        mask = np.arange(int(lengths.max())) < lengths[:, None]
        positions = ragged_positions(self.offsets, rows)
        states = np.zeros((*mask.shape, self.dimension), np.float32)
        states[mask] = self.states[positions]
        token_ids = np.zeros(mask.shape, np.int64)
        token_ids[mask] = self.token_ids[positions]
        return torch.from_numpy(states), torch.from_numpy(token_ids), torch.from_numpy(mask.astype(np.int64))


def compute_hidden_states(
    body: Body, batch: TokenBatch, pad_id: int, folder: Path, *, batch_tokens: int, progress: Progress
) -> HiddenStates:
    """Runs the body over all texts and writes `states.npy`, `tokens.npy` and `offsets.npy` to the folder.

    Texts of like length share a batch of at most `batch_tokens` padded tokens. `done.json` is written last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DONE).unlink(missing_ok=True)
    total = int(batch.offsets[-1])
    states: Float16 | None = None
    done = 0
    for rows in length_grouped(batch.lengths, batch_tokens):
        ids, mask = batch.take(rows).padded(pad_id)
        with torch.inference_mode():
            hidden = body(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
        if states is None:
            shape = (total, hidden.shape[2])
            states = np.lib.format.open_memmap(folder / "states.npy", "w+", np.float16, shape)
        states[ragged_positions(batch.offsets, rows)] = hidden[mask.astype(bool)]
        before, done = done, done + int(mask.sum())
        if done * REPORTS // total > before * REPORTS // total:
            progress(done, total)
    if states is None:
        raise TrainingDataError("there is no text to encode; the sources hold no pairs")
    np.save(folder / "tokens.npy", batch.token_ids)
    np.save(folder / "offsets.npy", batch.offsets)
    (folder / DONE).write_text(json.dumps({"texts": len(batch), "tokens": total}))
    return open_hidden_states(folder)


def open_hidden_states(folder: Path) -> HiddenStates:
    """Opens what `compute_hidden_states` wrote; the states stay on disk, memory-mapped."""
    return HiddenStates(
        np.load(folder / "states.npy", mmap_mode="r"),
        np.load(folder / "tokens.npy"),
        np.load(folder / "offsets.npy"),
    )


def is_complete(folder: Path) -> bool:
    """Whether the folder holds hidden states that were written to the end."""
    return (folder / DONE).is_file()


def length_grouped(lengths: Int64, batch_tokens: int) -> Iterator[Int64]:
    """Rows in batches of like length, longest first, of at most `batch_tokens` padded tokens or one row."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        count = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + count]
        start += count
