"""Whether a collection can answer what a search asks: its fields, its sides, its candidates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.boosts import Boost, check_boost
from tercet.index.documents.filters import Filter, check_filter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError
from tercet.index.search.query import check_bm25, check_facets, check_group_by, lacking
from tercet.models.representations import OUTPUTS
from tercet.service.exceptions import InvalidRequestError
from tercet.service.search.defaults import WantedCandidates


def require_known_sides(
    requested: Collection[str], sides: Collection[str], encoder: str, weights: Weights
) -> None:
    """Raises InvalidRequestError where a side is asked for that is not among those of an encoder."""
    for side in OUTPUTS:
        if side in requested and side not in sides:
            raise InvalidRequestError(
                lacking(side, encoder, getattr(weights, side)), f"weights.{side}", "unsupported"
            )


def require_bm25(weights: Weights, candidates: WantedCandidates, settings: CollectionSettings) -> None:
    """Raises InvalidRequestError where BM25 is asked of a collection without it."""
    for param, number in (("weights.bm25", weights.bm25), ("candidates.bm25", candidates.bm25 or 0)):
        try:
            check_bm25(param, number, settings)
        except InvalidQueryError as error:
            raise InvalidRequestError(str(error), param) from error


def require_candidates(used: CandidateLimits, wanted: WantedCandidates) -> None:
    """Raises InvalidRequestError where no side proposes any."""
    if any(asdict(used).values()):
        return
    if wanted.bm25:
        raise InvalidRequestError(
            f"candidates.bm25 is {wanted.bm25}, but weights.bm25 is 0, and the other candidates are 0, so "
            "nothing can be found; raise weights.bm25, or candidates of another side",
            "candidates",
        )
    raise InvalidRequestError(
        "candidates are 0 on all sides, so nothing can be found; raise those of one", "candidates"
    )


def require_fields(
    fields: Mapping[str, FieldType],
    *,
    filter: Filter | None,
    group_by: str | None,
    facets: Mapping[str, int] | None,
    boosts: Sequence[Boost],
) -> None:
    """Raises InvalidRequestError where the collection has no such field, or it is of another type."""
    try:
        if filter is not None:
            check_filter(filter, fields)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "filter", "invalid_filter") from error
    try:
        check_group_by(group_by, fields)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "group_by") from error
    try:
        check_facets(facets or {}, fields)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "facets") from error
    for index, boost in enumerate(boosts):
        try:
            check_boost(boost, fields)
        except InvalidQueryError as error:
            raise InvalidRequestError(f"boosts.{index}: {error}", f"boosts.{index}") from error
