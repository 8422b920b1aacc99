"""The reference engine: a transformers model with the heads, on CPU or CUDA."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForMaskedLM
from transformers.utils import logging as library_logging

from tercet.models.adapters.library import AdapterLibrary, describe
from tercet.models.adapters.record import ResolvedAdapter
from tercet.models.adapters.serving import ServedAdapters
from tercet.models.batching import Adapters, PaddedOutputs, encode_in_batches
from tercet.models.bodies import attention_of, body_config
from tercet.models.checkpoint import (
    CONFIG_FILE,
    SETTINGS_FILE,
    EncodingSettings,
    hidden_size,
    read_settings,
)
from tercet.models.cores import usable_cores
from tercet.models.device import choose_device
from tercet.models.encoder import AdapterDescription, EncoderInfo
from tercet.models.errors import CheckpointError, UnsupportedError, reason
from tercet.models.fingerprint import fingerprint, heads_digest, weight_files
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.formats.splade import HIDDEN
from tercet.models.graphs.record import Graph, body_digest, packed_graph, verify_graph
from tercet.models.heads import Heads, load_heads
from tercet.models.lexical.query_table import QueryTable, encode_with_table, read_query_weights, sparse_size
from tercet.models.lexical.splade_head import SpladeHead, split_language_model
from tercet.models.lexical.splade_rows import splade_rows
from tercet.models.packed.bodies import LEAST_CAPABILITY
from tercet.models.packed.build import packed_passes
from tercet.models.packed.shapes import budget_tokens, bytes_per_token
from tercet.models.representations import (
    OUTPUTS,
    Int64,
    Output,
    Representations,
    Route,
    SparseRows,
    TokenBatch,
)
from tercet.models.task_adapters import TaskAdapters, fold_task
from tercet.models.tokenizer import Tokenizer
from tercet.models.torch_memory import memory_errors, release_memory
from tercet.models.weights.tensor_files import UNREADABLE, unreadable

# A forked process has none of its parent's threads, and OpenMP would wait for them for ever.
os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
CPU_BATCH_TOKENS = 2048
CUDA_BATCH_TOKENS = 32768  # where memory suffices
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
    Raises CheckpointError as `load_heads` and `load_body`, and for a body that takes no mask, or that is
    causal with pooling cls.
    """
    body_config(transformer_folder(folder))  # which says what a body is that has no hidden_size
    heads = load_heads(folder, hidden_size(folder), settings, heads_of)
    if settings.splade is None:
        model = EncoderModel(load_body(folder, precision), heads).eval()
        if settings.tasks is not None and settings.tasks.is_one:
            fold_task(folder, settings.tasks.query, model.body)
    else:
        whole = load_body(folder, precision, language_model=True)
        body, splade = split_language_model(whole, settings.splade)
        model = EncoderModel(body, heads, splade).eval()
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


