"""A transformers model with the heads on its states, as the reference engine and training have it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForMaskedLM, PreTrainedConfig
from transformers.utils import logging as library_logging

from tercet.models.bodies import attention_of, body_config
from tercet.models.checkpoint import (
    CONFIG_FILE,
    SETTINGS_FILE,
    EncodingSettings,
    hidden_size,
    position_limit,
)
from tercet.models.device import choose_device
from tercet.models.errors import CheckpointError, reason
from tercet.models.fingerprint import weight_files
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.formats.splade import HIDDEN
from tercet.models.graphs.record import Graph, packed_graph, verify_graph
from tercet.models.heads import Heads, load_heads
from tercet.models.lexical.splade_head import SpladeHead, split_language_model
from tercet.models.packed.bodies import LEAST_CAPABILITY
from tercet.models.task_adapters import fold_task
from tercet.models.weights.tensor_files import UNREADABLE, unreadable

# A forked process has none of its parent's threads, and OpenMP would wait for them for ever.
os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
# Of the largest state, far above what rounding does: in float32, and in half precision.
PADDING_DIFFERENCE, HALF_PADDING_DIFFERENCE = 1e-4, 0.05
CAUSAL_DIFFERENCE = 1e-6  # of two states that should be one: what rounding in a batch may do


class EncoderModel(nn.Module):
    """A transformers body and its heads: one pass gives the three outputs.

    splade: the head of lexical weights over the vocabulary, None where they come from a linear one. It takes
    the hidden states, which are then the last output of a pass.
    """

    def __init__(self, body: nn.Module, heads: Heads, splade: SpladeHead | None = None) -> None:
        super().__init__()
        self.body = body
        self.heads = heads
        self.splade = splade

    @property
    def output_names(self) -> list[str]:
        """What a pass gives, in order."""
        return [*self.heads.sides, *([] if self.splade is None else [HIDDEN])]

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Last hidden states float[B, L, d] of input_ids and attention_mask, int64[B, L] each."""
        states: Tensor = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """input_ids, attention_mask: int64[B, L]. Returns as `Heads.forward`, with SPLADE the states, too."""
        hidden = self.hidden(input_ids, attention_mask)
        outputs: tuple[Tensor, ...] = self.heads(hidden, attention_mask)
        return outputs if self.splade is None else (*outputs, hidden)


def load_body(folder: Path, precision: str = "float32", *, language_model: bool = False) -> nn.Module:
    """The transformers model of a checkpoint, without pooler, in evaluation mode.

    language_model: with the head of a masked language model. Weights come from safetensors, or from .bin read
    as plain weights; no remote code. Where there are none, they are unpacked from the int8 graph.
    Raises CheckpointError where the weights are missing, damaged or incomplete.
    """
    graph = packed_graph(folder)
    if graph is not None and language_model:
        raise CheckpointError(
            f"{folder} holds only an int8 graph, which gives back no head of a language model; use the onnx "
            "engine"
        )
    if graph is not None:
        return _unpacked_body(folder, graph, precision)
    weight_files(folder)
    transformer = transformer_folder(folder)
    config = body_config(transformer)
    kind = AutoModelForMaskedLM if language_model else AutoModel
    try:
        with without_loading_report():
            body, report = kind.from_pretrained(
                str(transformer),
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                dtype=PRECISIONS[precision],
                attn_implementation=attention_of(config),
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are told below, by name
            )
    except (*UNREADABLE, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder}: the model cannot be loaded: {unreadable(error)}") from error
    mismatched = sorted(report["mismatched_keys"])
    if mismatched:
        name, shape, wanted = mismatched[0]
        raise CheckpointError(
            f"{folder}: {name} has shape {list(shape)} in the weight files, but {CONFIG_FILE} asks for "
            f"{list(wanted)}; take both files of one model"
        )
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise CheckpointError(f"{folder}: the weight files lack {len(missing)} tensors, such as {missing[0]}")
    # A sum is NaN or infinite where a weight is, and takes no memory.
    sums = {name: weight.detach().sum(dtype=torch.float32) for name, weight in body.named_parameters()}
    wrong = [name for name, total in sums.items() if not total.isfinite()]
    if wrong:
        raise CheckpointError(
            f"{folder}: {wrong[0]} has values that are not finite numbers; take another copy of the weight "
            "files"
        )
    if getattr(body, "pooler", None) is not None:
        body.pooler = None
    model: nn.Module = body.eval()
    return model


