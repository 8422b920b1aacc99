"""Builds in shards and on Ray: straight to an object store, or adopted by a collection here."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tercet.cli import options
from tercet.cli.building.reports import print_json_report, print_report
from tercet.cli.building.stopping import interruptible
from tercet.cli.output import console, counted, print_failure, print_pairs
from tercet.cli.sources import GivenSources
from tercet.service.settings.roles import Panel
from tercet.service.settings.server_urls import servers_of_shards

if TYPE_CHECKING:
    from tercet.cluster.building.build import ShardedReport
    from tercet.cluster.building.settings import ShardedBuild
    from tercet.cluster.work.executor import Executor
    from tercet.index.catalog.settings import CollectionSettings
    from tercet.index.live.adoption import AdoptionMode
    from tercet.service.settings.settings import Settings

MOST_SHARDS = 1_000
Cpus = Annotated[
    float | None,
    typer.Option(min=0.1, help="With --ray: CPUs of each worker. [default 1]", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class RayFlags:
    """Where work is done, if not in this process."""

    PANEL: ClassVar = Panel.CLUSTER
    ray: Annotated[bool, typer.Option("--ray", help="Encode and write on Ray, by several workers.")] = False
    ray_address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --ray: a cluster, as HOST:PORT. By default a session of this machine is started. "
            "[TERCET_RAY_ADDRESS]",
            show_default=False,
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --ray: workers, each with the encoder. [default: as fit]", show_default=False
        ),
    ] = None
    worker_cpus: Cpus = None
    worker_gpus: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="With --ray: GPUs of each worker, or a part of one, also where nodes with GPUs only start "
            "as they are needed. [default: 1 if there are any now]",
            show_default=False,
        ),
    ] = None

    @contextmanager
    def executor(self, settings: Settings) -> Iterator[Executor]:
        """What does the work. Raises typer.BadParameter, RayMissingError or RayFailedError."""
        from tercet.cluster.work.executor import ThisProcess

        if not self.ray:
            flags: dict[str, object] = {"--workers": self.workers, "--worker-cpus": self.worker_cpus}
            flags |= {"--worker-gpus": self.worker_gpus, "--ray-address": self.ray_address}
            for flag, value in flags.items():
                if value is not None:
                    raise typer.BadParameter("goes with --ray", param_hint=flag)
            yield ThisProcess()
            return
        from tercet.cluster.ray.executor import ActorPool, RayExecutor

        pool = ActorPool(self.workers, self.worker_cpus, self.worker_gpus)
        with closing(RayExecutor(settings.ray_address, pool)) as executor:
            yield executor


@dataclass(frozen=True, kw_only=True)
class ShardedFlags(RayFlags):
    """Where a build is done, and where its result goes."""

    output: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Build for a router: shards, on an object store (file://, s3://, gs://, az://).",
            show_default=False,
        ),
    ] = None
    shards: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_SHARDS, help="With --output: how many. [default 1]", show_default=False),
    ] = None
    shard_urls: Annotated[
        str | None,
        typer.Option(
            metavar="URL[,URL…]",
            help="With --output: the servers of the shards, in order, for the map; replicas behind each as "
            "http://a|http://b.",
            show_default=False,
        ),
    ] = None
    ray_storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With --ray and without --output: an object store that all workers reach, for what is under "
            "way. [TERCET_RAY_STORAGE; a folder of the data root for a session of this machine]",
            show_default=False,
        ),
    ] = None

    @property
    def is_sharded(self) -> bool:
        """Whether the build is not an ordinary one."""
        return self.ray or self.output is not None

    def servers(self) -> list[tuple[str, ...]]:
        """The addresses of the shards' servers. Raises typer.BadParameter."""
        return shard_servers(self.shard_urls, self.shards or 1)

    def check(self, *, mode: str, others: Mapping[str, bool]) -> None:
        """Raises typer.BadParameter for flags that do not go together. others: flags that go without."""
        if self.output is None:
            for flag, value in (("--shards", self.shards), ("--shard-urls", self.shard_urls)):
                if value is not None:
                    raise typer.BadParameter("goes with --output", param_hint=flag)
        elif mode != "replace":
            raise typer.BadParameter("goes without --output", param_hint="--mode")
        if self.is_sharded:
            for flag, given in others.items():
                if given:
                    hint = "--output" if self.output is not None else "--ray"
                    raise typer.BadParameter(f"goes without {hint}", param_hint=flag)
        self.servers()


def shard_servers(urls: str | None, shards: int | None = None) -> list[tuple[str, ...]]:
    """The servers of so many shards, by default any, or none, by a flag. Raises typer.BadParameter."""
    try:
        servers = servers_of_shards(list(filter(None, (urls or "").split(","))))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--shard-urls") from None
    if servers and shards is not None and len(servers) != shards:
        raise typer.BadParameter(
            f"names servers of {counted(len(servers), 'shard')}, and there are {counted(shards, 'shard')}",
            param_hint="--shard-urls",
        )
    return servers


