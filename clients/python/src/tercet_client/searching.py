"""What a search may be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from tercet_client.positions import Position
from tercet_client.types import (
    Boost,
    CandidatesRequest,
    ExamplesQuery,
    Filter,
    RepresentationsQuery,
    SearchOptions,
    SearchWeightsRequest,
    StoredDocumentQuery,
)

Preset = Literal["sum", "miracl", "mldr", "flag"]
Query = str | RepresentationsQuery | StoredDocumentQuery | ExamplesQuery


class SearchKeywords(TypedDict, total=False):
    """What is left out, or None, is up to the server.

    partition: of which alone documents are searched; highlight: which parts of hits have what the query
    says; offset: hits to leave out; snapshot: of a former answer, so that pages fit together; min_position:
    of a write's answer, after which is searched;
    allow_partial: hits without those of shards that do not answer, which `partial` of the answer names;
    min_score, min_confidence: of hits at least; include: the parts of a hit beside id and score; group_by: a
    keyword field, of each of whose values the best hit counts; facets: of fields so many of the commonest
    values; boosts: points that are added to scores for what fields say; fusion: how the scores of the sides
    become one; reranker: by its name, in the order of which the hits come.
    """

    top_k: int | None
    weights: SearchWeightsRequest | Preset | None
    candidates: CandidatesRequest | None
    filter: Filter | None
    partition: str | None
    adapter: str | None
    explain: bool
    highlight: bool
    search_options: SearchOptions | None
    offset: int | None
    snapshot: str | None
    min_position: Position | None
    allow_partial: bool
    min_score: float | None
    min_confidence: float | None
    include: Sequence[Literal["scores", "confidence", "window", "title", "text", "metadata"]] | None
    group_by: str | None
    facets: Mapping[str, int] | Sequence[str] | None
    boosts: Sequence[Boost] | None
    fusion: Literal["sum", "rrf"] | None
    reranker: str | None
