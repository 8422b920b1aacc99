"""`tercet documents`: put, get, list and delete documents of a collection."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli import options, reading
from cli.batches import batches, document_record
from cli.filters import filter_json as json_of
from cli.filters import parse_filter
from cli.output import console, print_json
from cli.remote import Remote, Url, named_url, path_of
from cli.sources import GivenSources, given_sources
from index.errors import DocumentNotFoundError

if TYPE_CHECKING:
    from index.documents.filters import Filter
    from index.live.collection import LiveCollection
    from index.snapshot import Snapshot
    from ingest.sources.reader import Reading
    from service.settings import Settings

PAGE = 1000

app = typer.Typer(help="Put, get, list and delete documents of a collection.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Option(
        "--collection",
        help="Name of the collection, which must exist.",
        autocompletion=options.collection_names,
    ),
]
FilterJson = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help='Such as {"eq": {"lang": "en"}}.', show_default=False),
]


@app.command()
def put(
    source: Annotated[list[str], typer.Argument(help=reading.SOURCE)],
    collection: Name,
    on_error: Annotated[
        Literal["stop", "skip"], typer.Option(help="At a bad record: stop, or leave it out and list it.")
    ] = "stop",
    text_field: reading.TextField = None,
    title_field: reading.TitleField = None,
    id_field: reading.IdField = None,
    metadata_field: reading.MetadataFields = None,
    no_metadata_field: reading.NotMetadataFields = None,
    generate_ids: reading.GenerateIds = False,
    columns: reading.ColumnNames = None,
    encoding: reading.Encoding = None,
    delimiter: reading.Delimiter = None,
    split: reading.SplitInto = None,
    split_size: reading.SplitSize = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="With --url: keep the collection, made where it is missing, like a folder of Markdown, "
            "text, HTML and PDF, until Ctrl-C. What it put of files that change or go is deleted.",
        ),
    ] = False,
    sync: Annotated[bool, typer.Option("--sync", help="As --watch, but once.")] = False,
    mark: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --watch and --sync: what the folder is known by there. [default: its name]",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    data: options.Data = None,
    adapters: options.Adapters = None,
    checkpoint: options.Checkpoint = None,
    engine: options.Engine = None,
    revision: options.Revision = None,
    device: options.Device = None,
    threads: options.Threads = None,
) -> None:
    """Add documents, or replace those with the same ids.

    Without --url all of them take effect in one step. A server takes them in batches, each of which is on its
    disk and searched before the next one is sent; a command that was interrupted can be given again.
    """
    read_as = reading.reading_from(
        text_field,
        title_field,
        id_field,
        metadata_field,
        no_metadata_field,
        encoding,
        delimiter,
        generate_ids=generate_ids,
        names=columns,
        split=split,
        split_size=split_size,
    )
    settings = options.settings_from(
        data=data,
        adapters=adapters,
        checkpoint=checkpoint,
        engine=engine,
        revision=revision,
        device=device,
        threads=threads,
    )
    if watch or sync:
        if url is None:
            raise typer.BadParameter("goes with --url", param_hint="--watch" if watch else "--sync")
        if generate_ids or id_field is not None:
            raise typer.BadParameter("goes without --watch: files go by their paths", param_hint="--id-field")
        if len(source) > 1:
            raise typer.BadParameter("is one folder with --watch and --sync", param_hint="SOURCE")
        from cli.watching.command import keep_like

        keep_like(url, settings, Path(source[0]), collection, read_as, mark, on_error, watch=watch)
        return
    if mark is not None:
        raise typer.BadParameter("goes with --watch or --sync", param_hint="--mark")
    with given_sources(source) as given:
        reading.say_columns(given, read_as)
        if url is not None:
            _put_remote(url, given, collection, on_error, read_as, data)
        else:
            _put_here(settings, given, collection, on_error, read_as)


def _put_here(
    settings: Settings,
    given: GivenSources,
    collection: str,
    on_error: Literal["stop", "skip"],
    read_as: Reading,
) -> None:
    from cli.index_build import build_with
    from index.collection import Collection

    Collection.open(options.collections_root(settings), collection)
    done = build_with(settings, collection, given.paths, on_error=on_error, reading=read_as, mode="upsert")
    given.print_skips(done.skips, done.skipped)
    console().print(f"{done.documents:,} documents are in collection {collection!r}.")


@app.command()
def get(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.")],
    collection: Name,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print documents, one JSON object a line; exit code 1 where one is not there."""
    if url is not None:
        with _remote(url, data) as remote:
            found = remote.ask("POST", path_of(collection, "documents", "get"), json={"ids": ids})
        records, missing = found["documents"], found["missing"]
    else:
        with _snapshot(collection, data) as snapshot:
            documents = {id: snapshot.get(id) for id in ids}
        records = [document_record(document) for document in documents.values() if document is not None]
        missing = [id for id, document in documents.items() if document is None]
    for record in records:
        print_json(record)
    if missing:
        raise DocumentNotFoundError(f"collection {collection!r} has no document {missing[0]!r:.600}")


