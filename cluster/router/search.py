"""A search over shards, in two rounds: candidates of all, cut together, and exact scores of what is left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tercet.cluster.router.hit_details import details_of
from tercet.cluster.router.soundness import check_hits, check_proposals
from tercet.cluster.router.statistics import KnownTerms
from tercet.cluster.router.view import View
from tercet.index.bm25.query import QueryWords, WeighedWords, words_of
from tercet.index.candidates import CandidateLimits, Document, Hit, Scores, SearchResult
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.store import decode_document
from tercet.index.fusion import SIDES
from tercet.index.search.merging import Merged, left_of, merged
from tercet.index.search.query import check_lexical
from tercet.index.search.retrieval import limits_for
from tercet.index.search.shard_search import ShardHits, ShardQuery
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.representations import Int64, Representations, SparseRows
from tercet.service.exceptions import BegunAgainError, ShardFailedError
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.records import Begun, Candidates, CandidatesRequest, HitsRequest

INLINE_HITS = 100  # whose contents come with their scores at most
INLINE_BYTES = 1 << 20  # of these contents, of each shard


async def search(view: View, request: SnapshotQuery) -> SearchResult:
    """The hits that one machine with the documents of all shards would find.

    Raises as `Snapshot.answer`, and what asking shards raises; BegunAgainError where what the router knows of
    the collection is not so any more.
    """
    started = time.perf_counter()
    limits, nearest = limits_for(request.limits, request.nearest)
    proposed = await _proposals(view, request, limits, nearest)
    while True:
        lost = view.fan_out.lost
        left = _left(view, proposed, limits, nearest)
        retrieved = time.perf_counter()
        parts = await _scored(view, request, proposed, left)
        chosen = merged(parts, request.weights, request.fusion, request.page, request.top_k)
        hits = await _hits(view, request, proposed, parts, chosen)
        if view.fan_out.lost == lost:
            break
        # A shard that was lost meanwhile had a part in the cut, and took places of others.
    ended = time.perf_counter()
    return SearchResult(hits, view.version, retrieved - started, ended - retrieved, lost)


def _left(
    view: View, proposed: Sequence[Begun | None], limits: CandidateLimits, nearest: int | None
) -> list[Int64 | None]:
    """What is left of the candidates of each shard, once they are cut over all that are not lost."""
    left: list[Int64 | None] = [np.empty(0, np.int64)] * len(proposed)
    there = {
        shard: begun.proposals
        for shard, begun in enumerate(proposed)
        if begun is not None and not view.fan_out.is_lost(shard)
    }
    for shard, numbers in zip(there, left_of(list(there.values()), limits, nearest), strict=True):
        left[shard] = numbers
    return left


async def _proposals(
    view: View, request: SnapshotQuery, limits: CandidateLimits, nearest: int | None
) -> list[Begun | None]:
    """What all shards propose, by weights that tell of all."""
    settings = view.known.description.settings
    words = query_words(settings, request.text)
    while True:
        terms, weighed = await weighed_by(view, words)
        if view.known.goes_by_terms:
            view.renew(() if words is None else words.terms)
        query = ShardQuery(
            _multiplied(request.query, terms, settings.vocabulary_size),
            weighed,
            request.weights,
            limits,
            request.dense_options,
            nearest=nearest is not None,
            filter=request.filter,
            boosts=tuple(request.boosts),
            without=tuple(request.without),
        )
        begun = await _begun(view, encode(CandidatesRequest(query)))
        if await view.settle(terms) is terms:
            return begun


async def _begun(view: View, body: bytes) -> list[Begun | None]:
    others: list[int] = []

    def read(shard: int, body: bytes) -> Begun | None:
        begun = decode(Candidates, body).begun
        if begun is None:
            others.append(shard)
            return None
        check_proposals(begun.proposals)
        view.fix(shard, begun.at)
        return begun

    begun = await view.read("candidates", view.of_searched(body, None), read, fixes=True)
    if others:
        raise _changed(view, others)
    return begun


def _changed(view: View, shards: Sequence[int]) -> Exception:
    """What is raised where servers of these shards have another description than is known."""
    known, servers = view.known, [view.fan_out.server_of(shard) for shard in shards]
    for shard, server in zip(shards, servers, strict=True):
        known.is_another(server, shard)
    if known.is_stale or view.fan_out.may_begin_again:
        return BegunAgainError(f"collection {known.name!r} was changed meanwhile; ask again")
    return ShardFailedError(
        f"{servers[0]} has other settings of collection {known.name!r} than the server that it follows, "
        "which does not answer",
        servers[0],
    )


def query_words(settings: CollectionSettings, text: str | None) -> QueryWords | None:
    """The words of a query's text; None without one, or without BM25."""
    if not settings.bm25 or text is None:
        return None
    return words_of(text, settings.bm25_language)


