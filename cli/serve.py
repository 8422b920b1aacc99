"""`tercet serve` and `tercet encoder`: their flags are the settings themselves."""

from __future__ import annotations

import gc
import inspect
import signal
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from tercet.cluster.errors import ClusterError
from tercet.index.errors import SearchIndexError
from tercet.index.wording import failure_text
from tercet.service.keys.keys import KEY_SETTINGS
from tercet.service.settings.roles import Panel

if TYPE_CHECKING:
    from tercet.index.ledger.remote import RemoteLedgers
    from tercet.service.copies.following import Following
    from tercet.service.copies.lease import Lease
    from tercet.service.copies.moving import Moving
    from tercet.service.copies.publishing import Publishing
    from tercet.service.settings.roles import Server
    from tercet.service.settings.settings import Settings

SERVE: frozenset[Server] = frozenset({"search", "router", "backend"})
WORKER: frozenset[Server] = frozenset({"worker"})


def serve_command(*, with_flags: bool) -> Callable[..., None]:
    """The command `serve`, with a flag for each setting where asked for."""

    def serve(**flags: Any) -> None:
        """Serve search over HTTP: encoder, index and API in one process.

        \b
        tercet serve --port 9000 --data /srv/tercet
        tercet serve --host 0.0.0.0 --api-keys-file keys.txt
        """
        with _kept():
            from tercet.cli.options import settings_from
            from tercet.service.serving import run_server

            settings = settings_from(**flags)
            settings.require_needed()
            lease = _lease(settings)
            if settings.shards:
                from tercet.cluster.router.app import create_router_app  # which has an HTTP client of its own

                app = create_router_app(settings)
            elif settings.backend is not None:
                from tercet.cluster.backends.app import create_backend_app  # which has the engine's client

                app = create_backend_app(settings)
            else:
                app = _search_app(settings.as_follower if settings.stands_by else settings, lease)
        run_server(app, settings)
        if app.state.runtime.takes_over:
            _take_over(settings)
            with _kept():
                app = _search_app(settings.as_writer, lease)
            run_server(app, settings.as_writer)

    return _with_settings(serve, SERVE, with_flags=with_flags)


def _search_app(settings: Settings, lease: Lease | None) -> Any:
    """The application of a server with collections of its own, or that follows others."""
    from tercet.service.app import create_app

    return create_app(
        settings,
        following=_following(settings),
        moving=_moving(settings),
        publishing=_publishing(settings),
        ledgers=_ledgers(settings),
        lease=lease,
    )


def _take_over(settings: Settings) -> None:
    """Has this data root write all collections that have a ledger. What fails is told; a repeat goes on."""
    from tercet.cluster.ledgers.promoting import ledgers_at, promote
    from tercet.cluster.objects.opening import open_store

    assert settings.ledger_url is not None  # noqa: S101 - else it does not stand by
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the server that handled it has ended
    store = open_store(settings.ledger_url)
    for name in ledgers_at(store):
        try:
            done = promote(name, store, settings.data)
        except (ClusterError, SearchIndexError, OSError) as error:
            typer.echo(f"collection {name!r} is not written here: {failure_text(error)}", err=True)
            continue
        typer.echo(f"collection {name!r} is written here, from position {done.position} on", err=True)


def _lease(settings: Settings) -> Lease | None:
    """What says which server is to write, where a setting asks for it. Raises SettingsError."""
    if settings.lease_seconds is None or settings.ledger_url is None:
        return None
    from tercet.cluster.ledgers.lease import StoreLease
    from tercet.cluster.objects.opening import open_store

    with _store_of("ledger_url"):
        store = open_store(settings.ledger_url)
    return StoreLease(store, settings.data, settings.lease_seconds, standby=settings.stands_by)


def _following(settings: Settings) -> Following | None:
    """What follows published snapshots, where a setting asks for it. Raises SettingsError."""
    if settings.follow is None:
        return None
    from tercet.cluster.snapshots.following import Follower

    with _store_of("follow"):
        return Follower(settings.follow, settings.data)


