"""`tercet collection reshard`: a collection on an object store in another number of shards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli import options
from tercet.cli.building.sharded import MOST_SHARDS, RayFlags, shard_servers
from tercet.cli.building.stopping import interruptible
from tercet.cli.collection.snapshots import StoreUrl
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, error_console, megabytes, print_failure, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tercet.cluster.resharding.reshard import ReshardProgress, ReshardReport
    from tercet.cluster.work.executor import Executor
    from tercet.service.settings.settings import Settings


@with_flag_groups
def reshard(
    url: StoreUrl,
    *,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_SHARDS, help="How many shards there are to be. [required]", show_default=False
        ),
    ] = None,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare", help="Leave the map as it is: a later call, which switches, then has less to do."
        ),
    ] = False,
    shard_urls: Annotated[
        str | None,
        typer.Option(
            metavar="URL[,URL…]",
            help="The servers of all shards to be, in order, for the map; replicas behind each as "
            "http://a|http://b. With --live those that have a shard go on with it.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Writes go on: shards publish and fetch by themselves, and hold writes for the last step. "
            "Only what leaves a shard is copied.",
        ),
    ] = False,
    abort: Annotated[
        bool,
        typer.Option("--abort", help="Have the present shards take writes again after a --live that died."),
    ] = False,
    map_of: Annotated[
        str | None,
        typer.Option(
            metavar="COLLECTION",
            help="Give a collection that was made through a router its map; --shard-urls names its shards.",
            show_default=False,
        ),
    ] = None,
    ray: RayFlags,
    as_json: options.AsJson = False,
) -> None:
    """Move a collection to another number of shards, from what is stored; the present ones serve meanwhile.

    Without --live only what shards have published moves (tercet collection push): stop writes and push every
    shard before the last call, which switches the map in one step.
    """
    if abort:
        _abort(url, as_json=as_json)
        return
    if map_of is not None:
        if shards is not None or live or prepare:
            raise typer.BadParameter("goes with --shard-urls alone", param_hint="--map-of")
        _map(url, map_of, shard_urls, as_json=as_json)
        return
    if shards is None:
        raise typer.BadParameter("is needed: how many shards there are to be", param_hint="--shards")
    from tercet.cluster.resharding.reshard import reshard as reshard_collection

    settings = options.settings_from(ray_address=ray.ray_address)
    servers = shard_servers(shard_urls, shards)
    if live and (prepare or not servers):
        raise typer.BadParameter("goes with --shard-urls, without --prepare", param_hint="--live")
    try:
        with interruptible(), ray.executor(settings) as executor, _progress() as report:
            if live:
                done = _moved_live(settings, url, executor, servers, report)
            else:
                done = reshard_collection(
                    url, shards, executor, switch=not prepare, servers=servers, progress=report
                )
    except KeyboardInterrupt:
        so_far = "interrupted" if live else "interrupted; the map is as before"
        print_failure(f"{so_far}. The same command goes on where this one was")
        raise
    if as_json:
        print_json(
            {
                "collection": done.collection,
                "version": None if done.map is None else done.map.version,
                "shards": [
                    {"snapshots": folder, "documents": documents}
                    for folder, documents in zip(done.folders, done.documents, strict=True)
                ],
                "divided_segments": done.divided,
                "moved_documents": done.moved_documents,
                "moved_bytes": done.moved_bytes,
                "held_seconds": done.held_seconds,
            }
        )
        return
    are = f"is divided into {counted(shards, 'shard')}"
    if done.map is None:
        are += "; the map is as before, and without --prepare the same command switches it"
    else:
        are += f", by version {done.map.version} of the map"
    console().print(f"Collection {done.collection!r} {are}:", soft_wrap=True)
    for folder, documents in zip(done.folders, done.documents, strict=True):
        console().print(f"{folder}  {counted(documents, 'document')}", soft_wrap=True)
    moved = counted(done.moved_documents, "document")
    console().print(f"To other shards: {moved}, {megabytes(done.moved_bytes)}", soft_wrap=True)


def _moved_live(
    settings: Settings,
    url: str,
    executor: Executor,
    servers: Sequence[Sequence[str]],
    progress: Callable[[ReshardProgress], None],
) -> ReshardReport:
    from tercet.cluster.resharding.live import reshard_live
    from tercet.cluster.resharding.servers import opened_servers
    from tercet.cluster.shards.client import ShardAccess

    with opened_servers(ShardAccess.of(settings)) as opened:
        return reshard_live(
            url,
            executor,
            servers,
            opened,
            progress=progress,
            say=lambda step: error_console().print(step, soft_wrap=True),
        )


def _abort(url: str, *, as_json: bool) -> None:
    from tercet.cluster.resharding.live import give_up
    from tercet.cluster.resharding.reshard import required_map
    from tercet.cluster.resharding.servers import opened_servers
    from tercet.cluster.shards.client import ShardAccess

    store, _ = required_map(url)
    with opened_servers(ShardAccess.of(options.settings_from())) as opened:
        claimed = give_up(store, opened)
    if as_json:
        print_json({"collection": claimed.collection, "version": claimed.version})
        return
    console().print(
        f"Collection {claimed.collection!r} stays in {counted(len(claimed.shards), 'shard')}, the map's "
        f"version {claimed.version}; they take writes.",
        soft_wrap=True,
    )


def _map(url: str, name: str, shard_urls: str | None, *, as_json: bool) -> None:
    from tercet.cluster.resharding.mapping import map_collection
    from tercet.cluster.resharding.servers import opened_servers
    from tercet.cluster.shards.client import ShardAccess

    servers = shard_servers(shard_urls)
    if not servers:
        raise typer.BadParameter("is needed: the servers of its shards, in order", param_hint="--shard-urls")
    with opened_servers(ShardAccess.of(options.settings_from())) as opened:
        made = map_collection(url, name, servers, opened)
    if as_json:
        print_json({"collection": made.collection, "version": made.version})
        return
    console().print(
        f"Collection {name!r} has a map of its {counted(len(servers), 'shard')}; have its routers follow it "
        f"(tercet serve --shards {url}).",
        soft_wrap=True,
    )


@contextmanager
def _progress() -> Iterator[Callable[[ReshardProgress], None]]:
    from tercet.cli.progress import count_progress

    with count_progress("Dividing", "segments") as report:
        yield lambda now: report(now.segments, max(1, now.total))
