"""Opens the checkpoint that a run starts from, as its settings ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import nn

from tercet.models.checkpoint import (
    CONFIG_FILE,
    EncodingSettings,
    hidden_size,
    position_limit,
    read_json,
    read_settings,
)
from tercet.models.encoder_model import EncoderModel, load_body, load_model
from tercet.models.errors import CheckpointError
from tercet.models.formats.sentence_transformers import dense_after_pooling
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.head_weights import HEAD_FILES
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError
from tercet.training.passes import prepare
from tercet.training.runs.base_checkpoint import locate_base
from tercet.training.runs.fresh_body import write_fresh_base
from tercet.training.runs.positions import require_widening, widen_positions
from tercet.training.settings.objective import HeadSettings
from tercet.training.settings.run import FinetuneRun, PairRun, RunSettings

# Up to this length of a text, the attention weights of a sub-batch fit beside everything else.
WRITTEN_OUT_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Base:
    """The checkpoint that a run starts from.

    has_heads: whether its heads are trained ones; adapters: digests of those that its adapter is made with,
    by their keys in its settings.
    """

    folder: Path
    encoding: EncodingSettings
    tokenizer: Tokenizer
    model: EncoderModel
    has_heads: bool
    adapters: Mapping[str, object] = field(default_factory=dict)


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
    require_body_and_heads(folder, encoding)
    if encoding.pooling == "none":
        raise ConfigError("base: its pooling is none, but training needs dense vectors; set encoder.pooling")
    head_settings = settings.heads if isinstance(settings, FinetuneRun) else HeadSettings()
    has_heads = any((folder / name).is_file() for name in HEAD_FILES) and not head_settings.fresh
    if has_heads:
        if head_settings != HeadSettings():
            raise ConfigError(
                "heads: the base has heads, which the run goes on with; leave this table out, or set fresh"
            )
        # Until it is widened the body has the positions that it was saved with.
        model = load_model(folder, replace(encoding, max_length=read_settings(folder).max_length))
        model.heads.weights().both()
    else:
        encoding = replace(encoding, colbert_dimension=None)  # that of heads which are not taken
        width, dimension = hidden_size(folder), head_settings.colbert_dimension
        if isinstance(settings, FinetuneRun) and dimension > width:
            raise ConfigError(
                f"heads.colbert_dimension: it is {dimension}, but must be at most {width}, the body's width"
            )
        heads = Heads(width, dimension, encoding)
        model = EncoderModel(load_body(folder), heads)
    if settings.encoder.positions is not None:
        widen_positions(model.body, settings.encoder.positions)
    set_dropout(model.body, settings.optimization.dropout)
    if written_out_attention(settings, device):
        model.body.set_attn_implementation("eager")  # type: ignore[operator]  # a method
    else:
        prepare(model.body)
    if settings.batches.gradient_checkpointing:
        model.body.activation_checkpointing_enable()  # type: ignore[operator]  # a method
    return Base(folder, encoding, tokenizer, model, has_heads)


def require_body_and_heads(folder: Path, encoding: EncodingSettings, where: str = "base") -> None:
    """Raises ConfigError for a checkpoint with parts that no checkpoint written here has.

    where: what the checkpoint is, for the message.
    """
    if encoding.late_interaction is not None or dense_after_pooling(folder).folders:
        raise ConfigError(
            f"{where}: encoders of ColBERT's kind and Dense modules after the pooling are not trained here; "
            "take a body without"
        )
    if encoding.tasks is not None:
        raise ConfigError(
            f"{where}: its texts go through adapters by task, which are not trained here; "
            'give its tercet.json {"tasks": null} to train the body alone'
        )
    if encoding.splade is not None:
        raise ConfigError(
            f"{where}: its lexical weights are by SPLADE, which is not trained here; take another"
        )


def set_dropout(model: nn.Module, share: float | None) -> None:
    """Gives all dropout of a model a share of its own; None leaves it as it is."""
    if share is not None:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = share


def written_out_attention(settings: RunSettings, device: str) -> bool:
    """Whether attention is computed as it is written, holding all its weights, not by torch's fused kernel.

    On a CPU with AMX that kernel's backward pass in bfloat16 takes more than half of a training step.
    """
    reduced = settings.optimization.precision != "float32"
    lengths = [settings.data.passage_tokens]
    if isinstance(settings, PairRun):
        lengths.append(settings.data.query_tokens)
    return device == "cpu" and reduced and max(lengths) <= WRITTEN_OUT_TOKENS


def encoding_settings(base: Path, settings: RunSettings) -> EncodingSettings:
    """The base's encoding settings, with what the run says otherwise.

    Raises ConfigError where these, or the lengths of training texts, do not fit the base.
    """
    given = {name: value for name, value in dict(settings.encoder).items() if value is not None}
    config = read_json(base / CONFIG_FILE)
    limit, wider = position_limit(config), given.pop("positions", None)
    if wider is not None:
        require_widening(config, wider)
        limit = wider
        given.setdefault("max_length", wider)
    owner = "the base has" if wider is None else "encoder.positions gives it"
    lengths = {
        "encoder.max_length": settings.encoder.max_length,
        "data.query_tokens": settings.data.query_tokens if isinstance(settings, PairRun) else None,
        "data.passage_tokens": settings.data.passage_tokens,
    }
    for name, length in lengths.items():
        if limit is not None and length is not None and length > limit:
            raise ConfigError(f"{name}: it is {length}, but {owner} positions for {limit} tokens")
    try:
        return replace(read_settings(base), **given)
    except CheckpointError as error:
        raise ConfigError(f"encoder: {error}") from error