async def weighed_by(view: View, words: QueryWords | None) -> tuple[KnownTerms, WeighedWords | None]:
    """What is known of terms, and words weighed by what all shards know of them."""
    if not view.known.goes_by_terms:
        return view.known.statistics.nothing, None
    terms, counts = await view.weighed(None if words is None else words.terms)
    return terms, None if words is None or counts is None else words.weighed(counts)


def _multiplied(query: Representations, terms: KnownTerms, vocabulary_size: int) -> Representations:
    """The query with its lexical weights times the idf of all shards. Raises InvalidQueryError."""
    if query.sparse is None:
        return query
    token_ids, weights = check_lexical(*query.sparse.row(0), vocabulary_size)
    if terms.totals is not None:
        weights = (weights * terms.factors(token_ids)).astype(np.float32)
    return replace(query, sparse=SparseRows(np.array([0, len(token_ids)]), token_ids, weights))


def _sides(request: SnapshotQuery, *, bm25: bool) -> int:
    """Of a score; what boosts add comes behind all sides that there may be."""
    return SIDES + 1 if request.boosts else SIDES - (not bm25)


async def _scored(
    view: View, request: SnapshotQuery, proposed: Sequence[Begun | None], left: Sequence[Int64 | None]
) -> list[ShardHits]:
    """What may be hits of each shard, with exact scores; nothing of one that is lost."""
    wanted, sides = request.wanted, _sides(request, bm25=view.known.description.settings.bm25)
    inline = request.contents and wanted is not None and wanted <= INLINE_HITS
    content_bytes = INLINE_BYTES if inline else 0

    def body(begun: Begun | None, numbers: Int64 | None) -> bytes | None:
        if begun is None or (numbers is not None and not len(numbers)):
            return None
        least = request.page.min_score
        return encode(HitsRequest(begun.search, wanted, least, request.group_by, content_bytes, numbers))

    def read(shard: int, body: bytes) -> ShardHits:
        begun, hits = proposed[shard], decode(ShardHits, body, S=sides)
        check_hits(hits, 0 if begun is None else len(begun.proposals))
        return hits

    bodies = [body(begun, numbers) for begun, numbers in zip(proposed, left, strict=True)]
    answers = await view.fan_out.ask("hits", bodies, read)
    return [ShardHits.nothing(sides) if answer is None else answer for answer in answers]


def _needs_more(request: SnapshotQuery, settings: CollectionSettings) -> bool:
    """Whether scores came without what is told of hits alone: windows, and late interaction that has no
    weight.
    """
    if request.wanted is not None:
        return False
    has_late = settings.stores_token_vectors and request.query.colbert is not None
    return settings.window is not None or (has_late and request.weights.colbert == 0)


async def _hits(
    view: View,
    request: SnapshotQuery,
    proposed: Sequence[Begun | None],
    parts: Sequence[ShardHits],
    chosen: Merged,
) -> list[Hit]:
    """The hits themselves, without those of a shard that is lost by now."""
    settings = view.known.description.settings
    has_late = settings.stores_token_vectors and request.query.colbert is not None
    has_bm25 = settings.bm25 and request.text is not None
    names = [None if begun is None else begun.search for begun in proposed]
    details = await details_of(
        view.fan_out, names, parts, chosen, contents=request.contents, more=_needs_more(request, settings)
    )
    hits = []
    for shard, row, total, detail in zip(
        chosen.shards.tolist(), chosen.places.tolist(), chosen.sums.tolist(), details, strict=True
    ):
        if view.fan_out.is_lost(shard):
            continue
        part = parts[shard]
        dense, sparse, _, *others = part.components[row].tolist()
        scores = Scores(
            dense,
            sparse,
            detail.late if has_late else None,
            others[0] if has_bm25 else None,
            others[-1] if request.boosts else None,
        )
        with view.fan_out.reading(shard):
            id = part.ids[row].decode()
            document = Document(id, "") if detail.content is None else decode_document(id, detail.content)
        if part.collections is not None:
            document = replace(document, collection=part.collections[row])
        view.places[id, document.collection] = shard
        hits.append(Hit(document, total, scores, detail.window))
    return hits