def _moving(settings: Settings) -> Moving | None:
    """What copies collections as a re-sharding asks, where a setting allows it. Raises SettingsError."""
    if settings.snapshot_store is None:
        return None
    from tercet.cluster.snapshots.moving import SnapshotMoving

    with _store_of("snapshot_store"):
        return SnapshotMoving(settings.snapshot_store, settings.data)


def _publishing(settings: Settings) -> Publishing | None:
    """What publishes the server's collections, where a setting asks for it. Raises SettingsError."""
    if settings.publish_url is None:
        return None
    from tercet.cluster.ledgers.chain import Trimming
    from tercet.cluster.snapshots.publishing import Publisher

    with _store_of("publish_url"):
        return Publisher(settings.publish_url, settings.data, settings.publish_keep, Trimming())


def _ledgers(settings: Settings) -> RemoteLedgers | None:
    """What has writes before they are acknowledged, where a setting asks for it. Raises SettingsError."""
    if settings.ledger_url is None:
        return None
    from tercet.cluster.ledgers.store_ledger import ledgers_below

    with _store_of("ledger_url"):
        return ledgers_below(settings.ledger_url, settings.data)


@contextmanager
def _store_of(setting: str) -> Iterator[None]:
    """Within it, a URL that names no store is told as what the setting says. Raises SettingsError."""
    from tercet.cluster.objects.errors import StoreAddressError
    from tercet.service.exceptions import SettingsError

    try:
        yield
    except StoreAddressError as error:
        raise SettingsError(f"setting {setting} (TERCET_{setting.upper()}): {error}") from error


def encoder_command(*, with_flags: bool) -> Callable[..., None]:
    """The command `encoder`, with a flag for each setting that concerns encoding where asked for."""

    def encoder(**flags: Any) -> None:
        """Serve an encoder alone, for search servers elsewhere.

        \b
        tercet encoder --port 8081
        tercet serve --encoder-url http://127.0.0.1:8081
        """
        with _kept():
            from tercet.service.app import create_worker_app
            from tercet.service.serving import run_server
            from tercet.service.settings.reading import load_settings

            settings = load_settings(flags, WORKER)
            app = create_worker_app(settings)
        run_server(app, settings)

    return _with_settings(encoder, WORKER, with_flags=with_flags)


@contextmanager
def _kept() -> Iterator[None]:
    """What is made meanwhile, modules and routes, stays: it is never looked at for garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _with_settings(
    command: Callable[..., None], servers: frozenset[Server], *, with_flags: bool
) -> Callable[..., None]:
    """The command with a signature from which Typer makes one flag per setting."""
    parameters = _parameters(servers) if with_flags else []
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # which `inspect.signature` reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameters(servers: frozenset[Server]) -> list[inspect.Parameter]:
    from tercet.service.settings.settings import (  # pydantic takes a third of a second to load
        PREFIX,
        ROLES,
        Settings,
    )

    parameters = []
    for name, field in Settings.model_fields.items():
        if name in KEY_SETTINGS or not ROLES[name].servers & servers:
            continue
        default = "" if field.default in (None, ()) else f", default {field.default}"
        option = typer.Option(
            *_flags(name),
            help=f"{field.description} [{PREFIX}{name.upper()}{default}]",
            show_default=False,
            rich_help_panel=next(each for each in field.metadata if isinstance(each, Panel)),
        )
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[_flag_type(field.annotation) | None, option],
            )
        )
    return parameters


def _flags(name: str) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return [flag, "--encoder-url"] if name == "encoder_urls" else [flag]


def _flag_type(annotation: Any) -> Any:
    """The type that Typer should read: numbers and paths as such, all else as text."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(member for member in get_args(annotation) if member is not type(None))
    if annotation in (int, float, Path) or get_origin(annotation) is Literal:
        return annotation
    return str
