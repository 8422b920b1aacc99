"""A whole run of `tercet train`, from settings and data to a checkpoint."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import nn

from models.checkpoint import (
    CONFIG_FILE,
    EncodingSettings,
    hidden_size,
    position_limit,
    read_json,
    read_settings,
)
from models.cores import usable_cores
from models.errors import CheckpointError
from models.heads import Heads
from models.tokenizer import Tokenizer
from models.torch_encoder import EncoderModel, load_body, load_model
from training.data.pair_table import read_tables
from training.data.text_table import read_text_table
from training.distributed import Ranks, join_processes, leave_processes
from training.errors import ConfigError
from training.loop import Report, train
from training.m3.development import judged_side
from training.m3.finetune import Finetune
from training.m3.initial_heads import initial_heads
from training.m3.lexical_prior import LexicalPrior
from training.m3.losses import trained_sides
from training.m3.text_encoder import TextEncoder
from training.pretraining.condenser import Condenser
from training.pretraining.mlm_head import load_mlm_head
from training.pretraining.retromae import RetroMae
from training.pretraining.stages import CondenserPretraining, RetroMaePretraining
from training.runs.adapting import attach_adapter, write_trained_adapter
from training.runs.base_checkpoint import locate_base
from training.runs.checkpoint_writer import write_checkpoint
from training.runs.fresh_body import write_fresh_base
from training.runs.identity import HEAD_FILES, claim_folder, require_own, run_identity
from training.runs.lock import locked
from training.runs.model_card import SourceCount, write_card
from training.runs.plots import write_plot
from training.runs.state import Progress
from training.settings.objective import HeadSettings
from training.settings.run import RunSettings
from training.step import Stage

RUN_FOLDER = "run"
# Up to this length of a text, the attention weights of a sub-batch fit beside everything else.
WRITTEN_OUT_TOKENS = 256


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
    torch.manual_seed(settings.seed + ranks.rank)
    folder = output / RUN_FOLDER
    require_own(output, folder)
    work_folder(folder, ranks).mkdir(parents=True, exist_ok=True)
    base = open_base(settings, folder, device, ranks)
    base.model.to(device)
    # What anchors hold on to is the base as it is, without the adapter that is attached next.
    anchor = deepcopy(base.model) if settings.losses.anchored else None
    attached = None
    if settings.adapter is not None:
        attached = attach_adapter(base.model, base.folder, output.name, settings.adapter)
        base = replace(base, below=tuple(adapter.digest for adapter in attached.below))
    if settings.reads_pairs:
        stage, counts = finetuning(settings, base, data, folder, device, ranks, anchor)
        trained: nn.Module = base.model
    else:
        stage, counts, trained = pretraining(settings, base, data, folder, device, ranks)
    progress = train(stage, trained, settings, folder, ranks, report)
    if ranks.rank == 0:
        if settings.adapter is not None and attached is not None:
            write_trained_adapter(output, base.model, settings.adapter, attached)
        else:
            with_heads = settings.stage == "finetune" or (base.has_heads and settings.stage == "contrastive")
            write_checkpoint(output, base.folder, base.model, base.encoding, with_heads=with_heads)
        kept = None if progress.best_figure is None else progress.best_step
        write_card(output, settings, counts, folder, device_name(device), kept)
        write_plot(folder, judged_side(settings.stage))
    return progress


@dataclass(frozen=True, slots=True)
class Base:
    """The checkpoint that a run starts from.

    has_heads: whether its heads are trained ones; below: digests of the adapters that lie on it.
    """

    folder: Path
    encoding: EncodingSettings
    tokenizer: Tokenizer
    model: EncoderModel
    has_heads: bool
    below: tuple[str, ...] = ()


def work_folder(run: Path, ranks: Ranks) -> Path:
    """Where this process keeps token ids."""
    return run / f"tokens-{ranks.rank}"


def open_base(settings: RunSettings, run: Path, device: str, ranks: Ranks) -> Base:
    """Loads the base, with heads that the stage replaces or leaves alone where it has none.

    run: where a body of random weights is written, if the settings ask for one.
    """
    folder = locate_base(settings.base)
    if settings.architecture is not None:
        source, folder = folder, run / f"base-{ranks.rank}"
        write_fresh_base(settings.architecture, source, folder, settings.seed)
    encoding = encoding_settings(folder, settings)
    tokenizer = Tokenizer.load(folder, encoding)
    has_heads = any((folder / name).is_file() for name in HEAD_FILES) and not settings.heads.fresh
    if has_heads:
        if settings.heads != HeadSettings():
            raise ConfigError(
                "heads: the base has heads, which the run goes on with; leave this table out, or set fresh"
            )
        model = load_model(folder, encoding)
    else:
        encoding = replace(encoding, colbert_dimension=None)  # that of heads which are not taken
        width, dimension = hidden_size(folder), settings.heads.colbert_dimension
        if settings.stage == "finetune" and dimension > width:
            raise ConfigError(
                f"heads.colbert_dimension: it is {dimension}, but must be at most {width}, the body's width"
            )
        heads = Heads(width, dimension, encoding)
        model = EncoderModel(load_body(folder), heads)
    if settings.optimization.dropout is not None:
        for module in model.body.modules():
            if isinstance(module, nn.Dropout):
                module.p = settings.optimization.dropout
    if written_out_attention(settings, device):
        model.body.set_attn_implementation("eager")  # type: ignore[operator]  # a method
    if settings.batches.gradient_checkpointing:
        model.body.activation_checkpointing_enable()  # type: ignore[operator]  # a method
    return Base(folder, encoding, tokenizer, model, has_heads)


def written_out_attention(settings: RunSettings, device: str) -> bool:
    """Whether attention is computed as it is written, holding all its weights, not by torch's fused kernel.

    On a CPU with AMX that kernel's backward pass in bfloat16 takes more than half of a training step.
    """
    reduced = settings.optimization.precision != "float32"
    longest = max(settings.data.query_tokens, settings.data.passage_tokens)
    return device == "cpu" and reduced and longest <= WRITTEN_OUT_TOKENS


def finetuning(
    settings: RunSettings,
    base: Base,
    data: Path,
    folder: Path,
    device: str,
    ranks: Ranks,
    anchor: EncoderModel | None,
) -> tuple[Stage, list[SourceCount]]:
    """The stage that trains on pairs. Heads that the base lacks get their starting point here.

    anchor: a copy of the base, for losses that hold on to it.
    """
    batches = settings.batches
    work = work_folder(folder, ranks)
    tables = read_tables(settings.data, data, work, base.tokenizer, batches.neighbours, settings.seed)
    claim_folder(
        folder, run_identity(settings, base.folder, base.below, base.tokenizer, tables, ranks), ranks
    )
    precision = settings.optimization.precision
    encoder = TextEncoder(base.model, base.tokenizer, batches.sub_batch_tokens, precision, device)
    if settings.optimization.frozen_body:
        base.model.body.requires_grad_(False)
    if settings.stage == "contrastive":
        base.model.heads.requires_grad_(False)
    sides = trained_sides(settings.objective)
    if not sides or (settings.optimization.frozen_body and sides == ("dense",)):
        raise ConfigError(
            f"losses: their terms read {list(sides)}, from which nothing here learns; "
            "give another term a factor above 0"
        )
    if settings.stage == "finetune" and not base.has_heads:
        passages = [table.passages for table in tables if table.settings.train]
        weights = initial_heads(encoder, passages, settings.heads, settings.seed)
        base.model.heads = Heads.from_weights(weights, base.encoding).to(device)
    counts = [SourceCount(len(table.training), len(table.development)) for table in tables]
    held = None
    if anchor is not None:
        if not base.has_heads:
            anchor.heads = deepcopy(base.model.heads)
        anchor.requires_grad_(False).eval()
        held = TextEncoder(anchor, base.tokenizer, batches.sub_batch_tokens, precision, device)
    prior = None
    if settings.losses.prior > 0:
        passages = [table.passages for table in tables if table.settings.train]
        scale = settings.losses.prior_scale
        prior = LexicalPrior.of(passages, base.tokenizer.vocabulary_size, scale, device)
    return Finetune(encoder, tables, settings, folder, ranks, held, prior), counts


def pretraining(
    settings: RunSettings, base: Base, data: Path, folder: Path, device: str, ranks: Ranks
) -> tuple[Stage, list[SourceCount], nn.Module]:
    """The stage that trains on documents, and its model, which shares the base's body."""
    stores = read_text_table(settings.data, data, work_folder(folder, ranks), base.tokenizer, settings.seed)
    claim_folder(
        folder, run_identity(settings, base.folder, base.below, base.tokenizer, stores, ranks), ranks
    )
    counts = [SourceCount(len(store), 0) for store in stores]
    body = base.model.body
    head, _ = load_mlm_head(body.config, base.folder)
    chosen = settings.pretraining
    if settings.stage == "retromae":
        decoder = RetroMae(body, head, base.encoding).to(device)
        return RetroMaePretraining(decoder, base.tokenizer, stores, settings, device, ranks), counts, decoder
    try:
        condenser = Condenser(
            body, head, base.encoding, early_layers=chosen.early_layers, head_layers=chosen.head_layers
        ).to(device)
    except ValueError as error:
        raise ConfigError(f"pretraining.early_layers: {error}") from error
    contrast = settings.stage == "cocondenser"
    stage = CondenserPretraining(
        condenser, base.tokenizer, stores, settings, device, ranks, contrast=contrast
    )
    return stage, counts, condenser


def encoding_settings(base: Path, settings: RunSettings) -> EncodingSettings:
    """The base's encoding settings, with what the run says otherwise.

    Raises ConfigError where these, or the lengths of training texts, do not fit the base.
    """
    given = {name: value for name, value in asdict(settings.encoder).items() if value is not None}
    limit = position_limit(read_json(base / CONFIG_FILE))
    lengths = {
        "encoder.max_length": settings.encoder.max_length,
        "data.query_tokens": settings.data.query_tokens if settings.reads_pairs else None,
        "data.passage_tokens": settings.data.passage_tokens,
    }
    for name, length in lengths.items():
        if limit is not None and length is not None and length > limit:
            raise ConfigError(f"{name}: it is {length}, but the base has positions for {limit} tokens")
    try:
        return replace(read_settings(base), **given)
    except CheckpointError as error:
        raise ConfigError(f"encoder: {error}") from error


def device_name(device: str) -> str:
    """What the run was trained on, for the card."""
    return torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} CPU threads"