def default_precision(device: torch.device) -> str:
    """bfloat16 on a GPU that computes in it, whose products it makes many times as fast; else float32."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY:
        return "bfloat16"
    return "float32"


class TorchEncoder:
    """An `Encoder` on torch. precision: float32, or on CUDA float16 and bfloat16, which is the default there.

    heads: folder of another checkpoint, whose heads take the place of its own; adapters: folder of the
    adapters that may be asked for.
    """

    mixes_adapters = True

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        origin: str | None = None,
        heads: Path | None = None,
        device: str = "auto",
        threads: int | None = None,
        batch_tokens: int | None = None,
        limit_tokens: int | None = None,
        precision: str | None = None,
        adapters: Path | None = None,
    ) -> None:
        self._device = torch.device(
            *choose_device(
                device, cuda=torch.cuda.is_available(), remedy="torch finds no CUDA device; use cpu"
            )
        )
        precision = precision or default_precision(self._device)
        if precision not in PRECISIONS or (precision != "float32" and self._device.type == "cpu"):
            raise UnsupportedError(
                f"precision {precision!r} on {self._device.type} with the torch engine; choose float32, "
                "or on cuda float16 or bfloat16 (the onnx engine has int8)"
            )
        torch.set_num_threads(threads or min(torch.get_num_threads(), usable_cores()))
        settings = read_settings(folder)
        self.tokenizer = Tokenizer.load(folder, settings)
        self._model = load_model(folder, settings, precision, heads).to(self._device)
        queries = read_query_weights(folder, self.tokenizer)
        self._queries = QueryTable.of(queries, self.tokenizer)
        weights = replace(self._model.heads.weights(), queries=queries)
        suited = batch_tokens or self._suited_tokens(weights.colbert_dimension)
        self.pass_tokens = suited if limit_tokens is None else min(suited, limit_tokens)
        digests = body_digest(folder, settings.tasks), heads_digest(weights.arrays()), self.tokenizer.digest
        graph = packed_graph(folder)
        quantized = None if graph is None else graph.files[graph.file]
        self._fingerprint_with = partial(fingerprint, *digests, settings, quantized)
        base_fingerprint = fingerprint(*digests, settings)
        self.info = EncoderInfo(
            name=name,
            fingerprint=self._fingerprint_with(),
            engine="torch",
            precision=precision,
            dense_dimension=weights.dense_dimension(hidden_size(folder), settings.pooling),
            colbert_dimension=weights.colbert_dimension,
            vocabulary_size=sparse_size(folder, self.tokenizer, weights),
            max_length=settings.max_length,
            pooling=settings.pooling,
            lexical=settings.lexical,
            checkpoint=origin,
        )
        self._tasks = None
        if settings.tasks is not None and not settings.tasks.is_one:
            self._tasks = TaskAdapters(folder, settings.tasks, self._model.body)
        self._packed = None
        if self._tasks is None and weights.as_of_bge_m3(settings):
            self._packed = packed_passes(self._model, self.tokenizer, self.pass_tokens)
        self.pads = self._packed is None
        if self._packed is not None:  # what the first pass makes should not keep a caller waiting
            self._packed.encode(self.tokenizer.tokenize([""]), self._model.heads.sides)
        with_adapters = adapters if settings.splade is None else None
        library = AdapterLibrary(with_adapters, folder, base_fingerprint, weights.sizes)
        self._adapters = ServedAdapters(library, self._model.body, self._model.heads)

    def _suited_tokens(self, colbert_dimension: int) -> int:
        """Tokens of a pass that suit the device, and what is free of its memory."""
        if self._device.type == "cpu":
            return CPU_BATCH_TOKENS
        free, _ = torch.cuda.mem_get_info(self._device)
        like = next(self._model.body.parameters())
        config: Any = self._model.body.config
        width = config.hidden_size
        widest = getattr(config, "intermediate_size", 4 * width)
        per_token = bytes_per_token(width, widest, colbert_dimension, like.element_size())
        return budget_tokens(free, per_token, CUDA_BATCH_TOKENS)

    def adapter(self, name: str) -> ResolvedAdapter:
        """An adapter with all its tensors. Raises as `adapter_info`."""
        return self._adapters.load(name)

    def adapter_info(self, name: str) -> EncoderInfo:
        """What identifies this encoder with an adapter, which is loaded at its first use."""
        digest = self._adapters.load(name).digest
        return replace(self.info, fingerprint=self._fingerprint_with(digest), adapter=name)

    def describe_adapters(self) -> list[AdapterDescription]:
        """All adapters, in order of name."""
        return describe(self._adapters.library, self.adapter_info)

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """The name itself: an engine has no routers."""
        return name

    @property
    def library(self) -> AdapterLibrary:
        """The adapters that it can use."""
        return self._adapters.library

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Adapters | None = None,
    ) -> Representations:
        """Representations of each text of the batch, in the batch's order; one pass may mix adapters.

        Without adapters the texts go through packed passes, where the body takes them.
        """
        if self._packed is not None and len(batch) and not any(adapters or ()):
            return self._packed.encode(batch, self.info.given(outputs))
        for adapter in set(adapters or ()):
            for name in adapter.adapters if isinstance(adapter, Route) else (adapter,):
                if name is not None:
                    self._adapters.load(name)

        if self._tasks is not None:
            adapters = ["query" if is_query else "document" for is_query in batch.is_query.tolist()]

        def encode(texts: TokenBatch, wanted: Sequence[Output]) -> Representations:
            return encode_in_batches(
                texts,
                wanted,
                self.pass_tokens,
                self.tokenizer,
                self.info,
                self._forward,
                adapters=adapters if self._queries is None else None,  # with a table there are none
                mixes_adapters=True,
                release=partial(release_memory, self._device),
            )

        return encode_with_table(self._queries, batch, self.info.given(outputs), encode)

    def _forward(
        self, ids: Int64, mask: Int64, outputs: Sequence[Output], adapters: Adapters
    ) -> PaddedOutputs:
        """Raises EncoderMemoryError where memory does not suffice."""
        with memory_errors():
            return self._pass(ids, mask, outputs, adapters)

    @torch.inference_mode()
    def _pass(self, ids: Int64, mask: Int64, outputs: Sequence[Output], adapters: Adapters) -> PaddedOutputs:
        heads = self._model.heads
        attended = torch.from_numpy(mask).to(self._device)
        if self._tasks is None:
            acting = self._adapters.acting(adapters)
        else:
            acting, adapters = self._tasks.acting(adapters, self._device), ()
        with acting:
            hidden = self._model.hidden(torch.from_numpy(ids).to(self._device), attended).float()
        terms = self._terms(hidden, attended) if "sparse" in outputs else None
        weights = heads.token_weights(hidden) if "sparse" in outputs and terms is None else None
        vectors = heads.token_vectors(hidden) if "colbert" in outputs else None
        for rows, own in self._adapters.heads(adapters):
            if weights is not None:
                weights[rows] = own.token_weights(hidden[rows])
            if vectors is not None:
                vectors[rows] = own.token_vectors(hidden[rows])
        return PaddedOutputs(
            heads.dense(hidden, attended).cpu().numpy() if "dense" in outputs else None,
            terms if weights is None else weights.cpu().numpy(),
            None if vectors is None else vectors.cpu().numpy(),
        )

    def _terms(self, hidden: Tensor, mask: Tensor) -> SparseRows | None:
        """Lexical weights over the vocabulary of hidden states float[B, L, d]; None without SPLADE."""
        head = self._model.splade
        if head is None:
            return None
        return splade_rows(
            mask.sum(1).cpu().numpy(),
            self.info.vocabulary_size,
            head.settings,
            lambda texts, tokens: head(hidden[texts, tokens], mask[texts, tokens]).cpu().numpy(),
        )
