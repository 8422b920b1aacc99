"""LlamaIndex's queries as searches of Tercet."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.vector_stores.tercet.filters import filter_tree

Mode = VectorStoreQueryMode
WEIGHED = (Mode.DEFAULT, Mode.HYBRID, Mode.SEMANTIC_HYBRID, Mode.MMR)
LEXICAL = (Mode.SPARSE, Mode.TEXT_SEARCH)
SPARSE_ALONE = {"weights": {"dense": 0, "sparse": 1, "colbert": 0}, "candidates": {"dense": 0}}
DENSE_ALONE = {"weights": {"dense": 1, "sparse": 0, "colbert": 0}, "candidates": {"sparse": 0}}
PREFETCHED = 4  # documents for each that MMR chooses


def search_of(query: VectorStoreQuery, **options: Any) -> dict[str, Any]:
    """Arguments of the client's `search`, without the collection.

    A query's text is searched by all three scores; a query with a vector alone by dense vectors. alpha, where
    it is given, weighs dense and ColBERT scores, and 1 - alpha lexical ones. Raises ValueError for a mode
    that Tercet lacks, and where there is neither text nor vector.
    """
    if query.node_ids:
        raise ValueError("a search cannot be limited to node_ids; use doc_ids or filters, or get_nodes")
    if query.mode not in (*WEIGHED, *LEXICAL):
        raise ValueError(f"Tercet has no query mode {query.mode.value!r}; use default, hybrid, sparse or mmr")
    found: dict[str, Any] = {"filter": filter_tree(query.filters, query.doc_ids), **options}
    found["top_k"] = _wanted(query, found)
    if query.query_str is None:
        if query.query_embedding is None or query.mode in LEXICAL:
            raise ValueError(f"a query of mode {query.mode.value!r} needs query_str")
        return {**found, **DENSE_ALONE, "query": {"dense": list(query.query_embedding)}}
    found["query"] = query.query_str
    if query.mode in LEXICAL:
        return {**found, **SPARSE_ALONE}
    if query.alpha is not None and query.mode == Mode.HYBRID:
        side = {"dense": query.alpha, "sparse": 1 - query.alpha, "colbert": query.alpha}
        return {**found, "weights": side}
    return found


def _wanted(query: VectorStoreQuery, options: dict[str, Any]) -> int:
    """How many documents; takes what concerns MMR alone from the options."""
    factor = options.pop("mmr_prefetch_factor", PREFETCHED)
    prefetched = options.pop("mmr_prefetch_k", None)
    if query.mode == Mode.MMR:
        return int(prefetched or query.similarity_top_k * factor)
    if query.mode == Mode.HYBRID and query.hybrid_top_k is not None:
        return query.hybrid_top_k
    if query.mode in LEXICAL and query.sparse_top_k is not None:
        return query.sparse_top_k
    return query.similarity_top_k
