"""Texts through packed passes: each is launched before the one before it has come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tercet.models.batching import plan_passes, warn_of_halves
from tercet.models.errors import EncoderMemoryError
from tercet.models.packed.recorded import Recordings
from tercet.models.packed.shapes import Shape
from tercet.models.packed.transfers import Arriving, Transfers
from tercet.models.representations import (
    Bool,
    Float32,
    Int64,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
    TokenVectors,
    offsets_of,
)
from tercet.models.tokenizer import Tokenizer
from tercet.models.torch_memory import memory_errors, release_memory

AHEAD = 1  # passes launched and not yet brought back while the next is launched
RECORDED_TOKENS = 8192  # of a pass whose launches take long beside its work; larger ones hide them
MOST_RECORDINGS = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What a call asks for. lengths: int64[B], tokens; weightless: bool[ΣL], those of an instruction;
    vectors: int64[B+1], offsets of the texts' token vectors.
    """

    batch: TokenBatch
    outputs: tuple[Output, ...]
    lengths: Int64
    weightless: Bool
    vectors: Int64


@dataclass(frozen=True, slots=True, eq=False)
class _Launched:
    """A pass over the texts from start to end, and what comes of it."""

    start: int
    end: int
    arriving: Arriving


class PackedPasses:
    """Encodes texts in their order, without padding between them. Safe to use from several threads."""

    def __init__(
        self,
        model: Callable[..., Mapping[str, Tensor]],
        tokenizer: Tokenizer,
        transfers: Transfers,
        budget_tokens: int,
        *,
        recordings: Recordings | None = None,
        shared_shapes: bool = False,
    ) -> None:
        """model: a `PackedModel`, or what computes the same; budget_tokens: of a pass; recordings: of passes
        of up to RECORDED_TOKENS; shared_shapes: whether passes are lengthened to sizes that many have in
        common, so that each is recorded once.
        """
        self._model = model
        self._tokenizer = tokenizer
        self._transfers = transfers
        self._budget_tokens = budget_tokens
        self._recordings = recordings
        self._shared_shapes = shared_shapes

    @torch.inference_mode()
    def encode(self, batch: TokenBatch, outputs: Sequence[Output]) -> Representations:
        """Representations of at least one text, of outputs that the model has.

        Raises EncoderMemoryError where memory does not suffice for one text by itself.
        """
        lengths = batch.lengths
        vectors = offsets_of(self._kept_tokens(lengths))
        work = _Work(batch, tuple(outputs), lengths, self._tokenizer.is_instruction(batch), vectors)
        gathered = _Gathered(work)
        waiting: deque[_Launched] = deque()
        for start, end in plan_passes(batch.offsets, self._budget_tokens):
            for launched in self._launch_what_fits(work, start, end):
                waiting.append(launched)
                if len(waiting) > AHEAD:
                    gathered.add(waiting.popleft())
        while waiting:
            gathered.add(waiting.popleft())
        return gathered.representations()

    def _launch_what_fits(self, work: _Work, start: int, end: int) -> Iterator[_Launched]:
        """The texts from start to end, in halves where memory does not suffice."""
        try:
            with memory_errors():
                launched = self._launch(work, start, end)
        except (EncoderMemoryError, MemoryError) as error:
            reason = str(error)
        else:
            yield launched
            return
        # Only now, since the exception kept alive what the failed pass had allocated.
        warn_of_halves(work.lengths[start:end], reason)
        if self._recordings is not None:
            self._recordings.clear()
        release_memory(self._transfers.device)
        middle = (start + end) // 2
        yield from self._launch_what_fits(work, start, middle)
        yield from self._launch_what_fits(work, middle, end)

    def _launch(self, work: _Work, start: int, end: int) -> _Launched:
        offsets, outputs = work.batch.offsets, work.outputs
        tokens = slice(int(offsets[start]), int(offsets[end]))
        own = (offsets[start : end + 1] - offsets[start]).astype(np.int32)
        exact = Shape.of(work.lengths[start:end])
        shape = exact.rounded() if self._shared_shapes else exact
        to_device = self._transfers.to_device
        inputs = (
            to_device(work.batch.token_ids[tokens], shape.tokens, self._tokenizer.pad_id),
            to_device(own, shape.texts + 1, exact.tokens),
            to_device(work.weightless[tokens], shape.tokens, 0),
        )

        def run(inputs: Sequence[Tensor]) -> Mapping[str, Tensor]:
            return self._model(*inputs, shape.longest, outputs)

        if self._recordings is None or shape.tokens > RECORDED_TOKENS:
            arrays = run(inputs)
        else:
            arrays = self._recordings((shape, outputs), run, inputs)
        sizes = {
            "dense": exact.texts,
            "sparse_ids": exact.tokens,
            "sparse_weights": exact.tokens,
            "sparse_indptr": exact.texts + 1,
            "colbert": int(work.vectors[end] - work.vectors[start]),
        }
        filled = {name: tensor[: sizes[name]] for name, tensor in arrays.items()}
        return _Launched(start, end, self._transfers.to_host(filled))

    def _kept_tokens(self, lengths: Int64) -> Int64:
        """Token vectors of each text: of all tokens but the first, and the CLS that MCLS put between."""
        every = self._tokenizer.settings.mcls_every
        return lengths - 1 if every is None else lengths - 1 - np.maximum(lengths - 2, 0) // every


class _Gathered:
    """The representations of all texts, filled pass by pass at their places."""

    def __init__(self, work: _Work) -> None:
        self._work = work
        self._dense: Float32 | None = None
        self._colbert: Float32 | None = None
        self._sparse: list[SparseRows] = []

    def add(self, launched: _Launched) -> None:
        """Takes what a pass gave, once it is there."""
        arrays = launched.arriving.wait()
        work, start = self._work, launched.start
        if "dense" in arrays:
            self._dense = _placed(self._dense, arrays["dense"], start, len(work.batch))
        if "sparse_indptr" in arrays:
            indptr = arrays["sparse_indptr"].numpy().copy()
            ids, weights = (arrays[name][: indptr[-1]].numpy() for name in ("sparse_ids", "sparse_weights"))
            self._sparse.append(SparseRows(indptr, ids.copy(), weights.copy()))
        if "colbert" in arrays:
            first, total = int(work.vectors[start]), int(work.vectors[-1])
            self._colbert = _placed(self._colbert, arrays["colbert"], first, total)

    def representations(self) -> Representations:
        """The representations of all texts, once every pass was added."""
        work = self._work
        return Representations(
            work.lengths,
            work.batch.truncated,
            self._dense,
            SparseRows.concatenate(self._sparse) if self._sparse else None,
            None if self._colbert is None else TokenVectors(self._colbert, work.vectors),
        )


def _placed(rows: Float32 | None, part: Tensor, start: int, total: int) -> Float32:
    """All `total` rows, with those found from `start` on, in float32 whatever they came in."""
    if rows is None:
        rows = np.empty((total, part.shape[1]), np.float32)
    torch.from_numpy(rows[start : start + len(part)]).copy_(part)
    return rows
