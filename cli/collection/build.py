"""`tercet collection build`: a collection from a source of documents, with progress, in one step."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli import options
from tercet.cli.building.new_collection import NewCollectionFlags
from tercet.cli.building.ready import ReadyFlags, ready_source
from tercet.cli.building.remote import build_remote
from tercet.cli.building.reports import json_failures, print_json_report, print_report
from tercet.cli.building.run import build_ready_with, build_with
from tercet.cli.building.sharded import ShardedFlags, build_in_shards
from tercet.cli.building.stopping import stop_when_stdin_closes
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, error_console
from tercet.cli.reading.flags import SOURCE, ReadingFlags, as_json
from tercet.cli.reading.preview import inferred_as_said, say_columns, show_sources
from tercet.cli.sources import STDIN, GivenSources, given_sources
from tercet.cli.stores.remote import Url
from tercet.service.settings.roles import Panel

if TYPE_CHECKING:
    from rich.console import Console

    from tercet.index.documents.metadata import FieldType
    from tercet.ingest.sources.reading import Reading
    from tercet.ingest.target import RequestedSettings
    from tercet.models.tokenizer import Tokenizer
    from tercet.service.settings.settings import Settings


UNWEIGHED = (
    "Note: a search weighs BM25 only where it is asked to: --weights 1,1,1,1, or over HTTP "
    '{"weights": {"bm25": 1}}.'
)


@with_flag_groups
def build(
    source: Annotated[
        list[str],
        typer.Argument(help=f"{SOURCE} With --from qdrant a server's address or a folder of the local mode."),
    ],
    collection: Annotated[str, typer.Option(help="Collection to create or to replace.")],
    *,
    exported: ReadyFlags,
    mode: Annotated[
        Literal["replace", "upsert"],
        typer.Option(help="Replace all documents of the collection, or only those with the same ids."),
    ] = "replace",
    on_error: Annotated[
        Literal["stop", "skip"], typer.Option(help="At a bad record: stop, or leave it out and list it.")
    ] = "stop",
    reading: ReadingFlags,
    infer_fields: Annotated[
        bool,
        typer.Option(
            "--infer-fields",
            help="Find the types of a new collection's other metadata fields in the first documents.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Build nothing: say what would be read, with three documents.")
    ] = False,
    new: NewCollectionFlags,
    adapter: options.Adapter = None,
    encoding: options.EncoderFlags,
    encoder_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL[,URL…]",
            help="Encoder workers to use instead of a local encoder.",
            show_default=False,
            rich_help_panel=Panel.ENCODER,
        ),
    ] = None,
    url: Url = None,
    sharding: ShardedFlags,
    progress: Annotated[
        options.ProgressKind, typer.Option(help="How to show progress.", rich_help_panel=Panel.LOGS)
    ] = "auto",
    stop_with_stdin: Annotated[bool, typer.Option(hidden=True)] = False,
    mark: Annotated[str | None, typer.Option(hidden=True)] = None,
    staged: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Build a collection from documents, or replace or add to what it holds in one step.

    \b
    tercet collection build articles.jsonl --collection articles --field lang:keyword
    tercet collection build docs --collection docs --split markdown

    A document is {"id" or "_id", "text", "title"?, "metadata"?}; further keys become metadata. With --url a
    server builds; SOURCE is then a path below sources/ of its data root.
    """
    if stop_with_stdin:
        if STDIN in source:
            raise typer.BadParameter(
                "goes without -, which is standard input", param_hint="--stop-with-stdin"
            )
        threading.Thread(target=stop_when_stdin_closes, daemon=True).start()
    read_as, of_new = reading.reading(), new.settings()
    settings = encoding.settings(
        encoder_urls=encoder_url, ray_address=sharding.ray_address, ray_storage=sharding.ray_storage
    )
    sharding.check(
        mode=mode,
        others={
            "--from": exported.ready is not None,
            "--url": url is not None,
            "--encoder-url": bool(settings.encoder_urls),
        },
    )
    exported.check(source, infer_fields=infer_fields)
    if url is not None:
        _check_with_url(source, exported.ready, of_new, dry_run=dry_run)
        request = {
            "source": source if len(source) > 1 else source[0],
            "mode": mode,
            "on_error": on_error,
            "adapter": adapter,
            "reading": as_json(read_as, infer_fields=infer_fields),
        }
        build_remote(url, settings, collection, request, progress)
        return
    given = GivenSources([])
    if exported.ready is not None:
        stored_as = exported.source_collection or collection
        with json_failures(progress), closing(ready_source(exported.ready, source[0], stored_as)) as ready:
            done = build_ready_with(
                settings,
                collection,
                ready,
                progress,
                on_error=on_error,
                adapter=adapter,
                mode=mode,
                settings=of_new,
            )
    else:
        from tercet.index.catalog.names import check_collection_name

        check_collection_name(collection)
        with json_failures(progress), given_sources(source) as given:
            guessed: tuple[str, ...] = ()
            if infer_fields:
                present = collection if not dry_run and _exists(settings, collection) else None
                out = None if progress == "json" else console() if dry_run else error_console()
                guessed = _infer_fields(given, read_as, of_new, present, out)
            if dry_run:
                measure = _tokenizer(settings, collection) if read_as.split else None
                command = ["tercet", *(word for word in sys.argv[1:] if word != "--dry-run")]
                show_sources(given, read_as, on_error, of_new["fields"] or {}, measure, command)
                return
            if progress != "json":
                say_columns(given, read_as)
            if sharding.is_sharded:
                from tercet.cluster.building.settings import ShardedBuild

                codec = of_new.pop("token_codec")
                sharded = ShardedBuild(
                    collection,
                    given.paths,
                    sharding.shards or 1,
                    of_new,
                    codec,
                    adapter,
                    on_error,
                    read_as,
                    guessed,
                )
                build_in_shards(
                    settings, sharding, sharded, progress, given, mode=mode, mark=mark, staged=staged
                )
                return
            done = build_with(
                settings,
                collection,
                given.paths,
                progress,
                on_error=on_error,
                reading=read_as,
                guessed=guessed,
                adapter=adapter,
                mark=mark,
                mode=mode,
                staged=staged,
                **of_new,
            )
    if progress == "json":
        print_json_report(done, given)
    else:
        print_report(done, given, options.collections_root(settings) / collection)
        if new.bm25:
            error_console().print(UNWEIGHED, markup=False, soft_wrap=True)


