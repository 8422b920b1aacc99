"""Which documents of an engine are candidates: what each side proposes, of those that a filter allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tercet.cluster.backends.engine import EngineCollection, ProposingQuery, Side
from tercet.index.candidates import CandidateLimits, Document
from tercet.index.documents.conditions import Condition
from tercet.index.documents.field_indexes import FieldIndexes
from tercet.index.documents.fields import columns_of
from tercet.index.documents.matching import Matching
from tercet.index.documents.metadata import FieldType
from tercet.models.representations import Bool
from tercet.service.exceptions import NotInBackendError

MOST_PROPOSED = 16_384  # that Milvus gives
SPARE = 8  # beyond a limit, so that ours, of exact scores and ids, may be told
NEAR = 1e-5  # that scores in float32 may be off
WIDER = 4  # times as many are asked for, where these are not enough, or a filter leaves too few
DOCUMENTS_AT_ONCE = 1000

Fields = Mapping[str, FieldType]


def proposed_keys(
    collection: EngineCollection,
    query: ProposingQuery,
    limits: CandidateLimits,
    condition: Condition | None,
    fields: Fields,
) -> list[str]:
    """The keys of what all sides propose, each once: their best, and all that score alike as the last.

    Raises NotInBackendError where the engine cannot say the condition, and it allows too few of its best.
    """
    found: dict[str, None] = {}
    sides: list[tuple[Side, int, bool]] = [
        ("dense", limits.dense, query.dense is not None),
        ("sparse", limits.sparse, len(query.sparse) > 0),
        ("words", limits.bm25, len(query.words) > 0),
    ]
    for side, limit, asked in sides:
        if asked and limit > 0:
            found |= dict.fromkeys(_of_side(collection, side, query, limit, condition, fields))
    return [*found]


def matching_documents(
    collection: EngineCollection, after: str | None, limit: int, condition: Condition | None, fields: Fields
) -> list[Document]:
    """The next documents behind an id that a condition allows, as `EngineCollection.page`."""
    if condition is None or collection.expresses(condition):
        return collection.page(after, limit, condition)
    found: list[Document] = []
    while len(found) < limit:
        some = collection.page(after, DOCUMENTS_AT_ONCE, condition)
        kept = allowed([document.metadata for document in some], condition, fields)
        found += [some[place] for place in np.flatnonzero(kept).tolist()]
        if len(some) < DOCUMENTS_AT_ONCE:
            break
        after = some[-1].id
    return found[:limit]


def count_of(collection: EngineCollection, condition: Condition | None, fields: Fields) -> int:
    """How many documents a condition allows. Where the engine cannot say it, their metadata are read."""
    if condition is None or collection.expresses(condition):
        return collection.count(condition)
    count, after = 0, None
    while True:
        some = collection.page(after, DOCUMENTS_AT_ONCE, condition)
        count += int(allowed([document.metadata for document in some], condition, fields).sum())
        if len(some) < DOCUMENTS_AT_ONCE:
            return count
        after = some[-1].id


def allowed(metadata: Sequence[Mapping[str, Any]], condition: Condition, fields: Fields) -> Bool:
    """Which of B documents a condition allows, bool[B]. Raises InvalidDocumentError for metadata that no
    document of the collection may have.
    """
    columns = columns_of(fields, [""] * len(metadata), metadata)
    indexes = FieldIndexes(columns, len(metadata), {})
    kept = np.zeros(len(metadata), np.bool_)
    kept[Matching(columns, indexes, len(metadata)).rows(condition).rows] = True
    return kept


def _of_side(
    collection: EngineCollection,
    side: Side,
    query: ProposingQuery,
    limit: int,
    condition: Condition | None,
    fields: Fields,
) -> list[str]:
    exact = condition is None or collection.expresses(condition)
    asked = min(limit + SPARE, MOST_PROPOSED)
    while True:
        found = passing = collection.propose(side, query, asked, condition, metadata=not exact)
        if not exact and condition is not None:
            kept = allowed([each.metadata or {} for each in found], condition, fields)
            passing = [found[place] for place in np.flatnonzero(kept).tolist()]
        if len(found) < asked and len(passing) <= limit:
            return [each.key for each in passing]
        if len(passing) > limit:
            rim = _below(passing[limit - 1].score)
            if len(found) < asked or found[-1].score < rim or asked == MOST_PROPOSED:
                return [each.key for each in passing if each.score >= rim]
        elif asked == MOST_PROPOSED:
            raise NotInBackendError(
                f"{collection.name} cannot be asked with this filter, which allows {len(passing)} of the "
                f"{asked:,} best of its {side} side; use one that it knows: see docs/backends.md"
            )
        asked = min(WIDER * asked, MOST_PROPOSED)


def _below(score: float) -> float:
    """What an engine may call a score that is equal."""
    return score - NEAR * max(1.0, abs(score))