def _unpacked_body(folder: Path, graph: Graph, precision: str) -> nn.Module:
    """The body whose weights are those of an int8 graph."""
    from tercet.models.int8.unpack import (
        unpacked_weights,  # needs onnx, which serving other checkpoints does not
    )

    weights = unpacked_weights(verify_graph(folder, graph))
    config = body_config(folder)
    try:
        body = AutoModel.from_config(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
            config, dtype=PRECISIONS[precision], attn_implementation=attention_of(config)
        )
        if getattr(body, "pooler", None) is not None:
            body.pooler = None
        body.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(
            f"{folder}: the model cannot be made from its int8 graph: {reason(error)}"
        ) from error
    model: nn.Module = body.eval()
    return model


@contextmanager
def without_loading_report() -> Iterator[None]:
    """Silences the library's own progress bar and its table of tensors, which `load_body` checks itself."""
    logger = logging.getLogger("transformers")
    level = logger.level
    shows_progress = library_logging.is_progress_bar_enabled()
    logger.setLevel(logging.ERROR)
    library_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped library
    try:
        yield
    finally:
        logger.setLevel(level)
        if shows_progress:
            library_logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # untyped library


def load_model(
    folder: Path, settings: EncodingSettings, precision: str = "float32", heads_of: Path | None = None
) -> EncoderModel:
    """Body and heads of a checkpoint, in evaluation mode; the heads always in float32. The adapter of a task
    is in the body's weights where all texts have that task; those of two are left to `TaskAdapters`.

    heads_of: folder of another checkpoint, whose heads take the place of its own.
    Raises CheckpointError as `load_heads` and `load_body`, and for a body that takes no mask, has too few
    positions, or is causal with pooling cls.
    """
    config = body_config(transformer_folder(folder))  # which says what a body is that has no hidden_size
    heads = load_heads(folder, hidden_size(folder), settings, heads_of)
    if settings.splade is None:
        model = EncoderModel(load_body(folder, precision), heads).eval()
        if settings.tasks is not None and settings.tasks.is_one:
            fold_task(folder, settings.tasks.query, model.body)
    else:
        whole = load_body(folder, precision, language_model=True)
        body, splade = split_language_model(whole, settings.splade)
        model = EncoderModel(body, heads, splade).eval()
    _require_positions(folder, config, settings.max_length)
    try:
        sees_padding, looks_back_only = _sees_padding(model), _looks_back_only(model)
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: {type(model.body).__name__} does not take the tokens of a short text: {reason(error)}"
        ) from error
    if sees_padding:
        raise CheckpointError(
            f"{folder}: the states of {type(model.body).__name__} change with the padding of a batch, and so "
            "with the texts beside a text; take another checkpoint"
        )
    if settings.pooling == "cls" and looks_back_only:
        raise CheckpointError(
            f"{folder}: pooling is cls, but tokens of this body see none that follow, so all texts would "
            f'have the dense vector of their first token; give {SETTINGS_FILE} {{"pooling": "last"}}, or '
            "take a body that is not causal"
        )
    return model


def _require_positions(folder: Path, config: PreTrainedConfig, length: int) -> None:
    """Raises CheckpointError where texts of so many tokens are too long for a body, of which its own file may
    say nothing.
    """
    limit = position_limit(config.to_dict())
    if limit is not None and length > limit:
        raise CheckpointError(
            f"{folder}: max_length is {length}, but the model has positions for {limit} tokens; give "
            f"{SETTINGS_FILE} a max_length that is no greater"
        )


@torch.inference_mode()
def _sees_padding(model: EncoderModel) -> bool:
    """Whether states change where tokens follow that the mask leaves out."""
    alone, padded = torch.tensor([[2, 3, 4]]), torch.tensor([[2, 3, 4, 0]])
    mask = torch.tensor([[1, 1, 1, 0]])
    states = model.hidden(alone, mask[:, :3]), model.hidden(padded, mask)[:, :3]
    allowed = PADDING_DIFFERENCE if states[0].dtype == torch.float32 else HALF_PADDING_DIFFERENCE
    return not torch.allclose(*states, rtol=0, atol=allowed * float(states[0].abs().max()))


@torch.inference_mode()
def _looks_back_only(model: EncoderModel) -> bool:
    """Whether the first state is the same whatever follows it, as in a causal body."""
    ids = torch.tensor([[2, 3, 4], [2, 5, 6]])
    first = model.hidden(ids, torch.ones_like(ids))[:, 0]
    return bool(torch.allclose(first[0], first[1], rtol=0, atol=CAUSAL_DIFFERENCE))


def torch_device(name: str) -> torch.device:
    """The device of a name: auto, cpu, cuda or cuda:NUMBER. Raises UnsupportedError."""
    remedy = "torch finds no CUDA device; use cpu"
    return torch.device(*choose_device(name, cuda=torch.cuda.is_available(), remedy=remedy))


def default_precision(device: torch.device) -> str:
    """bfloat16 on a GPU that computes in it, whose products it makes many times as fast; else float32."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY:
        return "bfloat16"
    return "float32"
