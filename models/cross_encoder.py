"""A cross-encoder: one logit for a query and a passage that are read together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from tercet.models.batching import plan_batches
from tercet.models.bodies import body_config
from tercet.models.checkpoint import (
    CONFIG_FILE,
    DEFAULT_MAX_LENGTH,
    EncodingSettings,
    position_limit,
    read_json,
)
from tercet.models.cores import usable_cores
from tercet.models.encoder_model import PRECISIONS, default_precision, torch_device, without_loading_report
from tercet.models.errors import CheckpointError, UnsoundRepresentationsError
from tercet.models.fingerprint import weight_files
from tercet.models.representations import Float32, Int32, TokenBatch, offsets_of
from tercet.models.tokenizer import Tokenizer
from tercet.models.torch_memory import memory_errors
from tercet.models.weights.tensor_files import UNREADABLE, unreadable

CPU_PASS_TOKENS, GPU_PASS_TOKENS = 2048, 16_384  # which keep the device busy


class CrossEncoder:
    """A sequence classifier with one logit, and the tokenizer that its texts are cut by.

    precision: of products, float32, float16 or bfloat16; device: where the model is; longest: tokens of a
    pair that `pairs_of` makes, special tokens included.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Tokenizer,
        precision: str,
        device: torch.device | str,
        longest: int = DEFAULT_MAX_LENGTH,
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._precision = precision
        self._device = torch.device(device)
        self._longest = longest
        config: Any = model.config
        if config.pad_token_id is None:  # without one such a model takes no batches
            config.pad_token_id = tokenizer.pad_id
        prefix, suffix = tokenizer.frame("document")
        self._prefix_tokens, self._suffix_tokens = len(prefix), len(suffix)
        self._separator = tokenizer.separator
        self._has_types = (getattr(config, "type_vocab_size", None) or 0) > 1

    @property
    def pass_tokens(self) -> int:
        """Padded tokens of one pass that suit its device."""
        return GPU_PASS_TOKENS if self._device.type == "cuda" else CPU_PASS_TOKENS

    def pairs_of(self, query: str, passages: Sequence[str]) -> TokenBatch:
        """A query with each of at least one passage. What is too long is cut: the query to half of a pair,
        and a passage to what is left of it.
        """
        asked = self._tokenizer.tokenize([query], "query", max_length=self._longest // 2).token_ids
        room = self._longest - len(self._first(asked)) + self._prefix_tokens
        return self.pairs(asked, self._tokenizer.tokenize(passages, "document", max_length=room))

    def pairs(self, query: Int32, passages: TokenBatch) -> TokenBatch:
        """A query with each of at least one passage, all of them within special tokens, as texts of their
        own.
        """
        first = self._first(query)
        bounds = zip(passages.offsets[:-1] + self._prefix_tokens, passages.offsets[1:], strict=True)
        rows = [np.concatenate([first, passages.token_ids[start:end]]) for start, end in bounds]
        return TokenBatch(
            np.concatenate(rows),
            offsets_of(np.array([len(row) for row in rows])),
            passages.truncated,
            second_starts=np.full(len(rows), len(first), np.int64),
        )

    def _first(self, query: Int32) -> Int32:
        """What stands before a passage: a query, and the tokens that part both in place of those after it."""
        return np.concatenate([query[: len(query) - self._suffix_tokens], self._separator])

    def logits(self, pairs: TokenBatch) -> Tensor:
        """The logit of each pair, in one pass; float32[B]."""
        ids, mask = pairs.padded(self._tokenizer.pad_id)
        given = {"input_ids": ids, "attention_mask": mask}
        if self._has_types and pairs.second_starts is not None:
            given["token_type_ids"] = mask * (np.arange(ids.shape[1]) >= pairs.second_starts[:, None])
        tensors = {name: torch.from_numpy(array) for name, array in given.items()}
        if self._device.type == "cuda":  # from memory that is not pinned a copy waits for the GPU's work
            tensors = {
                name: tensor.pin_memory().to(self._device, non_blocking=True)
                for name, tensor in tensors.items()
            }
        half = self._precision != "float32"
        with torch.autocast(self._device.type, PRECISIONS[self._precision], enabled=half):
            output = self.model(**tensors)
        logits: Tensor = output.logits
        return logits[:, 0].float()

    def scores(self, pairs: TokenBatch, pass_tokens: int) -> Float32:
        """The logit of each pair float32[B], without a graph, in passes of so many padded tokens.

        Raises EncoderMemoryError where memory does not suffice, and UnsoundRepresentationsError for a logit
        that is no number.
        """
        scores = np.zeros(len(pairs), np.float32)
        for rows in plan_batches(pairs.lengths, pass_tokens):
            with memory_errors(), torch.no_grad():
                scores[rows] = self.logits(pairs.take(rows)).cpu().numpy()
        if not np.isfinite(scores).all():
            raise UnsoundRepresentationsError(
                "a cross-encoder made a logit that is no finite number; check its device and its weights"
            )
        return scores


def open_cross_encoder(folder: Path, device: str = "auto", threads: int | None = None) -> CrossEncoder:
    """A trained cross-encoder, ready to score. A pair has as many tokens as its model has positions for, and
    DEFAULT_MAX_LENGTH at most, as its cost grows with them.

    device: auto, cpu, cuda or cuda:NUMBER; threads: of a pass on a CPU, by default `usable_cores`.
    Raises CheckpointError where anything is missing or damaged, UnsupportedError for the device, and
    EncoderMemoryError where its memory does not suffice.
    """
    chosen = torch_device(device)
    limit = position_limit(read_json(folder / CONFIG_FILE))
    longest = DEFAULT_MAX_LENGTH if limit is None else min(limit, DEFAULT_MAX_LENGTH)
    tokenizer = Tokenizer.load(folder, EncodingSettings(max_length=longest))
    with memory_errors():
        model = load_cross_encoder(folder).eval().to(chosen)
    torch.set_num_threads(threads or min(torch.get_num_threads(), usable_cores()))
    return CrossEncoder(model, tokenizer, default_precision(chosen), chosen, longest)


def load_cross_encoder(folder: Path, untrained: Collection[str] = ()) -> nn.Module:
    """A sequence classifier with one logit.

    untrained: names of modules which a checkpoint may lack, and which then have random weights.
    Raises CheckpointError where other weights are missing, or any is damaged.
    """
    weight_files(folder)
    config: Any = body_config(folder)
    config.num_labels = 1
    try:
        with without_loading_report():
            model, report = AutoModelForSequenceClassification.from_pretrained(
                str(folder),
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except (*UNREADABLE, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(f"{folder}: no cross-encoder can be made of it: {unreadable(error)}") from error
    missing = sorted(name for name in report["missing_keys"] if not set(untrained) & set(name.split(".")[:2]))
    if missing:
        raise CheckpointError(f"{folder}: the weight files lack {len(missing)} tensors, such as {missing[0]}")
    classifier: nn.Module = model
    return classifier