def _check_with_url(
    source: Sequence[str], ready: str | None, of_new: Mapping[str, object], *, dry_run: bool
) -> None:
    """Raises typer.BadParameter for what a server's build does not take."""
    if ready is not None:
        raise typer.BadParameter("goes without --url", param_hint="--from")
    if STDIN in source:
        raise typer.BadParameter(
            "a server builds from files of its own; tercet documents put - --url URL sends it documents",
            param_hint="-",
        )
    if any(value is not None for value in of_new.values()):
        raise typer.BadParameter(
            "a server builds with the settings of PUT /collections/NAME", param_hint="--url"
        )
    if dry_run:
        raise typer.BadParameter("goes without --url", param_hint="--dry-run")


def _infer_fields(
    given: GivenSources, reading: Reading, new: RequestedSettings, present: str | None, out: Console | None
) -> tuple[str, ...]:
    """Gives a new collection the fields that are found in its sources; returns their names.

    present: the collection's name where it is there, with fields that stay; out: where that is said.
    """
    guessed: dict[str, FieldType] = {}
    said: str | None = f"collection {present!r} exists with its fields, which stay"
    if present is None:
        guessed, said = inferred_as_said(given, reading, new["fields"])
        new["fields"] = {**guessed, **(new["fields"] or {})} or None
    if said is not None and out is not None:
        out.print(said, markup=False, soft_wrap=True)
    return tuple(guessed)


def _tokenizer(settings: Settings, collection: str) -> Tokenizer | None:
    """The tokenizer of the collection's encoder, or of a new one's, where it is on this machine."""
    from tercet.cli.encoders import tokenizer_of
    from tercet.index.collection import Collection
    from tercet.index.errors import CollectionNotFoundError
    from tercet.ingest.encoder_match import checkpoint_of
    from tercet.models.variants import Variant

    try:
        checkpoint = checkpoint_of(Collection.open(options.collections_root(settings), collection).settings)
    except CollectionNotFoundError:
        checkpoint = None
    return tokenizer_of(checkpoint or Variant(settings.checkpoint, mcls_every=settings.mcls_every).name)


def _exists(settings: Settings, collection: str) -> bool:
    from tercet.ingest.target import exists

    return exists(options.collections_root(settings), collection)
