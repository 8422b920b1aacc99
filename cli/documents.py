"""`tercet documents`: put, get, list and delete documents of a collection."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli import options, reading
from cli.filters import filter_json as json_of
from cli.filters import parse_filter
from cli.output import console, print_json
from cli.remote import Remote, Url, named_url, path_of
from cli.sources import GivenSources, given_sources
from index.errors import DocumentNotFoundError

if TYPE_CHECKING:
    from index.candidates import Document
    from index.documents.filters import Filter
    from index.live.collection import LiveCollection
    from index.snapshot import Snapshot
    from ingest.sources.reader import Reading
    from service.settings import Settings

BATCH_DOCUMENTS = 64
BATCH_CHARACTERS = 400_000
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
    encoding: reading.Encoding = None,
    delimiter: reading.Delimiter = None,
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
    )
    with given_sources(source) as given:
        reading.say_columns(given, read_as)
        if url is not None:
            _put_remote(url, given, collection, on_error, read_as, data)
            return
        settings = options.settings_from(
            data=data,
            adapters=adapters,
            checkpoint=checkpoint,
            engine=engine,
            revision=revision,
            device=device,
            threads=threads,
        )
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
    document_id: Annotated[str, typer.Argument(metavar="ID", help="The document's id.")],
    collection: Name,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print a document as JSON; exit code 1 where it is not there."""
    if url is not None:
        with _remote(url, data) as remote:
            print_json(remote.ask("GET", path_of(collection, "documents", document_id)))
        return
    with _snapshot(collection, data) as snapshot:
        document = snapshot.get(document_id)
    if document is None:
        raise DocumentNotFoundError(f"collection {collection!r} has no document {document_id!r:.600}")
    print_json(_record(document))


@app.command("list")
def list_documents(
    collection: Name,
    after: Annotated[
        str | None, typer.Option(help="Begin after this id.", metavar="ID", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Documents at most. [default all]", show_default=False)
    ] = None,
    filter_json: FilterJson = None,
    url: Url = None,
    data: options.Data = None,
) -> None:
    """Print documents in order of id, one JSON object a line, so that `put` can read them again."""
    condition = None if filter_json is None else parse_filter(filter_json)
    if url is not None:
        with _remote(url, data) as remote:
            _print_all(_pages(remote, collection, after, filter_json, limit), limit)
        return
    with _snapshot(collection, data) as snapshot:
        _print_all(_documents_of(snapshot, after, condition), limit)


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
    """The collection's documents, those that only its ledger holds, too."""
    from index.collection import Collection
    from index.live.collection import LiveCollection

    collection = Collection.open(options.collections_root(options.settings_from(data=data)), name)
    if not collection.layout.ledger.exists():
        yield collection.snapshot()
        return
    with named_url(), LiveCollection(collection) as live:
        yield live.snapshot()


def _documents_of(
    snapshot: Snapshot, after: str | None, condition: Filter | None
) -> Iterator[dict[str, Any]]:
    while page := snapshot.page(after, PAGE, condition):
        yield from map(_record, page)
        after = page[-1].id


def _pages(
    remote: Remote, collection: str, after: str | None, filter_json: str | None, limit: int | None
) -> Iterator[dict[str, Any]]:
    while True:
        params: dict[str, str | int] = {} if limit is None else {"limit": min(limit, 100)}
        params |= {} if after is None else {"after": after}
        params |= {} if filter_json is None else {"filter": filter_json}
        page = remote.ask("GET", path_of(collection, "documents"), params=params)
        yield from page["documents"]
        after = page["next"]
        if after is None:
            return


def _print_all(records: Iterator[dict[str, Any]], limit: int | None) -> None:
    from itertools import islice

    for record in islice(records, limit):
        print_json(record)


def _record(document: Document) -> dict[str, Any]:
    """As JSON has it, and as sources do."""
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
    }


def _put_remote(
    url: str,
    given: GivenSources,
    collection: str,
    on_error: Literal["stop", "skip"],
    read_as: Reading,
    data: Path | None,
) -> None:
    """Sends documents in batches, each under a key of its own, so that a repeat changes nothing."""
    from cli.progress import count_progress
    from ingest.sources.reader import DocumentReader

    with _remote(url, data) as remote, count_progress("put", "documents") as report:
        fields = remote.ask("GET", path_of(collection))["fields"]
        reader = DocumentReader(given.paths, on_error=on_error, fields=fields, reading=read_as)
        done, position = 0, None
        for batch in _batches(reader):
            body = {"documents": batch, "idempotency_key": secrets.token_hex(16)}
            position = remote.ask("PUT", path_of(collection, "documents"), json=body)["position"]
            done += len(batch)
            report(done, reader.total or done)
        if not done:
            raise reader.no_documents()
    given.print_skips(reader.skips, reader.skipped)
    console().print(f"{done:,} documents are in collection {collection!r}, position {position}.")


def _batches(documents: Iterator[Document] | Any) -> Iterator[list[dict[str, Any]]]:
    from index.documents.store import decode_document, encode_document

    batch: list[dict[str, Any]] = []
    characters = 0
    for document in documents:
        if batch and (len(batch) == BATCH_DOCUMENTS or characters + len(document.text) > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        # What is stored of it: half a character in a text is replaced, which no request can hold.
        batch.append(_record(decode_document(document.id, encode_document(document).content)))
        characters += len(document.text)
    if batch:
        yield batch
