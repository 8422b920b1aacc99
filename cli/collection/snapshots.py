"""`tercet collection push`, `pull` and `gc`: a collection's snapshots on an object store."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, megabytes, print_json, print_warning
from tercet.cli.stores.opening import StoreFlags
from tercet.index.errors import CollectionBusyError

StoreUrl = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="Where the collection's snapshots are: file:///folder, s3://bucket/path, gs://bucket/path or "
        "az://container/path. Keys, region and endpoint come from the environment.",
    ),
]


@with_flag_groups
def push(
    name: options.Name,
    store_url: StoreUrl,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Send every file, also what the store has: where that is damaged."),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Publish it in the place of what is there, also where that is another collection of this "
            "name or has later writes.",
        ),
    ] = False,
    *,
    where: StoreFlags,
    as_json: options.AsJson = False,
) -> None:
    """Publish a collection's current snapshot on an object store; only what is new is sent.

    What was written is flushed first. Where a running server writes the collection, give its address
    with --url for that; without it the snapshot is pushed as it is published.
    """
    from tercet.cli.progress import count_progress
    from tercet.cluster.objects.opening import open_store
    from tercet.cluster.snapshots.pushing import push as push_snapshot
    from tercet.index.collection import Collection

    settings = options.settings_from(data=where.data)
    store = open_store(store_url)
    collection = Collection.open(options.collections_root(settings), name)
    written = collection.settings.name
    try:
        with where.opened() as writer:
            writer.publish(written)
    except CollectionBusyError:
        print_warning(
            f"collection {written!r} is being written, so it is pushed as it is published, without the last "
            "writes; give the server that writes it with --url to have them"
        )
    with count_progress("Sending", "bytes") as progress:
        stages = settings.data / "snapshots"
        pushed = push_snapshot(collection, store, stages, progress, repair=repair, force=force)
    published = pushed.published
    if as_json:
        print_json(
            {
                "collection": published.collection,
                "url": store.url,
                "snapshot": published.name,
                "new": pushed.new,
                "documents": published.manifest.documents,
                "position": published.manifest.ledger_position,
                "sent_files": pushed.sent_files,
                "sent_bytes": pushed.sent_bytes,
                "total_bytes": published.size_bytes,
            }
        )
        return
    documents = counted(published.manifest.documents, "document")
    if pushed.new:
        console().print(
            f"Collection {published.collection!r} is published as snapshot {published.name} of {store.url}: "
            f"{documents}; {megabytes(pushed.sent_bytes)} of {megabytes(published.size_bytes)} were sent.",
            soft_wrap=True,
        )
    else:
        again = f"; {megabytes(pushed.sent_bytes)} were sent again" if pushed.sent_bytes else ""
        console().print(
            f"Snapshot {published.name} of {store.url} is this one already: {documents}; nothing was "
            f"published{again}.",
            soft_wrap=True,
        )


def pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the collection, as it was pushed.")],
    store_url: StoreUrl,
    new_name: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="OTHER", help="Call the collection so here. [default: NAME]", show_default=False
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--snapshot", min=1, help="Number of an older snapshot. [default: the newest]", show_default=False
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace the collection here, also where it has writes of its own."),
    ] = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a published snapshot a collection here, verified; one that is here has its documents replaced.

    Only what is not here is fetched.
    """
    from tercet.cli.progress import count_progress
    from tercet.cluster.objects.opening import open_store
    from tercet.cluster.snapshots.pulling import pull as pull_snapshot

    settings = options.settings_from(data=data)
    store = open_store(store_url)
    target = new_name or name
    with count_progress("Fetching", "bytes") as progress:
        try:
            pulled = pull_snapshot(
                options.collections_root(settings),
                name,
                store,
                settings.data / "snapshots",
                new_name=new_name,
                number=number,
                progress=progress,
                force=force,
            )
        except CollectionBusyError as error:
            raise CollectionBusyError(
                f"{error}; where a server writes it, pull under another name (--as) and "
                "switch an alias to that"
            ) from error
    published, fetched = pulled.published, pulled.fetched
    if as_json:
        print_json(
            {
                "collection": target,
                "url": store.url,
                "snapshot": published.name,
                "documents": published.manifest.documents,
                "fetched_files": fetched.files,
                "fetched_bytes": fetched.bytes,
                "total_bytes": published.size_bytes,
            }
        )
        return
    console().print(
        f"Collection {target!r} is snapshot {published.name} of {store.url}: "
        f"{counted(published.manifest.documents, 'document')}; {megabytes(fetched.bytes)} of "
        f"{megabytes(published.size_bytes)} were fetched.",
        soft_wrap=True,
    )


def collect(
    store_url: StoreUrl,
    keep: Annotated[int, typer.Option(min=1, help="How many of the newest snapshots stay.")] = 3,
    grace_hours: Annotated[
        float,
        typer.Option(
            min=0,
            max=100_000,
            help="What is younger stays: an hour more than a push, a build or a pull there may take.",
        ),
    ] = 24.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Remove older snapshots from an object store, and files that no kept one names."""
    from tercet.cluster.objects.opening import open_store
    from tercet.cluster.snapshots.collecting import collect as collect_store

    store = open_store(store_url)
    removed = collect_store(store, keep=keep, grace=timedelta(hours=grace_hours), dry_run=dry_run)
    if as_json:
        record: dict[str, Any] = {"url": store.url, "dry_run": dry_run}
        print_json({**record, "manifests": removed.manifests, "files": removed.files, "bytes": removed.bytes})
        return
    verb = "would be removed from" if dry_run else "were removed from"
    console().print(
        f"{counted(removed.manifests, 'manifest')} and {counted(removed.files, 'file')} "
        f"({megabytes(removed.bytes)}) {verb} {store.url}.",
        soft_wrap=True,
    )
