"""`tercet collection export` and `query`: all representations into other systems, and queries for these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli import options
from tercet.cli.collection.export_targets import TargetFlags, To
from tercet.cli.filters import Filters, checked_filter
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import counted, error_console

if TYPE_CHECKING:
    from tercet.index.candidates import Document
    from tercet.index.collection import Collection
    from tercet.index.snapshot import Snapshot
    from tercet.service.settings.settings import Settings
    from tercet.transfer.queries import CollectionQuery

EXAMPLE_WORDS = 8
BY_CURL = ("elasticsearch", "vespa")  # to which a query goes as a request, and to others in Python
PRINTED = Path("-")

ToOption = Annotated[To, typer.Option("--to", help="Where to.")]


@with_flag_groups
def export(
    name: options.Name,
    to: ToOption,
    *,
    destination: TargetFlags,
    filter: Filters = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Documents of a request at most.")] = 100,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove what is there under this name first.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an export was interrupted: documents are put again.")
    ] = False,
    query: Annotated[
        str | None,
        typer.Option(
            help="What the query asks for. [default: how the first document begins]", show_default=False
        ),
    ] = None,
    query_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the query goes, which has thousands of numbers; - prints it. [default: "
            "NAME-query.py, or NAME-query.sh of a request for curl]",
            show_default=False,
        ),
    ] = None,
    no_query: Annotated[
        bool, typer.Option("--no-query", help="Write no query; no encoder is loaded then.")
    ] = False,
    encoding: options.EncoderFlags,
) -> None:
    """Write documents with their representations elsewhere, and a query that uses them to a file.

    What is exported is the state at the beginning, also while a server writes the collection. Needs the extra
    of the target: tercet[parquet], tercet[qdrant] or tercet[milvus].
    """
    from tercet.cli.progress import count_progress
    from tercet.index.documents.filters import parse_filter
    from tercet.transfer.push import export as push

    if overwrite and resume:
        raise typer.BadParameter("goes without --overwrite", param_hint="--resume")
    if query is not None and no_query:
        raise typer.BadParameter("goes without --query", param_hint="--no-query")
    settings, condition = encoding.settings(), checked_filter(filter)
    allowed = None if condition is None else parse_filter(condition)
    with _snapshot(settings, name) as (collection, snapshot):
        target = destination.target(to, snapshot.undivided().settings, batch)
        encoded_query = None  # before anything is written, since the encoder may be another one
        if not no_query and (first := snapshot.page(None, 1, allowed)):
            text = query or _beginning(first[0])
            encoded_query = _query(settings, collection, snapshot, text, colbert=not destination.no_colbert)
        with count_progress("Exporting", "documents") as report:
            done = push(snapshot, target, filter=allowed, overwrite=overwrite, resume=resume, progress=report)
    remarks = error_console()
    for remark in target.remarks:
        remarks.print(f"Note: {remark}.", markup=False, soft_wrap=True)
    are = "is" if done == 1 else "are"
    remarks.print(
        f"{counted(done, 'document')} of collection {name!r} {are} in {target.name}.",
        markup=False,
        soft_wrap=True,
    )
    if encoded_query is None:
        return
    if query_file == PRINTED:
        typer.echo(target.query(encoded_query), nl=False)
        return
    file = query_file or Path(f"{name}-query.{'sh' if to in BY_CURL else 'py'}")
    file.write_text(target.query(encoded_query), encoding="utf-8")
    remarks.print(f"The query for {encoded_query.text!r} is in {file}.", markup=False, soft_wrap=True)


@with_flag_groups
def print_query(
    name: options.Name,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to search for.")],
    to: ToOption,
    *,
    destination: TargetFlags,
    encoding: options.EncoderFlags,
) -> None:
    """Print a query in the language of a system that the collection was exported to; nothing is sent."""
    settings = encoding.settings()
    with _snapshot(settings, name) as (collection, snapshot):
        target = destination.target(to, snapshot.undivided().settings)
        encoded_query = _query(settings, collection, snapshot, query, colbert=not destination.no_colbert)
    typer.echo(target.query(encoded_query), nl=False)


@contextmanager
def _snapshot(settings: Settings, name: str) -> Iterator[tuple[Collection, Snapshot]]:
    """The collection as it is now. What only its ledger holds is flushed first, unless a server writes it."""
    from tercet.cli.stores.local import LocalStore
    from tercet.index.collection import Collection

    collection = Collection.open(options.collections_root(settings), name)
    with LocalStore(settings) as store:
        store.publish_or_say(collection.settings.name)
    snapshot = collection.snapshot()
    try:
        yield collection, snapshot
    finally:
        snapshot.close()


def _query(
    settings: Settings, collection: Collection, snapshot: Snapshot, text: str, *, colbert: bool
) -> CollectionQuery:
    """The query of a text. Raises FingerprintMismatchError where the encoder is not the collection's."""
    from tercet.cli.encoders import encoder_of
    from tercet.ingest.encoder_match import require_encoder
    from tercet.models.encoder import encode, with_adapter
    from tercet.transfer.queries import CollectionQuery

    encoder = with_adapter(
        encoder_of(settings, snapshot.settings), snapshot.settings.adapter, snapshot.settings.name
    )
    require_encoder(snapshot.settings, encoder.info)
    defaults = collection.defaults()
    usual = snapshot.languages().usual_weights()
    sides = usual if defaults is None else defaults.weights
    return CollectionQuery.of(snapshot, text, encode(encoder, [text], "query"), sides, colbert=colbert)


def _beginning(document: Document) -> str:
    return " ".join((document.title or document.text).split()[:EXAMPLE_WORDS]) or document.id
