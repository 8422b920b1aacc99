"""The reference engine: a transformers model with the heads, on CPU or CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tercet.models.adapters.library import AdapterLibrary, describe
from tercet.models.adapters.record import ResolvedAdapter
from tercet.models.adapters.serving import ServedAdapters
from tercet.models.batching import Adapters, PaddedOutputs, encode_in_batches
from tercet.models.checkpoint import (
    hidden_size,
    read_settings,
)
from tercet.models.cores import usable_cores
from tercet.models.encoder import AdapterDescription, EncoderInfo
from tercet.models.encoder_model import PRECISIONS, default_precision, load_model, torch_device
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.fingerprint import fingerprint, heads_digest
from tercet.models.graphs.record import body_digest, packed_graph
from tercet.models.lexical.query_table import QueryTable, encode_with_table, read_query_weights, sparse_size
from tercet.models.lexical.splade_rows import splade_rows
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
from tercet.models.task_adapters import TaskAdapters
from tercet.models.tokenizer import Tokenizer
from tercet.models.torch_memory import memory_errors, release_memory

CPU_BATCH_TOKENS = 2048
CUDA_BATCH_TOKENS = 32768  # where memory suffices


class TorchEncoder:
    """An `Encoder` on torch. precision: float32, or on CUDA float16 and bfloat16, which is the default there.

    heads: folder of another checkpoint, whose heads take the place of its own; mcls_every: in the place of
    the checkpoint's own; adapters: folder of the adapters that may be asked for.
    """

    mixes_adapters = True

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        origin: str | None = None,
        heads: Path | None = None,
        mcls_every: int | None = None,
        device: str = "auto",
        threads: int | None = None,
        batch_tokens: int | None = None,
        limit_tokens: int | None = None,
        precision: str | None = None,
        adapters: Path | None = None,
    ) -> None:
        self._device = torch_device(device)
        precision = precision or default_precision(self._device)
        if precision not in PRECISIONS or (precision != "float32" and self._device.type == "cpu"):
            raise UnsupportedError(
                f"precision {precision!r} on {self._device.type} with the torch engine; choose float32, "
                "or on cuda float16 or bfloat16 (the onnx engine has int8)"
            )
        torch.set_num_threads(threads or min(torch.get_num_threads(), usable_cores()))
        settings = read_settings(folder, mcls_every)
        self.tokenizer = Tokenizer.load(folder, settings)
        self._model = load_model(folder, settings, precision, heads).to(self._device)
        body: Any = self._model.body
        rows = body.get_input_embeddings().weight.shape[0]
        if rows < self.tokenizer.vocabulary_size:
            raise CheckpointError(
                f"{folder}: the model has vectors for {rows} tokens, but the tokenizer has "
                f"{self.tokenizer.vocabulary_size}; take both files of one model"
            )
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
        library = AdapterLibrary(with_adapters, folder, name, base_fingerprint, weights.sizes)
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
                mixes_adapters=self._tasks is not None or self._adapters.mixes(adapters or ()),
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
