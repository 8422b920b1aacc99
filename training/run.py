"""A whole run of `tercet train`, from settings and data to a checkpoint."""

from __future__ import annotations

from pathlib import Path

import torch

from models.checkpoint import read_settings
from models.tokenizer import Tokenizer
from models.torch_encoder import load_model
from training.base_checkpoint import locate_base
from training.config import RunSettings
from training.distributed import join_processes, leave_processes
from training.finetune import Finetune
from training.loop import Report, train
from training.pair_table import read_tables
from training.run_state import Progress
from training.text_encoder import TextEncoder

RUN_FOLDER = "run"


def run_training(settings: RunSettings, data: Path, output: Path, report: Report) -> Progress:
    """Trains and writes the checkpoint folder `output`; goes on where a run into it was cut off."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ranks = join_processes(device)
    torch.manual_seed(settings.seed + ranks.rank)
    base = locate_base(settings.base)
    encoding = read_settings(base)
    tokenizer = Tokenizer.load(base, encoding)
    model = load_model(base, encoding).to(device)
    folder = output / RUN_FOLDER
    work = folder / f"tokens-{ranks.rank}"
    work.mkdir(parents=True, exist_ok=True)
    batches = settings.batches
    tables = read_tables(settings.data, data, work, tokenizer, batches.neighbours, settings.seed)
    encoder = TextEncoder(model, tokenizer, batches.sub_batch_tokens, settings.optimization.precision, device)
    stage = Finetune(encoder, tables, settings, folder, ranks)
    progress = train(stage, model, settings, folder, ranks, report)
    leave_processes(ranks)
    return progress
