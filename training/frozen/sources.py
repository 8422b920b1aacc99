"""Training sources made ready for fitting: pairs as rows of hidden states, part of them held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.representations import InputType, Int64
from models.tokenizer import Tokenizer
from training.data import TrainingPair
from training.frozen.config import SourceSettings
from training.frozen.hidden_states import (
    Body,
    HiddenStates,
    Progress,
    compute_hidden_states,
    is_complete,
    open_hidden_states,
)

BATCH_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class PreparedSource:
    """A source's P pairs and the hidden states of their texts.

    queries: row i is the query of pair i; passages: the distinct passages of all pairs.
    positives, negatives: for each pair, rows of `passages`. training, development: pair numbers;
    no passage of a development pair is a positive of a training pair.
    """

    settings: SourceSettings
    queries: HiddenStates
    passages: HiddenStates
    positives: tuple[Int64, ...]
    negatives: tuple[Int64, ...]
    training: Int64
    development: Int64


@dataclass(frozen=True, slots=True)
class FrozenEncoder:
    """What turns texts into hidden states kept below `work`. `digest` stands for the body's weights."""

    body: Body
    tokenizer: Tokenizer
    digest: str
    work: Path
    progress: Progress

    def hidden_states(self, texts: Sequence[str], max_tokens: int, input_type: InputType) -> HiddenStates:
        """Hidden states of texts cut at `max_tokens`; read from disk where an earlier run has left them."""
        batch = self.tokenizer.tokenize(texts, input_type, max_length=max_tokens)
        digest = hashlib.sha256(self.digest.encode())
        for array in (batch.offsets, batch.token_ids):
            digest.update(array.tobytes())
        folder = self.work / digest.hexdigest()[:16]
        if is_complete(folder):
            return open_hidden_states(folder)
        return compute_hidden_states(
            self.body, batch, self.tokenizer.pad_id, folder, batch_tokens=BATCH_TOKENS, progress=self.progress
        )


def prepare_source(
    settings: SourceSettings,
    pairs: Sequence[TrainingPair],
    encoder: FrozenEncoder,
    *,
    query_tokens: int,
    passage_tokens: int,
) -> PreparedSource:
    """Encodes the pairs, in the order given, and holds out the first `development_pairs` of them."""
    if not settings.train:
        pairs = pairs[: settings.development_pairs]
    rows: dict[str, int] = {}
    positives = tuple(passage_rows(pair.positives, rows) for pair in pairs)
    negatives = tuple(passage_rows(pair.negatives, rows) for pair in pairs)
    development, training = held_out_split(positives, settings.development_pairs)
    return PreparedSource(
        settings,
        encoder.hidden_states([pair.query for pair in pairs], query_tokens, "query"),
        encoder.hidden_states(list(rows), passage_tokens, "document"),
        positives,
        negatives,
        training if settings.train else training[:0],
        development,
    )


def passage_rows(passages: Iterable[str], rows: dict[str, int]) -> Int64:
    """The row of each passage; one not seen before gets the next row."""
    return np.array([rows.setdefault(passage, len(rows)) for passage in passages], np.int64)


def held_out_split(positives: Sequence[Int64], count: int) -> tuple[Int64, Int64]:
    """Numbers of the first `count` pairs, and of the later pairs that share no positive with them."""
    held = {row for rows in positives[:count] for row in rows.tolist()}
    later = [i for i in range(count, len(positives)) if held.isdisjoint(positives[i].tolist())]
    return np.arange(min(count, len(positives)), dtype=np.int64), np.array(later, np.int64)
