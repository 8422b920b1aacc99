"""Searches of a data root in this process, through the same pipeline as over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tercet.cli import options
from tercet.cli.encoders import encoder_of
from tercet.index.candidates import Page, Weights
from tercet.index.catalog.aliases import Aliases
from tercet.index.collection import Collection
from tercet.index.documents.boosts import parse_boost
from tercet.index.documents.filters import parse_filter
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.rerankers import Rerankers
from tercet.service.encoding.service import LocalEncoding
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.load.pools import Pools
from tercet.service.search.answers import answer_head, answer_hits
from tercet.service.search.pipeline import SearchPipeline
from tercet.service.search.query import FacetQuery, SearchOutcome, SearchQuery, SearchScope, facet_counts
from tercet.service.search.stored_queries import Like, LikeDocument, LikeExamples

if TYPE_CHECKING:
    from tercet.models.encoder import Encoder
    from tercet.service.settings.settings import Settings


def search_here(settings: Settings, collection: str, query: Any, **options_of: Any) -> dict[str, Any]:
    """The answer of `POST /search`, by the encoder of the collection, or of those that an alias means."""
    root = options.collections_root(settings)
    first = Aliases(root).collections_of(collection)[0]  # several have one encoder
    encoder = encoder_of(settings, Collection.open(root, first).settings)
    facets = options_of.pop("facets", None)
    wanted = query_of(query, **options_of)
    scope = SearchScope(
        collection, facets=None if facets is None else FacetQuery(facet_counts(facets), wanted.filter)
    )
    outcome = run_queries(settings, encoder, scope, [wanted])[0]
    return {**answer_head(outcome), "hits": list(answer_hits(outcome))}


def query_of(
    query: Any,
    *,
    weights: dict[str, float] | None = None,
    filter: Any = None,
    offset: int = 0,
    min_score: float | None = None,
    boosts: list[Any] | None = None,
    **same: Any,
) -> SearchQuery:
    """The query of a request's JSON. same: what the record has by the same names.

    Raises InvalidQueryError for a filter or a boost that is none.
    """
    return SearchQuery(
        query if isinstance(query, str) else _like(**query),
        weights=None if weights is None else Weights(**weights),
        filter=None if filter is None else parse_filter(filter),
        page=Page(offset=offset, min_score=min_score),
        boosts=tuple(map(parse_boost, boosts or [])),
        **same,
    )


def _like(id: str | None = None, like: list[str] | None = None, unlike: list[str] | None = None) -> Like:
    return LikeExamples((*(like or []),), (*(unlike or []),)) if id is None else LikeDocument(id)


def run_queries(
    settings: Settings, encoder: Encoder, scope: SearchScope, queries: list[SearchQuery]
) -> list[SearchOutcome]:
    """The outcome of each query, in order."""

    async def answers() -> list[SearchOutcome]:
        encoding = LocalEncoding(
            encoder, batch_tokens=settings.batch_tokens, queue_tokens=settings.queue_tokens
        )
        pools = Pools.open()
        collections = CollectionRegistry(options.collections_root(settings))
        rerankers = Rerankers(settings)
        pipeline = SearchPipeline(EncoderShelf(encoding), rerankers, collections, pools.search)
        try:
            return [await pipeline.search(scope, query) for query in queries]
        finally:
            await encoding.close()
            await rerankers.close()
            collections.close()
            pools.close()

    return asyncio.run(answers())
