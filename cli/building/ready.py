"""Representations that `tercet collection export` wrote, as a build takes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from tercet.service.settings.roles import Panel

if TYPE_CHECKING:
    from tercet.ingest.ready import ReadySource

Kind = Literal["parquet", "qdrant"]


@dataclass(frozen=True, kw_only=True)
class ReadyFlags:
    """Where ready representations come from."""

    PANEL: ClassVar = Panel.SOURCES
    ready: Annotated[
        Kind | None,
        typer.Option(
            "--from",
            help="Take the representations that tercet collection export wrote there; nothing is encoded.",
            show_default=False,
        ),
    ] = None
    source_collection: Annotated[
        str | None,
        typer.Option(
            help="With --from qdrant: name of the collection there. [default: that of --collection]",
            show_default=False,
        ),
    ] = None

    def check(self, source: Sequence[str], *, infer_fields: bool) -> None:
        """Raises typer.BadParameter for flags that do not go together."""
        if self.source_collection is not None and self.ready != "qdrant":
            raise typer.BadParameter("goes with --from qdrant", param_hint="--source-collection")
        if self.ready is not None and len(source) > 1:
            raise typer.BadParameter("is one with --from", param_hint="SOURCE")
        if self.ready is not None and infer_fields:
            raise typer.BadParameter("goes without --from", param_hint="--infer-fields")


def ready_source(kind: Kind, source: str, collection: str) -> ReadySource:
    """What was exported to a file, or to Qdrant. Raises SourceError or MissingPackageError."""
    from tercet.transfer.errors import missing

    try:
        if kind == "parquet":
            from tercet.transfer.parquet.source import ParquetSource

            return ParquetSource(Path(source))
        from tercet.transfer.qdrant.connection import QdrantPlace
        from tercet.transfer.qdrant.source import QdrantSource
    except ImportError as error:
        extra = kind if kind == "qdrant" else "parquet"
        raise missing("qdrant-client" if kind == "qdrant" else "pyarrow", extra, error) from error
    if source.startswith(("http://", "https://")):
        return QdrantSource(QdrantPlace(url=source, api_key=os.environ.get("QDRANT_API_KEY")), collection)
    return QdrantSource(QdrantPlace(path=source), collection)
