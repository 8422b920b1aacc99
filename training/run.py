"""A whole run of `tercet train`, from settings and data to a checkpoint."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path

import torch

from models.checkpoint import EncodingSettings, hidden_size, read_settings
from models.head_weights import HEADS_FILE
from models.heads import Heads
from models.tokenizer import Tokenizer
from models.torch_encoder import EncoderModel, load_body, load_model
from training.base_checkpoint import locate_base
from training.checkpoint_writer import write_checkpoint
from training.config import RunSettings
from training.distributed import Ranks, join_processes, leave_processes
from training.finetune import Finetune
from training.initial_heads import initial_heads
from training.loop import Report, train
from training.model_card import SourceCount, write_card
from training.pair_table import read_tables
from training.plots import write_plot
from training.run_state import Progress
from training.text_encoder import TextEncoder

RUN_FOLDER = "run"
HEAD_FILES = (HEADS_FILE, "sparse_linear.pt")


def run_training(
    settings: RunSettings, data: Path, output: Path, report: Report, *, threads: int | None = None
) -> Progress:
    """Trains and writes the checkpoint folder `output`; goes on where a run into it was cut off.

    data: the folder that the sources' paths start from; threads: CPU threads, by default the CPUs of this
    process. Raises TrainingError and ModelError.
    """
    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ranks = join_processes(device)
    try:
        return run_on(settings, data, output, report, device, ranks)
    finally:
        leave_processes(ranks)


def run_on(
    settings: RunSettings, data: Path, output: Path, report: Report, device: str, ranks: Ranks
) -> Progress:
    """`run_training` as one of the processes."""
    torch.manual_seed(settings.seed + ranks.rank)
    base = locate_base(settings.base)
    encoding = encoding_settings(base, settings)
    tokenizer = Tokenizer.load(base, encoding)
    has_heads = any((base / name).is_file() for name in HEAD_FILES) and not settings.heads.fresh
    model = load_model(base, encoding) if has_heads else headless_model(base, encoding, settings)
    model.to(device)
    folder = output / RUN_FOLDER
    work = folder / f"tokens-{ranks.rank}"
    work.mkdir(parents=True, exist_ok=True)
    batches = settings.batches
    tables = read_tables(settings.data, data, work, tokenizer, batches.neighbours, settings.seed)
    encoder = TextEncoder(model, tokenizer, batches.sub_batch_tokens, settings.optimization.precision, device)
    if settings.stage == "finetune" and not has_heads:
        passages = [table.passages for table in tables if len(table.training)]
        weights = initial_heads(encoder, passages, settings.heads, settings.seed)
        model.heads = Heads.from_weights(weights, encoding).to(device)
    stage = Finetune(encoder, tables, settings, folder, ranks)
    progress = train(stage, model, settings, folder, ranks, report)
    if ranks.rank == 0:
        with_heads = has_heads or settings.stage == "finetune"
        write_checkpoint(output, base, model, encoding, with_heads=with_heads)
        counts = [SourceCount(len(table.training), len(table.development)) for table in tables]
        kept = None if progress.best_figure is None else progress.best_step
        write_card(output, settings, counts, folder, device_name(device), kept)
        write_plot(folder)
    return progress


def encoding_settings(base: Path, settings: RunSettings) -> EncodingSettings:
    """The base's encoding settings, with what the run says otherwise."""
    given = {name: value for name, value in asdict(settings.encoder).items() if value is not None}
    return replace(read_settings(base), **given)


def headless_model(base: Path, encoding: EncodingSettings, settings: RunSettings) -> EncoderModel:
    """The base's body, with heads that the stage replaces or leaves alone, and never writes as they are."""
    heads = Heads(hidden_size(base), settings.heads.colbert_dimension, encoding)
    return EncoderModel(load_body(base), heads)


def device_name(device: str) -> str:
    """What the run was trained on, for the card."""
    return torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} CPU threads"
