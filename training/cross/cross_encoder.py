"""A cross-encoder: one logit for a query and a passage that are read together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from tercet.models.batching import plan_batches
from tercet.models.bodies import body_config
from tercet.models.encoder_model import without_loading_report
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import weight_files
from tercet.models.representations import Int32, Int64
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.tensor_files import UNREADABLE, unreadable
from tercet.training.precision import autocast
from tercet.training.settings.optimization import Precision
from tercet.training.transfer import on_device

# They have two separators between texts, as their own tokenizers put them; others have one.
TWO_SEPARATORS = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert"})
# What a body that was no cross-encoder before lacks, and begins with random weights.
NEW_PARTS = ("classifier", "score", "pooler", "head")


def load_cross_encoder(folder: Path) -> nn.Module:
    """A sequence classifier with one logit; what the checkpoint lacks above its body is random.

    Raises CheckpointError where weights are missing or damaged.
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
    missing = sorted(name for name in report["missing_keys"] if not set(NEW_PARTS) & set(name.split(".")[:2]))
    if missing:
        raise CheckpointError(f"{folder}: the weight files lack {len(missing)} tensors, such as {missing[0]}")
    classifier: nn.Module = model
    return classifier


class CrossEncoder:
    """A sequence classifier and the tokenizer that its texts are cut by."""

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, precision: Precision, device: str) -> None:
        self.model = model
        self._precision = precision
        self._device = device
        self._pad_id = tokenizer.pad_id
        config: Any = model.config
        prefix, suffix = tokenizer.frame("document")
        self._prefix_tokens = len(prefix)
        self._separator = suffix if config.model_type in TWO_SEPARATORS else suffix[:0]
        self._has_types = (getattr(config, "type_vocab_size", None) or 0) > 1

    def joined(self, query: Int32, passage: Int32) -> tuple[Int32, int]:
        """A query and a passage within their special tokens as one text, and where the passage starts."""
        first = np.concatenate([query, self._separator])
        return np.concatenate([first, passage[self._prefix_tokens :]]), len(first)

    def logits(self, texts: Sequence[tuple[Int32, int]]) -> Tensor:
        """The logit of each text of `joined`, in one pass; float32[B]."""
        lengths = np.array([len(ids) for ids, _ in texts], np.int64)
        starts = np.array([start for _, start in texts], np.int64)
        positions = np.arange(lengths.max())
        present = positions < lengths[:, None]
        ids = np.full(present.shape, self._pad_id, np.int64)
        ids[present] = np.concatenate([ids for ids, _ in texts])
        given = {"input_ids": ids, "attention_mask": present.astype(np.int64)}
        if self._has_types:
            given["token_type_ids"] = (present & (positions >= starts[:, None])).astype(np.int64)
        with autocast(self._device, self._precision):
            output = self.model(**{name: on_device(array, self._device) for name, array in given.items()})
        logits: Tensor = output.logits
        return logits[:, 0].float()

    def scores(self, texts: Sequence[tuple[Int32, int]], sub_batch_tokens: int) -> list[float]:
        """The logit of each text, without a graph, in passes of so many padded tokens."""
        lengths: Int64 = np.array([len(ids) for ids, _ in texts], np.int64)
        scores = np.zeros(len(texts), np.float32)
        for rows in plan_batches(lengths, sub_batch_tokens):
            with torch.no_grad():
                scores[rows] = self.logits([texts[row] for row in rows.tolist()]).cpu().numpy()
        found: list[float] = scores.tolist()
        return found