def build_in_shards(
    settings: Settings,
    flags: ShardedFlags,
    build: ShardedBuild,
    progress: options.ProgressKind,
    given: GivenSources,
    *,
    mode: AdoptionMode,
    mark: str | None,
    staged: bool,
) -> None:
    """Builds as the flags say, with progress, and prints what was done.

    Raises KeyboardInterrupt where it is interrupted; what was encoded by then is not encoded again.
    """
    from tercet.ingest.errors import BuildCancelledError

    try:
        run = _ShardedRun(settings, flags, progress)
        if flags.output is not None:
            done = run.built(build, flags.output)
        else:
            done = run.adopted(build, mode, mark or secrets.token_hex(4), staged=staged)
    except (KeyboardInterrupt, BuildCancelledError):
        print_failure("interrupted; nothing was published. The same command goes on where this one was")
        raise KeyboardInterrupt from None
    if progress == "json":
        print_json_report(done.report, given)
    elif flags.output is None:
        print_report(done.report, given, options.collections_root(settings) / build.name)
    else:
        _print_sharded(done, flags.output, given)


@dataclass(frozen=True, slots=True)
class _ShardedRun:
    """What builds as the flags say."""

    settings: Settings
    flags: ShardedFlags
    progress: options.ProgressKind

    def adopted(self, build: ShardedBuild, mode: AdoptionMode, mark: str, *, staged: bool) -> ShardedReport:
        """Builds one shard at the storage URL, which becomes the collection's documents here."""
        from tercet.cluster.building.destination import destination
        from tercet.cluster.objects.opening import open_store
        from tercet.cluster.work.folder import remove_work
        from tercet.index.collection import Collection
        from tercet.index.errors import CollectionNotFoundError

        root = options.collections_root(self.settings)
        kept: CollectionSettings | None = None
        with suppress(CollectionNotFoundError):
            collection = Collection.open(root, build.name)
            kept, build = collection.settings, replace(build, name=collection.settings.name)  # of an alias
        url = f"{_storage(self.settings)}/{build.name}"
        cuts = build.reading.split is not None
        with destination(root, build.name, mode, mark, staged=staged, cuts=cuts) as bring:
            done = self.built(build, url, kept, mark)
            store = open_store(url)
            snapshot = bring(store.below(done.map.shards[0].snapshots))
        remove_work(store)
        return replace(done, report=replace(done.report, snapshot=snapshot))

    def built(
        self, build: ShardedBuild, url: str, kept: CollectionSettings | None = None, mark: str | None = None
    ) -> ShardedReport:
        """Builds shards at a URL. kept, mark: as of `build_shards`."""
        from tercet.cli.progress import build_progress
        from tercet.cluster.building.build import build_shards
        from tercet.cluster.building.encoders import encoder_opener
        from tercet.cluster.work.present import settings_at
        from tercet.ingest.encoder_match import checkpoint_of

        settings, flags = self.settings, self.flags
        target = kept or settings_at(url)
        named = None if target is None or settings.names_encoder else checkpoint_of(target)
        with (
            interruptible() as cancelled,
            flags.executor(settings) as executor,
            build_progress(self.progress) as report,
            options.window_flags(),
        ):
            encoder = encoder_opener(settings, named)()
            there = encoder_opener(settings, named, max(1, round(flags.worker_cpus or 1)))
            return build_shards(
                build,
                encoder,
                there if flags.ray else lambda: encoder,
                url,
                executor,
                kept=kept,
                mark=mark,
                servers=flags.servers(),
                progress=report,
                cancelled=cancelled,
            )


def _storage(settings: Settings) -> str:
    """The URL where a build that is adopted here is under way. Raises typer.BadParameter."""
    if settings.ray_storage is not None:
        return settings.ray_storage.rstrip("/")
    if settings.ray_address is not None:
        raise typer.BadParameter(
            "is needed with a cluster: the URL of an object store that its workers and this machine reach",
            param_hint="--ray-storage",
        )
    return (settings.data.absolute() / "snapshots" / "ray").as_uri()


def _print_sharded(done: ShardedReport, url: str, given: GivenSources) -> None:
    report = done.report
    pairs: dict[str, Any] = {
        "collection": f"{report.collection}, version {done.map.version} of the map at {url}",
        "documents": f"{report.documents:,} in {counted(len(done.documents), 'shard')}: "
        + ", ".join(f"{documents:,}" for documents in done.documents),
        "shards": "\n".join(shard.snapshots for shard in done.map.shards),
        "time": f"{report.seconds:,.1f} s",
    }
    if done.reused:
        pairs["encoded before"] = f"{done.reused:,} of {counted(done.blocks, 'block')}"
    if report.windows is not None:
        pairs["windows"] = report.windows
    if report.truncated:
        pairs["truncated"] = report.truncated
    if report.skipped:
        pairs["skipped"] = report.skipped
    print_pairs(pairs, console())
    given.print_skips(report.skips, report.skipped)
