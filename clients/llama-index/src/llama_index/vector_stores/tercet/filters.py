"""LlamaIndex's filters as Tercet's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.vector_stores.tercet.nodes import SOURCE
from tercet_client.types import Filter

RANGES = {
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
}
LISTS = (FilterOperator.IN, FilterOperator.NIN, FilterOperator.ANY, FilterOperator.ALL)


def filter_tree(filters: MetadataFilters | None, sources: Sequence[str] | None = None) -> Filter | None:
    """One filter for all. sources: ids of documents, of which the nodes must be.

    Raises ValueError for an operator that Tercet lacks.
    """
    parts = [] if filters is None or not filters.filters else [_all(filters)]
    if sources:
        parts.append({"in": {SOURCE: list(sources)}})
    return cast("Filter | None", {"and": parts} if parts else None)


def _all(filters: MetadataFilters) -> dict[str, Any]:
    parts = [
        (_all(part) if part.filters else {"and": []}) if isinstance(part, MetadataFilters) else _one(part)
        for part in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return {"or": parts}
    if filters.condition == FilterCondition.NOT:
        return {"not": {"or": parts}}  # none of them matches
    return {"and": parts}


def _one(filter: MetadataFilter) -> dict[str, Any]:
    field, value, operator = filter.key, filter.value, filter.operator
    if operator in LISTS and not isinstance(value, list):
        raise ValueError(f"the filter {operator.value!r} of {field!r} takes a list, not {value!r}")
    if operator == FilterOperator.IS_EMPTY or (operator == FilterOperator.EQ and value is None):
        return {"not": {"exists": field}}
    if operator == FilterOperator.NE and value is None:
        return {"exists": field}
    if operator in RANGES:
        return {RANGES[operator]: {field: value}}
    if operator in (FilterOperator.EQ, FilterOperator.CONTAINS):
        return {"eq": {field: value}}
    if operator == FilterOperator.NE:
        return {"not": {"eq": {field: value}}}
    if operator in (FilterOperator.IN, FilterOperator.ANY):
        return {"in": {field: value}}
    if operator == FilterOperator.NIN:
        return {"not": {"in": {field: value}}}
    if operator == FilterOperator.ALL and isinstance(value, list) and value:
        return {"and": [{"eq": {field: each}} for each in value]}
    raise ValueError(
        f"Tercet has no filter {operator.value!r} of {value!r}; the query finds words, and fields have ==, "
        "!=, >, >=, <, <=, in, nin, any, all, contains and is_empty"
    )
