"""A collection's statistics as JSON has them, for HTTP and the command line alike."""

from __future__ import annotations

from typing import Any

from tercet.service.collections.served import ServedStatistics


def statistics_record(name: str, statistics: ServedStatistics) -> dict[str, Any]:
    """The record of `GET /collections/{name}/stats`."""
    return {
        "name": name,
        "documents": statistics.documents,
        "deleted": statistics.deleted,
        "segments": statistics.segments,
        "bytes": dict(statistics.part_bytes),
        "unpublished": {"documents": statistics.memory_documents, "bytes": statistics.memory_bytes},
        "ledger": {"entries": statistics.ledger_entries, "bytes": statistics.ledger_bytes},
        "position": statistics.position,
        "published_position": statistics.flushed_position,
        "flushing": statistics.flushing,
        "merging": statistics.merging,
    }
