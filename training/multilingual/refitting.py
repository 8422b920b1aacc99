"""The weights between a base and what was trained of it, with heads that fit the states of that body.

The mean of both bodies' weights keeps what the first one knew of texts unlike the training's, and most of
what was learned (Wortsman et al. 2022, arXiv 2109.01903). The heads are fitted to the states that it gives:
the lexical weights to those of the trained checkpoint, the projection of token vectors to the states' own
rankings. Then dense vectors are centred and lexical weights scaled, so that no side drowns in the sum.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tercet.models.checkpoint import read_settings as read_encoding
from tercet.models.encoder_model import load_model
from tercet.models.heads import Heads
from tercet.models.representations import Float32, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.head_weights import SPARSE, HeadWeights, LinearHead
from tercet.training.data.pair_table import read_tables
from tercet.training.m3.centring import centre, mean_of_dense
from tercet.training.m3.initial_heads import ridge_regression, sample_pairs, token_states
from tercet.training.m3.projection import distilled_projection
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.merging import merge_checkpoints
from tercet.training.runs.base import Base
from tercet.training.runs.checkpoint_writer import write_checkpoint
from tercet.training.settings.objective import HalfwaySettings, HeadSettings
from tercet.training.settings.run import FinetuneRun


def fitted_heads(
    trained: TextEncoder,
    between: TextEncoder,
    queries: TokenBatch,
    passages: TokenBatch,
    settings: HeadSettings,
    seed: int,
) -> HeadWeights:
    """Heads for the states of `between`. Those of `trained` give the lexical weights to meet, by least
    squares, and the projection to begin with.
    """
    lexical, projection = trained.model.heads.weights().both()
    taught = [
        _flat(token_states(trained, texts)) @ lexical.weight[0] + lexical.bias[0]
        for texts in (queries, passages)
    ]
    query_states, passage_states = token_states(between, queries), token_states(between, passages)
    sparse, bias = ridge_regression(
        np.concatenate([_flat(query_states), _flat(passage_states)]),
        np.concatenate(taught),
        settings.ridge_penalty,
    )
    colbert, colbert_bias = distilled_projection(
        query_states, passage_states, projection.weight, settings.distil_steps, seed
    )
    return HeadWeights(
        LinearHead(sparse[None, :], np.array([bias], np.float32)), LinearHead(colbert, colbert_bias)
    )


def write_halfway(
    settings: FinetuneRun, halfway: HalfwaySettings, base: Base, data: Path, output: Path, work: Path
) -> None:
    """Writes what a run has trained, `base.model`, as the checkpoint between it and its base.

    work: of the run, for what is in between. Raises TrainingError and ModelError.
    """
    trained, between = work / "trained", work / "between"
    shutil.rmtree(between, ignore_errors=True)  # of a run that was cut off here
    write_checkpoint(trained, base.folder, base.model, base.encoding, with_heads=True)
    merge_checkpoints([trained], between, base.folder, [halfway.share])
    refit(settings, data, trained, between, output, halfway.lexical_scale)
    for folder in (trained, between):
        shutil.rmtree(folder)


def refit(
    settings: FinetuneRun, data: Path, trained: Path, between: Path, output: Path, lexical_scale: float
) -> None:
    """Writes the body of `between` with heads for its states. A lexical score is multiplied by the square of
    `lexical_scale`. Raises TrainingError and ModelError.
    """
    encoding = read_encoding(trained)
    tokenizer = Tokenizer.load(trained, encoding)
    finished = load_model(trained, encoding)
    merged = load_model(between, encoding)
    batch_tokens = settings.batches.sub_batch_tokens
    before, after = (
        TextEncoder(model.eval(), tokenizer, batch_tokens, "float32", "cpu") for model in (finished, merged)
    )
    with tempfile.TemporaryDirectory(prefix="tercet-refitting-") as work:
        tables = read_tables(
            settings.data, data, Path(work), tokenizer, settings.batches.neighbours, settings.seed
        )
        training = [table for table in tables if table.settings.train]
        texts = sample_pairs(training, settings.heads.tokens_each, settings.seed)
    merged.heads = Heads.from_weights(
        fitted_heads(before, after, *texts, settings.heads, settings.seed), encoding
    )
    centre(merged, mean_of_dense(after, *texts))
    for name, parameter in merged.heads.named_parameters():
        if name in SPARSE:
            parameter.data *= lexical_scale
    write_checkpoint(output, trained, merged, encoding, with_heads=True)


def _flat(texts: Sequence[Tensor]) -> Float32:
    """The states of all texts' tokens, float32[T, D]."""
    states: Float32 = torch.cat(list(texts)).float().numpy()
    return states
