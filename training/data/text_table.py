"""The documents of a pre-training run as rows of a token store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tercet.models.representations import TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.batch_plan import EpochPlan, SourceBatch, length_batches, shuffled_plan
from tercet.training.data.documents import read_texts
from tercet.training.data.held_out import HeldOutTexts
from tercet.training.data.token_store import TokenStore, TokenWriter
from tercet.training.errors import TrainingDataError
from tercet.training.settings.data import LengthGroup, TextData


def read_text_table(
    settings: TextData, data: Path, work: Path, tokenizer: Tokenizer, seed: int
) -> tuple[TokenStore, ...]:
    """The documents of every source, title before text; token ids go to files below `work`.

    Raises TrainingDataError for a bad line, naming it, and for a source without documents.
    """
    held_out = HeldOutTexts.of(data / folder for folder in settings.held_out)
    tokenize = partial(tokenizer.tokenize, input_type="document", max_length=settings.passage_tokens)
    stores = []
    for number, source in enumerate(settings.sources):
        with TokenWriter(work / f"texts-{number}.tokens", tokenize) as writer:
            for document in read_texts(data / source.path, source.lines, source.language):
                if held_out.contain_any([document.text]):
                    continue
                writer.add(f"{document.title}\n{document.text}" if document.title else document.text)
            stores.append(writer.store())
        if len(stores[-1]) == 0:
            raise TrainingDataError(f"{source.path}: no document is left to train on")
        if source.most is not None and len(stores[-1]) > source.most:
            chosen = np.random.default_rng(seed).permutation(len(stores[-1]))[: source.most]
            stores[-1] = stored(work / f"chosen-{number}.tokens", stores[-1].take(np.sort(chosen)))
    return tuple(stores)


def stored(path: Path, texts: TokenBatch) -> TokenStore:
    """Texts as a store of their own, their token ids in a file."""
    texts.token_ids.tofile(path)
    return TokenStore(np.memmap(path, np.int32, "r"), texts.offsets)


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
