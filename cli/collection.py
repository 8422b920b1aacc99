"""`tercet collection`: documents with all representations into other systems, and queries for these."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli import options
from cli.flag_groups import with_flag_groups
from cli.opened import publish_unpublished
from cli.output import counted, error_console
from service.server_urls import url_of

if TYPE_CHECKING:
    from index.catalog.settings import CollectionSettings
    from index.collection import Collection
    from index.snapshot import Snapshot
    from service.settings import Settings
    from transfer.push import Target
    from transfer.queries import CollectionQuery

To = Literal["parquet", "qdrant", "milvus", "elasticsearch", "vespa"]
KEYS = {
    "qdrant": "QDRANT_API_KEY",
    "milvus": "MILVUS_TOKEN",
    "elasticsearch": "ELASTICSEARCH_API_KEY",
    "vespa": "VESPA_TOKEN",
}
# Where each may write: the flags, of which one is to be given.
PLACES: dict[str, tuple[str, ...]] = {
    "parquet": ("output",),
    "qdrant": ("url", "path"),
    "milvus": ("url", "path"),
    "elasticsearch": ("url", "output"),
    "vespa": ("url", "output"),
}
EXAMPLE_WORDS = 8

app = typer.Typer(
    help="Export a collection with all its representations, and print queries that use them.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the collection.")]
ToOption = Annotated[To, typer.Option("--to", help="Where to.")]
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


@app.command()
@with_flag_groups
def export(
    name: Name,
    to: ToOption,
    url: TargetUrl = None,
    path: TargetPath = None,
    output: Output = None,
    collection_name: TargetName = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Documents of a request at most.")] = 100,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove what is there under this name first.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an export was interrupted: documents are put again.")
    ] = False,
    no_colbert: NoColbert = False,
    query: Annotated[
        str | None,
        typer.Option(
            help="Print the query for this text. [default: how the first document begins]", show_default=False
        ),
    ] = None,
    no_query: Annotated[
        bool, typer.Option("--no-query", help="Print no query; no encoder is loaded then.")
    ] = False,
    *,
    encoding: options.EncoderFlags,
) -> None:
    """Write all documents with their representations elsewhere, and print the query that uses them.

    What is exported is the state at the beginning, also while a server writes the collection. Needs the extra
    of the target: tercet[parquet], tercet[qdrant] or tercet[milvus].
    """
    from cli.progress import count_progress
    from transfer.push import export as push

    if overwrite and resume:
        raise typer.BadParameter("goes without --overwrite", param_hint="--resume")
    if query is not None and no_query:
        raise typer.BadParameter("goes without --query", param_hint="--no-query")
    settings = encoding.settings()
    with _snapshot(settings, name) as (collection, snapshot):
        target = _target(
            snapshot.undivided().settings,
            to,
            url,
            path,
            output,
            collection_name,
            batch,
            colbert=not no_colbert,
        )
        asked = None  # before anything is written, since the encoder may be another one
        if not no_query and snapshot.documents:
            asked = _query(
                settings, collection, snapshot, query or _example(snapshot), colbert=not no_colbert
            )
        with count_progress("Exporting", "documents") as report:
            done = push(snapshot, target, overwrite=overwrite, resume=resume, progress=report)
    remarks = error_console()
    for remark in target.remarks:
        remarks.print(f"Note: {remark}.", markup=False, soft_wrap=True)
    are = "is" if done == 1 else "are"
    remarks.print(
        f"{counted(done, 'document')} of collection {name!r} {are} in {target.name}.",
        markup=False,
        soft_wrap=True,
    )
    if asked is not None:
        typer.echo(target.query(asked), nl=False)


@app.command("query")
@with_flag_groups
def print_query(
    name: Name,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to search for.")],
    to: ToOption,
    url: TargetUrl = None,
    path: TargetPath = None,
    output: Output = None,
    collection_name: TargetName = None,
    no_colbert: NoColbert = False,
    *,
    encoding: options.EncoderFlags,
) -> None:
    """Print a query in the language of a system that the collection was exported to; nothing is sent."""
    settings = encoding.settings()
    with _snapshot(settings, name) as (collection, snapshot):
        target = _target(
            snapshot.undivided().settings, to, url, path, output, collection_name, 1, colbert=not no_colbert
        )
        asked = _query(settings, collection, snapshot, query, colbert=not no_colbert)
    typer.echo(target.query(asked), nl=False)


@contextmanager
def _snapshot(settings: Settings, name: str) -> Iterator[tuple[Collection, Snapshot]]:
    """The collection as it is now. What only its ledger holds is flushed first, unless a server writes it."""
    from index.collection import Collection

    collection = Collection.open(options.collections_root(settings), name)
    publish_unpublished(collection, settings)
    snapshot = collection.snapshot()
    try:
        yield collection, snapshot
    finally:
        snapshot.close()


def _query(
    settings: Settings, collection: Collection, snapshot: Snapshot, text: str, *, colbert: bool
) -> CollectionQuery:
    """The query of a text. Raises FingerprintMismatchError where the encoder is not the collection's."""
    from cli.encoders import encoder_of
    from index.candidates import Weights
    from ingest.encoder_match import require_encoder
    from models.encoder import encode, with_adapter
    from transfer.queries import CollectionQuery

    encoder = with_adapter(
        encoder_of(settings, snapshot.settings), snapshot.settings.adapter, snapshot.settings.name
    )
    require_encoder(snapshot.settings, encoder.info)
    defaults = collection.defaults()
    sides = Weights() if defaults is None else defaults.weights
    return CollectionQuery.of(snapshot, text, encode(encoder, [text], "query"), sides, colbert=colbert)


