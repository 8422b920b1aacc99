"""Where `tercet collection` exports to: the flags that say so, and the target that they name."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.service.settings.server_urls import url_of

if TYPE_CHECKING:
    from tercet.index.catalog.settings import CollectionSettings
    from tercet.transfer.push import Target

To = Literal["parquet", "qdrant", "milvus", "elasticsearch", "vespa"]
KEYS = {
    "qdrant": "QDRANT_API_KEY",
    "milvus": "MILVUS_TOKEN",
    "elasticsearch": "ELASTICSEARCH_API_KEY",
    "vespa": "VESPA_TOKEN",
}
# Where each may write: the flags, of which one is to be given.
DESTINATIONS: dict[str, tuple[str, ...]] = {
    "parquet": ("output",),
    "qdrant": ("url", "path"),
    "milvus": ("url", "path"),
    "elasticsearch": ("url", "output"),
    "vespa": ("url", "output"),
}

TargetUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The server. Its key is taken from QDRANT_API_KEY, MILVUS_TOKEN, ELASTICSEARCH_API_KEY or "
        "VESPA_TOKEN, where it is set.",
        show_default=False,
    ),
]
TargetPath = Annotated[
    Path | None,
    typer.Option(
        "--path", help="Folder of Qdrant's local mode, or file of Milvus Lite (.db).", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="File of Parquet; folder of what Elasticsearch's bulk API or vespa deploy and vespa feed take.",
        show_default=False,
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option("--collection-name", help="Name in the target. [default: NAME]", show_default=False),
]
NoColbert = Annotated[bool, typer.Option("--no-colbert", help="Leave token vectors out.")]


@dataclass(frozen=True, kw_only=True)
class TargetFlags:
    """Where the other system is, and what of a collection it gets under which name."""

    url: TargetUrl = None
    path: TargetPath = None
    output: Output = None
    collection_name: TargetName = None
    no_colbert: NoColbert = False

    def target(self, to: To, settings: CollectionSettings, batch: int = 1) -> Target:
        """The target for a collection of these settings; batch: documents of a request at most.

        Raises typer.BadParameter, TransferError, or MissingPackageError.
        """
        self._check_destination(to)
        url = self._checked_url()
        if self.no_colbert:
            settings = replace(settings, token_codec="none", codebook=None)  # noqa: S106  # a codec, no secret
        if to == "parquet" and self.output is not None:
            return _parquet(self.output, settings)
        if settings.dense_dimension == 0:
            raise typer.BadParameter(
                f"collection {settings.name!r} has no dense side, which {to} is to search; export it to "
                "parquet",
                param_hint="--to",
            )
        key = None if url is None else os.environ.get(KEYS[to])
        if to == "qdrant":
            return self._qdrant(settings, url, batch, key)
        if to == "milvus":
            return self._milvus(settings, url, batch, key)
        return self._over_rest(to, settings, url, batch, key)

    def _check_destination(self, to: To) -> None:
        """Raises typer.BadParameter unless just one of the destinations is given that the system takes."""
        given = {"url": self.url, "path": self.path, "output": self.output}
        wanted = DESTINATIONS[to]
        for flag, value in given.items():
            if value is not None and flag not in wanted:
                raise typer.BadParameter(f"goes not with --to {to}", param_hint=f"--{flag}")
        if sum(given[flag] is not None for flag in wanted) != 1:
            raise typer.BadParameter(f"give {' or '.join(f'--{flag}' for flag in wanted)}", param_hint="--to")

    def _checked_url(self) -> str | None:
        if self.url is None:
            return None
        try:
            return url_of(self.url)
        except ValueError as error:
            raise typer.BadParameter(f"{error}", param_hint="--url") from error

    def _qdrant(self, settings: CollectionSettings, url: str | None, batch: int, key: str | None) -> Target:
        from tercet.transfer.errors import missing

        try:
            from tercet.transfer.qdrant.connection import QdrantPlace
            from tercet.transfer.qdrant.target import QdrantTarget
        except ImportError as error:
            raise missing("qdrant-client", "qdrant", error) from error
        connection = QdrantPlace(url, None if self.path is None else str(self.path.resolve()), key)
        return QdrantTarget(connection, self.collection_name or settings.name, settings, batch)

    def _milvus(self, settings: CollectionSettings, url: str | None, batch: int, key: str | None) -> Target:
        from tercet.transfer.errors import missing

        if self.path is not None and self.path.suffix != ".db":
            raise typer.BadParameter("the file of Milvus Lite ends in .db", param_hint="--path")
        try:
            from tercet.transfer.milvus.connection import MilvusPlace
            from tercet.transfer.milvus.target import MilvusTarget
        except ImportError as error:
            raise missing("pymilvus", "milvus", error) from error
        uri = url if self.path is None else str(self.path.resolve())
        name = self.collection_name or _underscored(settings.name)
        return MilvusTarget(MilvusPlace(uri or "", key), name, settings, batch)

    def _over_rest(
        self, to: To, settings: CollectionSettings, url: str | None, batch: int, key: str | None
    ) -> Target:
        from tercet.transfer.elasticsearch import ElasticsearchTarget
        from tercet.transfer.rest import RestServer
        from tercet.transfer.vespa import VespaTarget

        scheme, kind = ("ApiKey", ElasticsearchTarget) if to == "elasticsearch" else ("Bearer", VespaTarget)
        server = None
        if url is not None:
            server = RestServer(to.capitalize(), url, None if key is None else f"{scheme} {key}")
        name = self.collection_name or settings.name
        return kind(name, settings, batch, server=server, folder=self.output)


def _parquet(output: Path, settings: CollectionSettings) -> Target:
    from tercet.transfer.errors import missing

    try:
        from tercet.transfer.parquet.target import ParquetTarget
    except ImportError as error:
        raise missing("pyarrow", "parquet", error) from error
    return ParquetTarget(output, settings)


def _underscored(name: str) -> str:
    """A collection's name as Milvus allows it."""
    name = name.replace("-", "_")
    return name if name[0].isalpha() else f"c_{name}"
