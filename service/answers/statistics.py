"""A collection's statistics as JSON has them, for HTTP and the command line alike."""

from __future__ import annotations

from typing import Any

from tercet.service.collections.served import ServedStatistics


def statistics_record(name: str, found: ServedStatistics) -> dict[str, Any]:
    """The record of `GET /collections/{name}/stats`."""
    return {
        "name": name,
        "documents": found.documents,
        "deleted": found.deleted,
        "segments": found.segments,
        "bytes": dict(found.part_bytes),
        "unpublished": {"documents": found.memory_documents, "bytes": found.memory_bytes},
        "ledger": {"entries": found.ledger_entries, "bytes": found.ledger_bytes},
        "position": found.position,
        "published_position": found.flushed_position,
        "flushing": found.flushing,
        "merging": found.merging,
    }
