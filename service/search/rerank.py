"""Texts in the order of their three-way score with a query; no index is involved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import numpy as np

from tercet.index.candidates import Scores, Weights
from tercet.index.fusion import as_weighted, relative_sum
from tercet.models.representations import Bool, Float64, Output, Representations
from tercet.models.texts.blank import without_blank
from tercet.service.collections.readable import Idf
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.service import EncodingService
from tercet.service.encoding.slices import encode_slices
from tercet.service.load.admission import Ticket
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.search.query_terms import ReadQuery, require_meaning
from tercet.service.search.scoring import score_texts
from tercet.service.tracing.request import recorded


@dataclass(frozen=True, slots=True)
class RankedText:
    """One re-ranked text: its position in the request, its weighted sum, and the sum's parts."""

    index: int
    score: float
    scores: Scores
    truncated: bool


@dataclass(frozen=True, slots=True)
class RerankOutcome:
    """Texts, best first; ties in the request's order. tokens: of query and texts; sides: what the encoder
    gives.
    """

    results: list[RankedText]
    tokens: int
    query: ReadQuery
    sides: tuple[Output, ...]


async def rerank(
    encoding: EncodingService,
    pool: Pool,
    query: str,
    documents: Sequence[str],
    *,
    weights: Weights,
    request_tokens: int,
    top_n: int | None = None,
    idf: Idf | None = None,
    adapter: str | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> RerankOutcome:
    """The texts in order of their weighted sum with the query, encoded and scored slice by slice; all scores
    of a blank text are 0.

    pool: where they are scored; idf: of the collection that the texts are taken to be of, if any.

    Raises as `encode_slices`, and InvalidRequestError for a blank query.
    """
    require_meaning(encoding.tokenizer, query, "query")
    as_query, as_documents = TextOptions("query", adapter=adapter), TextOptions(adapter=adapter)
    query_task = asyncio.ensure_future(encoding.encode([query], as_query, ticket=Ticket(deadline)))
    slices = encode_slices(
        encoding, pool, documents, as_documents, request_tokens=request_tokens, ticket=Ticket(deadline)
    )
    parts, truncated, tokens = list[Float64](), list[Bool](), 0
    try:
        async with aclosing(slices):
            async for part in slices:
                encoded_query = await query_task
                with recorded("score"):
                    own = documents[sum(map(len, parts)) :][: len(part)]
                    said = without_blank(encoding.tokenizer, own, part)
                    parts.append(await pool.run(_score_weighted, encoded_query, idf, said))
                truncated.append(part.truncated)
                tokens += int(part.tokens.sum())
    finally:
        query_task.cancel()  # of use only where the texts failed, or the caller left
    scores, cut = np.concatenate(parts), np.concatenate(truncated)
    weights = weights.of(encoding.info.sides)
    relative = relative_sum(scores, weights)
    sums = as_weighted(relative, weights, scores.shape[1])
    results = [
        RankedText(row, float(sums[row]), Scores(*scores[row].tolist()), bool(cut[row]))
        for row in np.argsort(-relative, kind="stable")[:top_n].tolist()
    ]
    read = ReadQuery.of(encoded_query, idf, encoding.tokenizer)
    return RerankOutcome(results, read.tokens + tokens, read, encoding.info.sides)


def _score_weighted(query: Representations, idf: Idf | None, texts: Representations) -> Float64:
    """The scores of some texts. The first time that a snapshot's idf is asked for, it is counted here."""
    return score_texts(_weighted(query, idf), texts)


def _weighted(query: Representations, idf: Idf | None) -> Representations:
    """The query with its lexical weights times the idf."""
    if idf is None or query.sparse is None:
        return query
    return replace(query, sparse=replace(query.sparse, weights=idf.weighted(*query.sparse.row(0))))
