"""A Tercet server as the search engine that mteb evaluates."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from tercet_client import Client, NotFoundError, upsert
from tercet_client.connection import DEFAULT_URL
from tercet_client.types import CollectionRequest, DocumentRequest

from tercet_mteb.meta import model_meta

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import ModelMeta
    from mteb.types import CorpusDatasetType, QueryDatasetType, RetrievalOutputType, TopRankedDocumentsType

AT_A_TIME = 4  # requests
RERANKED = 100  # texts of a request


class TercetSearch:
    """mteb's SearchProtocol: a corpus in a collection, searched by the sum of the three scores.

    Each corpus gets a collection of its own, deleted with the next one, by `close`, or at the end of `with`.
    Re-ranking tasks score the documents that they name, as documents of that collection.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        weights: Mapping[str, float] | str | None = None,
        settings: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
    ) -> None:
        """weights: of the scores in the sum, or a preset's name; settings: of the collections, such as
        `{"window": {"tokens": 256, "overlap": 32}}` or `{"bm25": True}`.
        """
        self._client = Client(url, key=key, timeout=timeout)
        self._weights = dict(weights) if isinstance(weights, Mapping) else weights
        self._settings = dict(settings or {})
        self._collection: str | None = None
        self._texts: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Deletes the collection of the last corpus."""
        if self._collection is not None:
            with suppress(NotFoundError):
                self._client.delete_collection(self._collection)
            self._collection, self._texts = None, {}

    @cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """Of the server's encoder; the weights and settings are part of it."""
        settings = {"weights": self._weights, "settings": self._settings or None}
        return model_meta(self._client.info(), "hybrid", settings, self._settings.get("adapter"))

    def index(
        self,
        corpus: CorpusDatasetType,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Any,
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Puts the corpus into a new collection. Raises what `tercet_client` raises."""
        self.close()
        self._collection = f"mteb-{uuid.uuid4().hex}"
        self._client.create_collection(self._collection, cast(CollectionRequest, self._settings))
        upsert(self._client, self._collection, self._documents(corpus))

    def search(
        self,
        queries: QueryDatasetType,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        top_k: int,
        encode_kwargs: Any,
        top_ranked: TopRankedDocumentsType | None = None,
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> RetrievalOutputType:
        """For each query the top_k best documents and their scores; of `top_ranked`, where that is given.

        Raises ValueError before a corpus was indexed, or where queries are no texts.
        """
        collection = self._collection
        if collection is None:
            raise ValueError("no corpus was indexed; call index first")
        ids, texts = list(queries["id"]), _query_texts(queries)

        def found(query: tuple[str, str]) -> dict[str, float]:
            id, text = query
            if top_ranked is not None:
                scores = self._reranked(collection, text, top_ranked.get(id, []))
                return dict(sorted(scores.items(), key=lambda one: -one[1])[:top_k])
            answer = self._client.search(collection, text, top_k=top_k, weights=self._given_weights)
            return {hit["id"]: hit["score"] for hit in answer["hits"]}

        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return dict(zip(ids, pool.map(found, zip(ids, texts, strict=True)), strict=True))

    def _documents(self, corpus: CorpusDatasetType) -> Iterator[DocumentRequest]:
        for row in corpus:
            title, text = row.get("title") or None, row["text"]
            self._texts[row["id"]] = text if title is None else f"{title}\n{text}"
            yield {"id": row["id"], "title": title, "text": text}

    def _reranked(self, collection: str, query: str, ids: Sequence[str]) -> dict[str, float]:
        scores: dict[str, float] = {}
        for start in range(0, len(ids), RERANKED):
            part = ids[start : start + RERANKED]
            answer = self._client.rerank(
                query,
                [self._texts[id] for id in part],
                collection=collection,
                weights=self._given_weights,
            )
            scores.update({part[result["index"]]: result["score"] for result in answer["results"]})
        return scores

    @property
    def _given_weights(self) -> Any:
        return self._weights


def _query_texts(queries: QueryDatasetType) -> list[str]:
    """The texts, each with its instruction behind it, as mteb gives them to encoders."""
    texts = list(queries["text"])
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("the queries are conversations; TercetSearch takes texts")
    if "instruction" not in queries.column_names:
        return texts
    pairs = zip(texts, queries["instruction"], strict=True)
    return [text if instruction is None else f"{text} {instruction}" for text, instruction in pairs]
