"""Fits the two heads on a frozen encoder: `python -m training.frozen.fit_heads CONFIG --data FOLDER`.

The encoder's hidden states are computed once; each step then only runs the heads, scores every query with
every passage of the batch in three ways, and takes the loss of `training.frozen.losses`.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch

from models.checkpoint import EncodingSettings
from models.errors import ModelError
from models.head_weights import HeadWeights
from models.heads import Heads
from models.tokenizer import Tokenizer
from models.torch_encoder import load_body
from training.base_checkpoint import locate_base
from training.data import joined_neighbours, passages_of, read_pairs, shuffled, without_overlap
from training.errors import TrainingDataError, TrainingError
from training.frozen.batches import batches_per_epoch, epoch_batches
from training.frozen.checkpoint_writer import write_checkpoint
from training.frozen.config import FitSettings, OptimizationSettings, load_settings
from training.frozen.development import development_figures
from training.frozen.encoded_texts import encode_texts
from training.frozen.fit_report import EpochReport, FitReport
from training.frozen.hidden_states import Body
from training.frozen.initial_heads import initial_heads
from training.frozen.losses import total_loss
from training.frozen.sources import FrozenEncoder, PreparedSource, prepare_source
from training.scores import three_scores

log = logging.getLogger(__name__)


def fit(
    heads: Heads, sources: Sequence[PreparedSource], special_ids: frozenset[int], settings: FitSettings
) -> FitReport:
    """Trains the heads in place and leaves them as they were after the epoch of the best development figure.

    Epoch 0 in the report is the starting point, and is kept where no epoch improves on it.
    """
    generator = np.random.default_rng(settings.seed)
    optimization = settings.optimization
    steps = optimization.epochs * batches_per_epoch(sources, optimization.batch_pairs)
    if steps == 0:
        raise TrainingDataError(
            f"no source has {optimization.batch_pairs} training pairs, a whole batch; lower batch_pairs"
        )
    optimizer, schedule = make_optimizer(heads, optimization, steps)
    epochs = [EpochReport(0, {}, develop(heads, sources, special_ids))]
    best_weights = heads.weights()
    log.info("%s", epochs[0])
    for number in range(1, optimization.epochs + 1):
        losses: list[dict[str, float]] = []
        for batch in epoch_batches(sources, optimization.batch_pairs, generator):
            queries = encode_texts(heads, special_ids, batch.source.queries, batch.queries)
            passages = encode_texts(heads, special_ids, batch.source.passages, batch.passages)
            scores = three_scores(queries, passages)
            loss, terms = total_loss(scores, torch.from_numpy(batch.allowed), settings.losses)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimizer.step()
            schedule.step()
            losses.append({"total": float(loss.detach()), **terms})
        means = {name: float(np.mean([step[name] for step in losses])) for name in losses[0]}
        epochs.append(EpochReport(number, means, develop(heads, sources, special_ids)))
        log.info("%s", epochs[-1])
        if epochs[-1].figure > max(epoch.figure for epoch in epochs[:-1]):
            best_weights = heads.weights()
    heads.load_state_dict({name: torch.from_numpy(array) for name, array in best_weights.arrays().items()})
    return FitReport(
        heads.sparse.in_features, tuple(epochs), tuple(len(source.training) for source in sources)
    )


def make_optimizer(
    heads: Heads, settings: OptimizationSettings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW over the two heads, with linear warm-up and linear decay to zero over `steps`."""
    optimizer = torch.optim.AdamW(
        [*heads.sparse.parameters(), *heads.colbert.parameters()],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    warm = max(1, round(settings.warmup * steps))

    def factor(step: int) -> float:
        return min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def develop(
    heads: Heads, sources: Sequence[PreparedSource], special_ids: frozenset[int]
) -> dict[str, dict[str, float]]:
    """Development figures of every source that holds pairs out."""
    encode = partial(encode_texts, heads, special_ids)
    return {s.settings.path: development_figures(encode, s) for s in sources if len(s.development)}


def run(settings: FitSettings, data: Path, work: Path, output: Path) -> tuple[FitReport, ...]:
    """The whole of a run, from the base weights and the data folder to a checkpoint folder.

    Returns the report of each fit.
    """
    base = locate_base(settings.base)
    encoding = EncodingSettings.from_json(asdict(settings.encoder))
    tokenizer = Tokenizer.load(base, encoding)
    encoder = FrozenEncoder(frozen_body(base), tokenizer, settings.base.sha256, work, report_progress)
    fitted = [fit_once(settings, number, data, encoder) for number in range(settings.fits)]
    reports = tuple(report for _, report in fitted)
    write_checkpoint(output, base, mean_heads([heads for heads, _ in fitted]), settings, reports)
    return reports


def fit_once(
    settings: FitSettings, number: int, data: Path, encoder: FrozenEncoder
) -> tuple[HeadWeights, FitReport]:
    """The heads of fit `number`, counted from 0, and its report."""
    log.info("fit %d of %d", number + 1, settings.fits)
    sources = prepare_sources(settings, number, data, encoder)
    tokenizer = encoder.tokenizer
    starting = initial_heads(
        [source.passages for source in sources if source.settings.train],
        tokenizer.vocabulary_size,
        tokenizer.special_ids,
        settings.encoder.colbert_dimension,
        settings.initial,
        settings.seed,
    )
    heads = Heads.from_weights(starting, EncodingSettings.from_json(asdict(settings.encoder)))
    report = fit(heads, sources, tokenizer.special_ids, settings)
    return heads.weights(), report


def mean_heads(fitted: Sequence[HeadWeights]) -> HeadWeights:
    """The mean of each weight. Heads of like fits lie close together, and their mean ranks more steadily
    than any of them (Wortsman et al. 2022, arXiv 2203.05482).
    """
    means = {name: np.mean([heads.arrays()[name] for heads in fitted], axis=0) for name in fitted[0].arrays()}
    return HeadWeights.from_arrays(means, "the mean of the fits", fitted[0].sparse_weight.shape[1])


def frozen_body(folder: Path) -> Body:
    """The encoder's body as a function from token ids and mask to last hidden states."""
    module = load_body(folder)

    def body(token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = module(input_ids=token_ids, attention_mask=mask).last_hidden_state
        return states

    return body


def prepare_sources(
    settings: FitSettings, number: int, data: Path, encoder: FrozenEncoder
) -> list[PreparedSource]:
    """The sources of fit `number`: read from their files, less what held-out folders contain, and encoded."""
    held_out = [text for folder in settings.data.held_out for text in passages_of(data / folder)]
    prepared = []
    for source in settings.data.sources:
        pairs = list(read_pairs(data / source.path))
        kept = without_overlap(pairs, held_out)
        log.info(
            "%s: %d pairs, %d of them left out as held out", source.path, len(pairs), len(pairs) - len(kept)
        )
        up_to = source.join_up_to[min(number, len(source.join_up_to) - 1)]
        prepared.append(
            prepare_source(
                source,
                shuffled(
                    joined_neighbours(kept, up_to, settings.seed),
                    settings.seed,
                    source.neighbours,
                ),
                encoder,
                query_tokens=settings.data.query_tokens,
                passage_tokens=settings.data.passage_tokens,
            )
        )
    return prepared


def report_progress(done: int, total: int) -> None:
    """Logs the share of tokens encoded."""
    log.info("hidden states: %d of %d tokens", done, total)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code: 0 done, 1 failed with one line that says why."""
    parser = argparse.ArgumentParser(prog="python -m training.frozen.fit_heads", description=__doc__)
    parser.add_argument("config", type=Path, help="run settings, TOML or JSON")
    parser.add_argument("--data", type=Path, required=True, help="folder that the sources' paths start from")
    parser.add_argument("--output", type=Path, required=True, help="folder of the checkpoint to write")
    parser.add_argument("--work", type=Path, help="folder for hidden states (default: OUTPUT/work)")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        settings = load_settings(options.config)
        run(settings, options.data, options.work or options.output / "work", options.output)
    except (TrainingError, ModelError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