def _example(snapshot: Snapshot) -> str:
    """How the first document begins."""
    (document,) = snapshot.page(None, 1)
    return " ".join((document.title or document.text).split()[:EXAMPLE_WORDS]) or document.id


def _target(
    settings: CollectionSettings,
    to: To,
    url: str | None,
    path: Path | None,
    output: Path | None,
    name: str | None,
    batch: int,
    *,
    colbert: bool,
) -> Target:
    """Where to export to. Raises typer.BadParameter, TransferError, or MissingPackageError."""
    given = {"url": url, "path": path, "output": output}
    wanted = PLACES[to]
    for flag, value in given.items():
        if value is not None and flag not in wanted:
            raise typer.BadParameter(f"goes not with --to {to}", param_hint=f"--{flag}")
    if sum(given[flag] is not None for flag in wanted) != 1:
        raise typer.BadParameter(f"give {' or '.join(f'--{flag}' for flag in wanted)}", param_hint="--to")
    if url is not None:
        try:
            url = url_of(url)
        except ValueError as error:
            raise typer.BadParameter(f"{error}", param_hint="--url") from error
    if not colbert:
        settings = replace(settings, token_codec="none", codebook=None)  # noqa: S106  # a codec, no secret
    key = os.environ.get(KEYS[to]) if to in KEYS and url is not None else None
    if to == "parquet" and output is not None:
        return _parquet(output, settings)
    if to != "parquet" and settings.dense_dimension == 0:
        raise typer.BadParameter(
            f"collection {settings.name!r} has no dense side, which {to} is to search; export it to parquet",
            param_hint="--to",
        )
    if to == "qdrant":
        return _qdrant(settings, url, path, name, batch, key)
    if to == "milvus":
        return _milvus(settings, url, path, name, batch, key)
    return _over_rest(settings, to, url, output, name, batch, key)


def _parquet(output: Path, settings: CollectionSettings) -> Target:
    from transfer.errors import missing

    try:
        from transfer.parquet.target import ParquetTarget
    except ImportError as error:
        raise missing("pyarrow", "parquet", error) from error
    return ParquetTarget(output, settings)


def _qdrant(
    settings: CollectionSettings,
    url: str | None,
    path: Path | None,
    name: str | None,
    batch: int,
    key: str | None,
) -> Target:
    from transfer.errors import missing

    try:
        from transfer.qdrant.connection import QdrantPlace
        from transfer.qdrant.target import QdrantTarget
    except ImportError as error:
        raise missing("qdrant-client", "qdrant", error) from error
    place = QdrantPlace(url, None if path is None else str(path.resolve()), key)
    return QdrantTarget(place, name or settings.name, settings, batch)


def _milvus(
    settings: CollectionSettings,
    url: str | None,
    path: Path | None,
    name: str | None,
    batch: int,
    key: str | None,
) -> Target:
    from transfer.errors import missing

    if path is not None and path.suffix != ".db":
        raise typer.BadParameter("the file of Milvus Lite ends in .db", param_hint="--path")
    try:
        from transfer.milvus.connection import MilvusPlace
        from transfer.milvus.target import MilvusTarget
    except ImportError as error:
        raise missing("pymilvus", "milvus", error) from error
    uri = url if path is None else str(path.resolve())
    return MilvusTarget(MilvusPlace(uri or "", key), name or _underscored(settings.name), settings, batch)


def _over_rest(
    settings: CollectionSettings,
    to: To,
    url: str | None,
    output: Path | None,
    name: str | None,
    batch: int,
    key: str | None,
) -> Target:
    from transfer.elasticsearch import ElasticsearchTarget
    from transfer.rest import RestServer
    from transfer.vespa import VespaTarget

    scheme, kind = ("ApiKey", ElasticsearchTarget) if to == "elasticsearch" else ("Bearer", VespaTarget)
    server = None
    if url is not None:
        server = RestServer(to.capitalize(), url, None if key is None else f"{scheme} {key}")
    return kind(name or settings.name, settings, batch, server=server, folder=output)


def _underscored(name: str) -> str:
    """A collection's name as Milvus allows it."""
    name = name.replace("-", "_")
    return name if name[0].isalpha() else f"c_{name}"
