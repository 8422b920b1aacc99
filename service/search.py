"""The online pipeline: from a query to hits, the same for HTTP, the command line and Python."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import numpy as np

from index.candidates import CandidateLimits, DenseOptions, Hit, Scores, Weights
from index.errors import FingerprintMismatchError, InvalidQueryError
from index.filters import Filter, check_filter
from index.fusion import weighted_sum
from index.snapshot import Snapshot
from models.representations import Representations
from service.adapters import adapter_words, info_for
from service.collections import CollectionRegistry
from service.concurrency import all_of
from service.encoding import EncodingService
from service.exceptions import InvalidRequestError
from service.explanations import HitExplanation, explain_hits
from service.rerank import score_texts


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched. query: a text, or ready representations of one text; adapter: by default the
    collection's, and no other would do.
    """

    collection: str
    query: str | Representations
    top_k: int = 10
    weights: Weights = field(default_factory=Weights)
    candidates: CandidateLimits = field(default_factory=CandidateLimits)
    filter: Filter | None = None
    explain: bool = False
    dense_options: DenseOptions = field(default_factory=DenseOptions)
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What was found. `explanations` go with the hits; `tokens` and `truncated` are the query's."""

    collection: str
    snapshot: str
    hits: list[Hit]
    explanations: list[HitExplanation] | None
    tokens: int
    truncated: bool
    encode_seconds: float
    retrieve_seconds: float
    score_seconds: float
    total_seconds: float


@dataclass(frozen=True, slots=True)
class RankedText:
    """One re-ranked text: its place in the request, its weighted sum, and the sum's parts."""

    index: int
    score: float
    scores: Scores
    truncated: bool


@dataclass(frozen=True, slots=True)
class RerankOutcome:
    """Texts, best first; ties in the request's order. `tokens` counts query and texts."""

    results: list[RankedText]
    tokens: int
    query_tokens: int
    query_truncated: bool


class SearchPipeline:
    """Searches collections with one encoder."""

    def __init__(self, encoding: EncodingService, collections: CollectionRegistry) -> None:
        self._encoding = encoding
        self._collections = collections

    async def search(self, query: SearchQuery) -> SearchOutcome:
        """Hits of one query.

        Raises CollectionNotFoundError, FingerprintMismatchError, InvalidQueryError, InvalidRequestError for
        the filter, and what encoding raises.
        """
        started = time.perf_counter()
        snapshot = await self._snapshot(query.collection, query.adapter)
        if query.filter is not None:
            _check_filter(query.filter, snapshot)
        encoding_started = time.perf_counter()
        representations = query.query
        if isinstance(representations, str):
            representations = await self._encoding.encode(
                [representations], "query", adapter=snapshot.settings.adapter
            )
        encode_seconds = time.perf_counter() - encoding_started
        result = await asyncio.to_thread(
            snapshot.search,
            representations,
            top_k=query.top_k,
            weights=query.weights,
            candidates=query.candidates,
            filter=query.filter,
            dense_options=query.dense_options,
        )
        explanations = None
        if query.explain:
            text = query.query if isinstance(query.query, str) else None
            explanations = await asyncio.to_thread(
                explain_hits, snapshot, self._encoding.tokenizer, text, representations, result.hits
            )
        return SearchOutcome(
            query.collection,
            result.snapshot,
            result.hits,
            explanations,
            int(representations.tokens[0]),
            bool(representations.truncated[0]),
            encode_seconds,
            result.retrieve_seconds,
            result.score_seconds,
            time.perf_counter() - started,
        )

    async def rerank(
        self,
        query: str,
        documents: list[str],
        *,
        weights: Weights,
        top_n: int | None = None,
        adapter: str | None = None,
    ) -> RerankOutcome:
        """The texts in order of their weighted sum with the query."""
        encoded_query, encoded_documents = await all_of(
            [
                self._encoding.encode([query], "query", adapter=adapter),
                self._encoding.encode(documents, "document", adapter=adapter),
            ]
        )
        scores = await asyncio.to_thread(score_texts, encoded_query, encoded_documents)
        sums = weighted_sum(scores, weights)
        order = np.argsort(-sums, kind="stable")[:top_n]
        results = [
            RankedText(
                int(place),
                float(sums[place]),
                Scores(*map(float, scores[place])),
                bool(encoded_documents.truncated[place]),
            )
            for place in order
        ]
        query_tokens = int(encoded_query.tokens[0])
        return RerankOutcome(
            results,
            query_tokens + int(encoded_documents.tokens.sum()),
            query_tokens,
            bool(encoded_query.truncated[0]),
        )

    async def _snapshot(self, name: str, adapter: str | None) -> Snapshot:
        """The collection's snapshot. adapter: the one that the request names, if any."""
        snapshot = await self._collections.open(name)
        settings = snapshot.settings
        served = await info_for(settings, adapter, self._encoding.info_of)
        if settings.fingerprint != served.fingerprint:
            raise FingerprintMismatchError(
                f"collection {name!r} was built with encoder {settings.encoder!r} and "
                f"{adapter_words(settings.adapter)}, fingerprint {settings.fingerprint}; this server runs "
                f"{served.name!r} with {adapter_words(served.adapter)}, fingerprint {served.fingerprint}: "
                "serve it with its own encoder, or build it again"
            )
        return snapshot


def _check_filter(wanted: Filter, snapshot: Snapshot) -> None:
    try:
        check_filter(wanted, snapshot.settings.fields)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "filter", "invalid_filter") from error
