"""Scores of another checkpoint, which the student's sum learns."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tercet.models.checkpoint import read_settings, resolve_checkpoint
from tercet.models.encoder_model import load_model
from tercet.models.errors import CheckpointError
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.batch_plan import PairBatch
from tercet.training.data.pair_table import PairTable, PairTexts
from tercet.training.distributed import Ranks
from tercet.training.m3.document_frequencies import SourceIdf
from tercet.training.m3.encoded_texts import SIDES
from tercet.training.m3.scores import side_scores
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.passes import prepare
from tercet.training.settings.optimization import Precision


class Teacher:
    """A trained checkpoint that stays as it is, with its own tokenizer and heads."""

    def __init__(self, checkpoint: str, sub_batch_tokens: int, precision: Precision, device: str) -> None:
        """checkpoint: as `tercet.models.checkpoint.resolve_checkpoint` takes it. Raises CheckpointError."""
        folder = resolve_checkpoint(checkpoint)
        settings = read_settings(folder)
        if settings.late_interaction is not None:
            raise CheckpointError(f"{folder} is an encoder of ColBERT's kind, which does not teach here")
        if settings.tasks is not None and not settings.tasks.is_one:
            raise CheckpointError(f"{folder} has adapters by task, with which it does not teach here")
        self.tokenizer = Tokenizer.load(folder, settings)
        model = load_model(folder, settings).requires_grad_(False).to(device)
        prepare(model.body)
        self._encoder = TextEncoder(model, self.tokenizer, sub_batch_tokens, precision, device)
        self._idf: dict[int, SourceIdf] = {}

    def weigh(self, tables: Sequence[PairTable]) -> None:
        """Takes the idf of each source that it teaches, where its lexical weights are made for that."""
        if self._encoder.lexical == "idf":
            for number, table in enumerate(tables):
                if table.taught is not None:
                    passages = table.taught.passages
                    self._idf[number] = SourceIdf.of(passages, self.tokenizer)

    def scores(self, texts: PairTexts, batch: PairBatch, ranks: Ranks) -> Tensor:
        """The plain sum float32[B, N] of this device's queries with the passages of all devices."""
        with torch.no_grad():
            queries = self._encoder.encode_all(texts.queries.take(batch.pairs))
            passages = self._encoder.encode_all(texts.passages.take(batch.passages)).of_all(ranks, SIDES)
            idf = self._idf.get(batch.table)
            weighted = queries if idf is None else idf.weighted(queries)
            return torch.stack(list(side_scores(weighted, passages).values())).sum(dim=0)
