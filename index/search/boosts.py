"""What boosts add to candidates of all segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tercet.index.documents.boosts import Boost, Curve, FilterBoost
from tercet.index.documents.conditions import condition_of
from tercet.index.documents.fields import ScalarColumn
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import damaged
from tercet.index.runs import runs
from tercet.index.scoring import DECIMALS
from tercet.index.segments.segment import Segment
from tercet.models.representations import Bool, Float64, Int64


def boosts_at(
    segments: Sequence[Segment],
    ordinals: Int64,
    rows: Int64,
    boosts: Sequence[Boost],
    fields: Mapping[str, FieldType],
) -> Float64:
    """What each of B checked boosts adds to rows int64[K] of the segments at ordinals int64[K], in runs of
    one segment: float64[B, K], rounded as scores are.
    """
    shares = np.zeros((len(boosts), len(rows)))
    for number, boost in enumerate(boosts):
        share_of = _share_of(boost, fields)
        for ordinal, run in runs(ordinals):
            shares[number, run] = share_of(segments[ordinal], rows[run])
        if not np.isfinite(shares[number]).all():
            field = "" if isinstance(boost, FilterBoost) else boost.field
            raise damaged(f"field {field!r}", "has values that are not finite")
    adds = np.array([boost.add for boost in boosts], np.float64)
    return np.round(adds[:, None] * shares, DECIMALS)


def _share_of(boost: Boost, fields: Mapping[str, FieldType]) -> Callable[[Segment, Int64], Float64 | Bool]:
    """What gives the share of a boost that each of some rows of a segment gets."""
    if isinstance(boost, FilterBoost):
        condition = condition_of(boost.filter, fields)
        return lambda segment, rows: segment.matching.rows(condition).has(rows)
    field, curve = boost.field, Curve.of(boost, fields[boost.field])

    def share(segment: Segment, rows: Int64) -> Float64:
        column = segment.columns[field]
        assert isinstance(column, ScalarColumn)  # noqa: S101 - checked before any search
        some = column.take(rows)
        shares = np.where(some.present, curve.shares(some.values.astype(np.float64)), 0.0)
        if some.further is not None:  # of several values the nearest counts
            np.maximum.at(shares, some.further.rows, curve.shares(some.further.values.astype(np.float64)))
        return shares

    return share
