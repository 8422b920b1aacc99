"""The dense vectors of a Tercet server as mteb's encoder."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.types import PromptType
from tercet_client import Client, dense_vectors
from tercet_client.connection import DEFAULT_URL
from tercet_client.embeddings import Float32

from tercet_mteb.meta import model_meta

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import ModelMeta
    from mteb.types import Array, BatchedInput
    from torch.utils.data import DataLoader


class TercetEncoder:
    """mteb's EncoderProtocol: dense vectors, for every kind of task over texts."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        adapter: str | None = None,
        batch_size: int = 100,
        timeout: float = 300.0,
    ) -> None:
        """adapter: of the encoder; batch_size: texts of a request; timeout: seconds of one attempt."""
        self._client = Client(url, key=key, timeout=timeout)
        self._adapter, self._batch_size = adapter, batch_size

    @cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """Of the server's encoder."""
        return model_meta(self._client.info(), "dense", {}, self._adapter)

    def encode(
        self,
        inputs: DataLoader[BatchedInput],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        prompt_type: PromptType | None = None,
        **kwargs: Any,
    ) -> Array:
        """Unit vectors of all texts, float32[N, D]: as queries where mteb says so, and else as documents.

        Raises ValueError where inputs are no texts, and what `tercet_client` raises.
        """
        texts: list[str] = []
        for batch in inputs:
            if "text" not in batch:
                raise ValueError(f"{task_metadata.name} has {', '.join(batch)}; Tercet encodes texts alone")
            texts.extend(batch["text"])
        return dense_vectors(
            self._client,
            texts,
            input_type="query" if prompt_type == PromptType.query else "document",
            adapter=self._adapter,
            batch=self._batch_size,
        )

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Inner products of unit vectors, float32[N, M], which are cosines."""
        return _rows(embeddings1) @ _rows(embeddings2).T

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Of each pair, float32[N]."""
        products: Float32 = np.sum(_rows(embeddings1) * _rows(embeddings2), axis=1)
        return products


def _rows(embeddings: Array) -> Float32:
    return np.atleast_2d(np.asarray(embeddings, np.float32))
