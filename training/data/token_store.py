"""Token ids of many texts, written to disk as they are read and memory-mapped afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from tercet.models.representations import Bool, Int32, Int64, TokenBatch, offsets_of, ragged_positions

TEXTS_AT_ONCE = 1024
Tokenize = Callable[[list[str]], TokenBatch]


@dataclass(frozen=True, slots=True)
class TokenStore:
    """Token ids of T texts, packed: token_ids int32[ΣL], memory-mapped; offsets int64[T+1]."""

    token_ids: Int32
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64:
        """Tokens of each text, int64[T]."""
        return np.diff(self.offsets)

    def take(self, rows: Int64) -> TokenBatch:
        """The given texts, in the given order."""
        whole: Bool = np.zeros(len(rows), np.bool_)
        return TokenBatch(
            self.token_ids[ragged_positions(self.offsets, rows)], offsets_of(self.lengths[rows]), whole
        )


class TokenWriter:
    """Writes token ids to a file; memory holds the lengths and no more than a block of texts."""

    def __init__(self, path: Path, tokenize: Tokenize) -> None:
        self._path = path
        self._tokenize = tokenize
        self._file = path.open("wb")
        self._lengths: list[Int64] = []
        self._pending: list[str] = []

    def __enter__(self) -> TokenWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends writing; the store stays."""
        self._file.close()

    def add(self, text: str) -> None:
        """Takes one text more; its row is the number of texts taken before."""
        self._pending.append(text)
        if len(self._pending) == TEXTS_AT_ONCE:
            self._write()

    def store(self) -> TokenStore:
        """All texts taken so far, in order."""
        self._write()
        self._file.flush()
        offsets = offsets_of(np.concatenate([np.zeros(0, np.int64), *self._lengths]))
        if offsets[-1] == 0:  # an empty file cannot be mapped
            return TokenStore(np.zeros(0, np.int32), offsets)
        return TokenStore(np.memmap(self._path, np.int32, "r"), offsets)

    def _write(self) -> None:
        if not self._pending:
            return
        batch = self._tokenize(self._pending)
        self._file.write(batch.token_ids.tobytes())
        self._lengths.append(batch.lengths)
        self._pending = []