@app.command("list")
def list_documents(
    collection: Name,
    after: Annotated[
        str | None, typer.Option(help="Begin after this id.", metavar="ID", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Documents at most. [default all]", show_default=False)
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(help="A declared field to order by. [default: the id]", show_default=False),
    ] = None,
    descending: Annotated[
        bool, typer.Option("--descending", help="With --order-by: greatest first.")
    ] = False,
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print documents, one JSON object a line, so that `put` can read them again."""
    condition = None if filter_json is None else parse_filter(filter_json)
    if descending and order_by is None:
        raise typer.BadParameter("goes with --order-by", param_hint="--descending")
    if after is not None and order_by is not None:
        raise typer.BadParameter("goes without --order-by", param_hint="--after")
    if url is not None:
        params = {} if after is None else {"after": after}
        if filter_json is not None:
            params["filter"] = filter_json
        if order_by is not None:
            params |= {"order_by": order_by, "order": "desc" if descending else "asc"}
        with _remote(url, data) as remote:
            _print_all(_pages(remote, collection, params, limit), limit)
        return
    with _snapshot(collection, data) as snapshot:
        if order_by is None:
            _print_all(_documents_of(snapshot, after, condition), limit)
        else:
            _print_all(_ordered(snapshot, order_by, condition, descending=descending), limit)


@app.command()
def update(
    collection: Name,
    metadata: Annotated[
        str, typer.Option(metavar="JSON", help='What their metadata become, such as {"year": 2001}.')
    ],
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids.", show_default=False)
    ] = None,
    filter_json: FilterJson = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge it into what each has (RFC 7396): null removes.")
    ] = False,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Change the metadata of documents, by id or by filter; nothing is encoded again."""
    condition, change = _chosen(ids, filter_json), _object(metadata)
    if url is not None:
        asked = {"metadata": change, "merge": merge, "idempotency_key": secrets.token_hex(16)}
        asked |= {"ids": ids} if ids else {"filter": json_of(filter_json or "")}
        with _remote(url, data) as remote:
            updated = remote.ask("POST", path_of(collection, "documents", "update"), json=asked)["updated"]
    else:
        with _live(collection, data) as live:
            written = live.update(condition or ids or [], change, merge=merge)
            live.flush()
        updated = written.documents
    console().print(f"{updated:,} documents were changed in collection {collection!r}.")


@app.command()
def count(
    collection: Name,
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print how many documents there are, or how many a filter allows."""
    condition = None if filter_json is None else parse_filter(filter_json)
    if url is not None:
        body = {} if filter_json is None else {"filter": json_of(filter_json)}
        with _remote(url, data) as remote:
            typer.echo(remote.ask("POST", path_of(collection, "documents", "count"), json=body)["count"])
        return
    with _snapshot(collection, data) as snapshot:
        typer.echo(snapshot.count(condition))


@app.command()
def delete(
    collection: Name,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids.", show_default=False)
    ] = None,
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Delete documents by id, or those that a filter allows. Ids that are not there are no error."""
    condition = _chosen(ids, filter_json)
    if url is not None:
        asked = {"ids": ids} if ids else {"filter": json_of(filter_json or "")}
        with _remote(url, data) as remote:
            key = {"idempotency_key": secrets.token_hex(16)}
            deleted = remote.ask("POST", path_of(collection, "documents", "delete"), json={**asked, **key})[
                "deleted"
            ]
    else:
        with _live(collection, data) as live:
            written = live.delete(ids or []) if condition is None else live.delete_matching(condition)
            live.flush()
        deleted = written.documents
    console().print(f"{deleted:,} documents were deleted from collection {collection!r}.")


def _chosen(ids: list[str] | None, filter_json: str | None) -> Filter | None:
    """The filter that is given in the place of ids. Raises typer.BadParameter where both are, or none."""
    if bool(ids) == (filter_json is not None):
        raise typer.BadParameter("give ids, or --filter: one of them")
    return None if filter_json is None else parse_filter(filter_json)


def _object(text: str) -> dict[str, Any]:
    """A JSON object. Raises typer.BadParameter."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is no JSON ({error})", param_hint="--metadata") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("is no JSON object", param_hint="--metadata")
    return value


@contextmanager
def _live(name: str, data: Path | None) -> Iterator[LiveCollection]:
    """A collection to write, which no server writes."""
    from index.collection import Collection
    from index.live.collection import LiveCollection

    root = options.collections_root(options.settings_from(data=data))
    with named_url(), LiveCollection(Collection.open(root, name)) as live:
        yield live


@contextmanager
def _remote(url: str, data: Path | None) -> Iterator[Remote]:
    with Remote(url, options.settings_from(data=data)) as remote:
        yield remote


@contextmanager
def _snapshot(name: str, data: Path | None) -> Iterator[Snapshot]:
    """The documents of a collection, or of all that an alias means; those that only a ledger holds, too."""
    from index.catalog.aliases import Aliases
    from index.snapshot import Snapshot

    root = options.collections_root(options.settings_from(data=data))
    with ExitStack() as opened:
        names = Aliases(root).collections_of(name)
        parts = [opened.enter_context(_snapshot_of(root, each)) for each in names]
        yield parts[0] if len(parts) == 1 else Snapshot.united(name, parts)


@contextmanager
def _snapshot_of(root: Path, name: str) -> Iterator[Snapshot]:
    """Of one collection, by its own name."""
    from index.collection import Collection
    from index.live.collection import LiveCollection

    collection = Collection.open(root, name)
    if not collection.layout.ledger.exists():
        yield collection.snapshot()
        return
    with named_url(), LiveCollection(collection) as live:
        yield live.snapshot()


def _documents_of(
    snapshot: Snapshot, after: str | None, condition: Filter | None
) -> Iterator[dict[str, Any]]:
    collection = None
    while page := snapshot.page(after, PAGE, condition, collection):
        yield from map(document_record, page)
        after, collection = page[-1].id, page[-1].collection


def _ordered(
    snapshot: Snapshot, field: str, condition: Filter | None, *, descending: bool
) -> Iterator[dict[str, Any]]:
    from index.search.ordered import Order

    order, after = Order(field, descending), None
    while page := snapshot.ordered_page(order, after, PAGE, condition):
        yield from (document_record(snapshot.read(placed)) for placed in page)
        after = page[-1].at


def _pages(
    remote: Remote, collection: str, asked: Mapping[str, str], limit: int | None
) -> Iterator[dict[str, Any]]:
    params: dict[str, str | int] = {**asked, **({} if limit is None else {"limit": min(limit, 100)})}
    while True:
        page = remote.ask("GET", path_of(collection, "documents"), params=params)
        yield from page["documents"]
        if page["next"] is None:
            return
        params["after"] = page["next"]


def _print_all(records: Iterator[dict[str, Any]], limit: int | None) -> None:
    from itertools import islice

    for record in islice(records, limit):
        print_json(record)


def _put_remote(
    url: str,
    given: GivenSources,
    collection: str,
    on_error: Literal["stop", "skip"],
    read_as: Reading,
    data: Path | None,
) -> None:
    """Sends documents in batches, each under a key of its own, so that a repeat changes nothing."""
    from cli.encoders import tokenizer_of
    from cli.progress import count_progress
    from ingest.sources.reader import DocumentReader

    with _remote(url, data) as remote, count_progress("put", "documents") as report:
        found = remote.ask("GET", path_of(collection))
        measure = tokenizer_of(found["model"]) if read_as.split else None
        reader = DocumentReader(
            given.paths, on_error=on_error, fields=found["fields"], reading=read_as, tokenizer=measure
        )
        done, position = 0, None
        for batch in batches(reader):
            body = {"documents": batch, "idempotency_key": secrets.token_hex(16)}
            position = remote.ask("PUT", path_of(collection, "documents"), json=body)["position"]
            done += len(batch)
            report(done, reader.total or done)
        if not done:
            raise reader.no_documents()
    given.print_skips(reader.skips, reader.skipped)
    console().print(f"{done:,} documents are in collection {collection!r}, position {position}.")
