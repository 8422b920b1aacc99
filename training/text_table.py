"""The documents of a pre-training run as rows of a token store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from models.tokenizer import Tokenizer
from training.batch_plan import EpochPlan, SourceBatch, length_batches, shuffled_plan
from training.config import DataSettings, LengthGroup
from training.documents import read_texts
from training.errors import TrainingDataError
from training.token_store import TokenStore, TokenWriter


def read_text_table(
    settings: DataSettings, data: Path, work: Path, tokenizer: Tokenizer
) -> tuple[TokenStore, ...]:
    """The documents of every source of format `texts`, title before text; token ids go to files below `work`.

    Raises TrainingDataError for a bad line, naming it, and for a source without documents.
    """
    tokenize = partial(tokenizer.tokenize, input_type="document", max_length=settings.passage_tokens)
    stores = []
    for number, source in enumerate(settings.sources):
        with TokenWriter(work / f"texts-{number}.tokens", tokenize) as writer:
            for document in read_texts(data / source.path, source.lines, source.language):
                writer.add(f"{document.title}\n{document.text}" if document.title else document.text)
            stores.append(writer.store())
        if len(stores[-1]) == 0:
            raise TrainingDataError(f"{source.path}: holds no document")
    return tuple(stores)


def plan_texts(
    stores: Sequence[TokenStore],
    groups: Sequence[LengthGroup],
    devices: int,
    least_tokens: int,
    seed: int,
    epoch: int,
) -> EpochPlan:
    """Every document of at least `least_tokens` once, but for what fills no last batch of its group."""
    generator = np.random.default_rng([seed, epoch])
    batches: list[SourceBatch] = []
    for number, store in enumerate(stores):
        long_enough = np.flatnonzero(store.lengths >= least_tokens)
        batches += length_batches(
            number, long_enough, store.lengths[long_enough], groups, devices, generator.permutation
        )
    return shuffled_plan(batches, generator)
