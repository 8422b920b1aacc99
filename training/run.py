"""A whole run of `tercet train`, from settings and data to a checkpoint."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from tercet.models.checkpoint import CONFIG_FILE, EncodingSettings, position_limit, read_json
from tercet.models.cores import usable_cores
from tercet.models.cross_encoder import CrossEncoder, load_cross_encoder
from tercet.models.encoder_model import EncoderModel
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.training.cross.score_file import write_scores
from tercet.training.cross.scoring import NEW_PARTS, CrossScoring
from tercet.training.data.pair_table import read_tables, require_scores
from tercet.training.data.text_table import read_text_table
from tercet.training.distributed import Ranks, join_processes, leave_processes
from tercet.training.errors import ConfigError, TrainingDataError
from tercet.training.loop import Report, train
from tercet.training.m3.development import judged_side
from tercet.training.m3.finetune import Finetune
from tercet.training.m3.initial_heads import initial_heads
from tercet.training.m3.lexical_prior import LexicalPrior
from tercet.training.m3.losses import term_factors, trained_sides
from tercet.training.m3.teacher import Teacher
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.multilingual.refitting import write_halfway
from tercet.training.pretraining.condenser import Condenser
from tercet.training.pretraining.masked_lm import MaskedLm
from tercet.training.pretraining.mlm_head import load_mlm_head
from tercet.training.pretraining.retromae import RetroMae
from tercet.training.pretraining.stages import CoCondenserPretraining, MaskedPretraining, RetroMaePretraining
from tercet.training.runs.adapting import Attached, attach_adapter, module_names, write_trained_adapter
from tercet.training.runs.base import Base, open_base, set_dropout
from tercet.training.runs.base_checkpoint import locate_base
from tercet.training.runs.checkpoint_writer import write_body, write_checkpoint
from tercet.training.runs.fisher import choose_by_fisher
from tercet.training.runs.freezing import train_last_layers
from tercet.training.runs.identity import claim_folder, require_own, run_identity
from tercet.training.runs.lock import locked
from tercet.training.runs.model_card import SourceCount, write_card
from tercet.training.runs.plots import write_plot
from tercet.training.runs.state import Progress
from tercet.training.settings.data import PairData, ScoreData, TextData
from tercet.training.settings.run import (
    CoCondenserRun,
    FinetuneRun,
    MlmRun,
    PairRun,
    PairSettings,
    PretrainingSettings,
    RetroMaeRun,
    RunSettings,
    ScoreRun,
)
from tercet.training.step import Stage

RUN_FOLDER = "run"
SCORED_FOLDER = "scored"


def run_training(
    settings: RunSettings, data: Path, output: Path, report: Report, *, threads: int | None = None
) -> Progress:
    """Trains and writes the checkpoint or adapter folder `output`; goes on where a run into it was cut off.

    data: the folder that the sources' paths start from; threads: CPU threads, by default this process's share
    of the CPUs. Raises TrainingError and ModelError.
    """
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(threads or max(1, usable_cores() // processes))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ranks = join_processes(device)
    try:
        with locked(output / RUN_FOLDER, ranks.rank):
            return run_on(settings, data, output, report, device, ranks)
    finally:
        leave_processes(ranks)


def run_on(
    settings: RunSettings, data: Path, output: Path, report: Report, device: str, ranks: Ranks
) -> Progress:
    """`run_training` as one of the processes."""
    require_data(settings.data, data)
    torch.manual_seed(settings.seed + ranks.rank)
    folder = output / RUN_FOLDER
    for written in written_folders(settings, output):
        require_own(written, folder)
    work_folder(folder, ranks).mkdir(parents=True, exist_ok=True)
    if isinstance(settings, ScoreRun):
        return scoring(settings, data, output, report, device, ranks)
    base = open_base(settings, folder, device, ranks)
    base.model.to(device)
    if settings.optimization.frozen_embeddings:
        base.model.body.get_input_embeddings().requires_grad_(False)  # type: ignore[operator]  # a method
    if settings.optimization.last_layers is not None:
        train_last_layers(base.model.body, settings.optimization.last_layers)
    attached = None
    if isinstance(settings, PairRun):
        # What anchors hold on to is the base as it is, without the adapter that is attached next.
        anchor = deepcopy(base.model) if settings.objective.anchored else None
        if settings.adapter is not None:
            tags = [source.tags for source in settings.data.sources if source.tags is not None]
            attached = attach_adapter(base.model, base.folder, output.name, settings.adapter, tags)
            base = replace(base, adapters=attached.digests())
        stage, counts = finetuning(settings, base, data, folder, device, ranks, anchor, attached)
        if attached is not None:
            choose_by_fisher(stage, base.model, attached, folder, ranks)
        trained: nn.Module = base.model
        with_heads = settings.stage == "finetune" or base.has_heads
    else:
        stage, counts, trained = pretraining(settings, base, data, folder, device, ranks)
        with_heads = False
    progress = train(stage, trained, settings, folder, ranks, report)
    if ranks.rank == 0:
        if attached is not None:
            write_trained_adapter(output, base.model, attached)
        elif isinstance(settings, FinetuneRun) and settings.halfway is not None:
            write_halfway(settings, settings.halfway, base, data, output, folder)
        else:
            write_checkpoint(output, base.folder, base.model, base.encoding, with_heads=with_heads)
        kept = None if progress.best_figure is None else progress.best_step
        terms = term_factors(settings.objective) if isinstance(settings, PairRun) else {}
        write_card(output, settings, counts, folder, device_name(device), kept, terms)
        write_plot(folder, judged_side(settings.stage))
    return progress


def written_folders(settings: RunSettings, output: Path) -> list[Path]:
    """The folders that a run writes a model into: the output, and beside it those of routed adapters."""
    adapter = settings.adapter if isinstance(settings, PairRun) else None
    names = [] if adapter is None else module_names(output.name, adapter)
    return [output, *map(output.with_name, names)]


def require_data(settings: PairData | ScoreData | TextData, data: Path) -> None:
    """Raises TrainingDataError where a file or a held-out folder is missing, before anything takes long."""
    for path in (*(source.path for source in settings.sources), *settings.held_out):
        if not (data / path).exists():
            raise TrainingDataError(
                f"{data / path}: cannot be read: there is no such file; paths of training data start from "
                f"{data}, and --data names another folder"
            )


def work_folder(run: Path, ranks: Ranks) -> Path:
    """Where this process keeps token ids."""
    return run / f"tokens-{ranks.rank}"


def finetuning(
    settings: PairSettings,
    base: Base,
    data: Path,
    folder: Path,
    device: str,
    ranks: Ranks,
    anchor: EncoderModel | None,
    attached: Attached | None = None,
) -> tuple[Stage, list[SourceCount]]:
    """The stage that trains on pairs. Heads that the base lacks get their starting point here.

    anchor: a copy of the base, for losses that hold on to it; attached: what is in the base's body.
    """
    batches = settings.batches
    precision = settings.optimization.precision
    teacher = None
    if settings.teaching is not None:
        teacher = Teacher(settings.teaching.checkpoint, batches.sub_batch_tokens, precision, device)
    tables = read_tables(
        settings.data,
        data,
        work_folder(folder, ranks),
        base.tokenizer,
        batches.neighbours,
        settings.seed,
        None if teacher is None else teacher.tokenizer,
        None if settings.objective.teacher_scores is None else settings.objective.teacher_scores > 0,
    )
    if settings.objective.teacher_scores:
        require_scores(tables)
    if teacher is not None:
        teacher.weigh(tables)
    claim_folder(
        folder, run_identity(settings, base.folder, base.adapters, base.tokenizer, tables, ranks), ranks
    )
    routed = (None, None) if attached is None else (attached.modules, attached.hypernetwork)
    encoder = TextEncoder(base.model, base.tokenizer, batches.sub_batch_tokens, precision, device, *routed)
    if settings.body_is_frozen:
        base.model.body.requires_grad_(False)
    if settings.stage == "contrastive":
        base.model.heads.requires_grad_(False)
    require_learning(settings)
    if isinstance(settings, FinetuneRun) and not base.has_heads and settings.heads.start == "fitted":
        training = [table for table in tables if table.settings.train]
        weights = initial_heads(encoder, training, settings.heads, settings.seed)
        base.model.heads = Heads.from_weights(weights, base.encoding).to(device)
    counts = [SourceCount(len(table.training), len(table.development)) for table in tables]
    anchor_encoder = None
    if anchor is not None:
        if not base.has_heads:
            anchor.heads = deepcopy(base.model.heads)
        anchor.requires_grad_(False).eval()
        anchor_encoder = TextEncoder(anchor, base.tokenizer, batches.sub_batch_tokens, precision, device)
    prior = None
    if settings.objective.prior > 0:
        passages = [table.passages for table in tables if table.settings.train]
        scale = settings.objective.prior_scale
        prior = LexicalPrior.of(passages, base.tokenizer, base.encoding.lexical, scale)
    return Finetune(encoder, tables, settings, folder, ranks, anchor_encoder, prior, teacher), counts


def scoring(
    settings: ScoreRun, data: Path, output: Path, report: Report, device: str, ranks: Ranks
) -> Progress:
    """Trains a cross-encoder, writes it, and then the scores of the files that are to have some."""
    folder = output / RUN_FOLDER
    base = locate_base(settings.base)
    optimization, texts = settings.optimization, settings.data.pairs
    tokenizer = Tokenizer.load(base, EncodingSettings())
    model = load_cross_encoder(base, NEW_PARTS).to(device)
    longest, limit = texts.query_tokens + texts.passage_tokens, position_limit(read_json(base / CONFIG_FILE))
    if limit is not None and longest > limit:
        raise ConfigError(
            f"data.query_tokens and data.passage_tokens: together they are {longest}, but the base has "
            f"positions for {limit} tokens"
        )
    set_dropout(model, optimization.dropout)
    if optimization.frozen_embeddings:
        model.get_input_embeddings().requires_grad_(False)  # type: ignore[operator]  # a method
    if optimization.last_layers is not None:
        train_last_layers(model, optimization.last_layers)
    if settings.batches.gradient_checkpointing:
        model.gradient_checkpointing_enable()  # type: ignore[operator]  # a method
    work, neighbours = work_folder(folder, ranks), settings.batches.neighbours
    tables = read_tables(texts, data, work, tokenizer, neighbours, settings.seed, scores=False)
    claim_folder(folder, run_identity(settings, base, {}, tokenizer, tables, ranks), ranks)
    encoder = CrossEncoder(model, tokenizer, optimization.precision, device)
    progress = train(CrossScoring(encoder, tables, settings, ranks), model, settings, folder, ranks, report)
    if ranks.rank == 0:
        write_body(output, base, model)
        counts = [SourceCount(len(table.training), 0) for table in tables]
        write_card(output, settings, counts, folder, device_name(device), None, {})
        write_plot(folder, judged_side(settings.stage))
        budget = settings.batches.sub_batch_tokens
        for source in settings.data.sources:
            if source.write_scores:
                write_scores(encoder, tokenizer, source, texts, data, output / SCORED_FOLDER, budget)
    return progress


def require_learning(settings: PairSettings) -> None:
    """Raises ConfigError where nothing learns, at the first step or after `distill_start_step`."""
    for objective in (settings.objective.at(0), settings.objective):
        sides = trained_sides(objective)
        if not sides or (settings.body_is_frozen and sides == ("dense",)):
            when = "" if objective == settings.objective else " before distill_start_step"
            raise ConfigError(
                f"losses: their terms read {' and '.join(sides) or 'nothing'}{when}, from which nothing "
                "here learns; give another term a factor above 0"
            )


def pretraining(
    settings: PretrainingSettings, base: Base, data: Path, folder: Path, device: str, ranks: Ranks
) -> tuple[Stage, list[SourceCount], nn.Module]:
    """The stage that trains on documents, and its model, which shares the base's body."""
    stores = read_text_table(settings.data, data, work_folder(folder, ranks), base.tokenizer, settings.seed)
    claim_folder(
        folder, run_identity(settings, base.folder, base.adapters, base.tokenizer, stores, ranks), ranks
    )
    counts = [SourceCount(len(store), 0) for store in stores]
    body = base.model.body
    head, _ = load_mlm_head(body.config, base.folder)
    rest = (base.tokenizer, stores)
    if isinstance(settings, RetroMaeRun):
        decoder = RetroMae(body, head, base.encoding, decoder_layers=settings.pretraining.decoder_layers).to(
            device
        )
        return RetroMaePretraining(decoder, *rest, settings, device, ranks), counts, decoder
    if isinstance(settings, MlmRun):
        alone = MaskedLm(body, head, base.encoding).to(device)
        return MaskedPretraining(alone, *rest, settings, device, ranks), counts, alone
    chosen = settings.pretraining
    try:
        condenser = Condenser(
            body, head, base.encoding, early_layers=chosen.early_layers, head_layers=chosen.head_layers
        ).to(device)
    except ValueError as error:
        raise ConfigError(f"pretraining.early_layers: {error}") from error
    if isinstance(settings, CoCondenserRun):
        return CoCondenserPretraining(condenser, *rest, settings, device, ranks), counts, condenser
    return MaskedPretraining(condenser, *rest, settings, device, ranks), counts, condenser


def device_name(device: str) -> str:
    """What the run was trained on, for the card."""
    return torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} CPU threads"
