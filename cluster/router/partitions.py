"""Which shards have the documents of partitions."""

from __future__ import annotations

from collections.abc import Sequence

from tercet.cluster.shards.placement import Placement
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.filters import Filter
from tercet.index.documents.partitions import partitions_allowed


def shards_allowed(
    filter: Filter | None, settings: CollectionSettings, placement: Placement
) -> Sequence[int]:
    """The shards that may have documents which a filter allows: all of them, but where the collection is
    partitioned and the filter names partitions. One at least.
    """
    partitions = partitions_allowed(filter) if settings.partitioned else None
    if not partitions:
        return range(placement.shards)
    return sorted(set(placement.shards_of(sorted(partitions)).tolist()))
