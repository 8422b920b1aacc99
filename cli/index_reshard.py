"""`tercet index reshard`: a collection on an object store in another number of shards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from cli import options
from cli.building.elsewhere import MOST_SHARDS, RayFlags, shard_servers
from cli.building.stopping import interruptible
from cli.flag_groups import with_flag_groups
from cli.index_snapshots import StoreUrl
from cli.output import console, counted, print_failure, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.resharding.reshard import ReshardProgress


@with_flag_groups
def reshard(
    url: StoreUrl,
    *,
    shards: Annotated[int, typer.Option(min=1, max=MOST_SHARDS, help="How many shards there are to be.")],
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
            help="The servers of the new shards, in order, for the map; replicas behind each as http://a|http://b.",
            show_default=False,
        ),
    ] = None,
    ray: RayFlags,
    as_json: options.AsJson = False,
) -> None:
    """Move a collection to another number of shards, from what is stored; the present ones serve meanwhile.

    Only what shards have published moves (tercet index push). Stop writes and push every shard before the
    last call, which switches the map in one step.
    """
    from cluster.resharding.reshard import reshard as reshard_collection

    settings = options.settings_from(ray_address=ray.ray_address)
    servers = shard_servers(shard_urls, shards)
    try:
        with interruptible(), ray.engine(settings) as engine, _progress() as report:
            done = reshard_collection(
                url, shards, engine, switch=not prepare, servers=servers, progress=report
            )
    except KeyboardInterrupt:
        print_failure("interrupted; the map is as before. The same command goes on where this one was")
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
            }
        )
        return
    switched = "the map is as before" if done.map is None else f"the map's version {done.map.version}"
    console().print(
        f"Collection {done.collection!r} is in {counted(shards, 'shard')}, {switched}:", soft_wrap=True
    )
    for folder, documents in zip(done.folders, done.documents, strict=True):
        console().print(f"{folder}  {counted(documents, 'document')}", soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Callable[[ReshardProgress], None]]:
    from cli.progress import count_progress

    with count_progress("Dividing", "segments") as report:
        yield lambda now: report(now.segments, max(1, now.total))
