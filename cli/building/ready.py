"""Representations that `tercet collection export` wrote, as a build takes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ingest.ready import ReadySource


def ready_source(kind: Literal["parquet", "qdrant"], source: str, collection: str) -> ReadySource:
    """What was exported to a file, or to Qdrant. Raises SourceError or MissingPackageError."""
    from transfer.errors import missing

    try:
        if kind == "parquet":
            from transfer.parquet.source import ParquetSource

            return ParquetSource(Path(source))
        from transfer.qdrant.connection import QdrantPlace
        from transfer.qdrant.source import QdrantSource
    except ImportError as error:
        extra = kind if kind == "qdrant" else "parquet"
        raise missing("qdrant-client" if kind == "qdrant" else "pyarrow", extra, error) from error
    if source.startswith(("http://", "https://")):
        return QdrantSource(QdrantPlace(url=source, api_key=os.environ.get("QDRANT_API_KEY")), collection)
    return QdrantSource(QdrantPlace(path=source), collection)
