"""A session with Ray: on a cluster that is there, or of this machine alone as long as the work takes.

Nothing is reported to the makers of Ray, and the dashboard stays off. A session of this machine asks for a
token, which is new each time and in no file; a cluster's is where its users keep it.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tercet.cluster.errors import first_line
from tercet.cluster.ray.errors import RayFailedError, RayMissingError

REACHED_SECONDS = 10.0
OBJECT_STORE_BYTES = 200 * 10**6  # only records travel
TOKEN_FILE = Path("~/.ray/auth_token")


@contextmanager
def session(
    address: str | None, cpus: int | None = None, gpus: int | None = None, folder: Path | None = None
) -> Iterator[Mapping[str, float]]:
    """Connects to a cluster, or with None starts one here. cpus, gpus: of the latter, by default all; folder:
    for its files, by default Ray's own.

    Yields the resources that there are, by Ray's names. Raises RayMissingError or RayFailedError.
    """
    require_ray()
    if address is not None:
        _require_listener(address)
    prepare(address)
    import ray

    handler = signal.getsignal(signal.SIGTERM)
    own: dict[str, Any] = {}
    if address is None:
        own = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_temp_dir": None if folder is None else str(folder / "ray"),
        }
    try:
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # of a node that does not start in time it is a plain one
        raise RayFailedError(
            f"Ray at {address or 'this machine'} cannot be used ({first_line(error)}); see to its address, "
            "its token (RAY_AUTH_TOKEN) and its version"
        ) from error
    _take_back_sigterm(handler)
    try:
        resources: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # untyped
        yield resources
    finally:
        ray.shutdown()


def _take_back_sigterm(handler: Any) -> None:
    """Has a handler of before: Ray's ends the process three seconds after SIGTERM, whatever is to be done."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _require_listener(address: str) -> None:
    """Raises RayFailedError at once where nobody listens: Ray itself would try for minutes."""
    if not address:  # Ray would start one of this machine
        raise RayFailedError("the address of Ray is empty: give HOST:PORT, or leave it out")
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():  # auto, or a client's ray://
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHED_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise RayFailedError(
            f"Ray at {address} cannot be reached ({error}); see to its address, and that it runs"
        ) from error


def prepare(address: str | None) -> None:
    """Sets the environment in which Ray is imported: it reads some of that only then."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is not None and _has_token():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    elif address is None:
        token = os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)


def require_ray() -> None:
    """Raises RayMissingError."""
    if find_spec("ray") is None:
        raise RayMissingError("this needs the package ray, which is not installed: pip install 'tercet[ray]'")


def _has_token() -> bool:
    named = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    return any(os.environ.get(name) for name in named) or TOKEN_FILE.expanduser().exists()
