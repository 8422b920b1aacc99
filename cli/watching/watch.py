"""Follows a folder until it is interrupted: changes are there within a second or two."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tercet.cli.stores.remote import RemoteError, UnreachableError
from tercet.cli.watching.sync import FolderSync
from tercet.index.wording import reason_of
from tercet.ingest.errors import SourceError
from tercet.ingest.texts.extra import needed_for

QUIET_MS = 200  # without a change, before changes are told
GATHERED_MS = 1000  # at most, where they go on
LOOK_MS = 500  # between two looks at whether something is left to do
LOOK_AGAIN_SECONDS = 60.0  # at all files, where the system tells of no change: networks often do not
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 30.0
AWAY = {429, 502, 503, 504, 507}
"""Statuses of a server that may be well again soon."""


def require_watchfiles() -> None:
    """Raises SourceError where it is not installed."""
    with needed_for("--watch"):
        import_module("watchfiles")


def follow(
    sync: FolderSync, root: Path, say: Callable[[str], None], interrupted: threading.Event
) -> NoReturn:
    """Keeps the collection like the folder, without end. say: gets a line where the server is away, or the
    folder.

    Raises KeyboardInterrupt soon after it is interrupted, RemoteError where the server refuses for good, and
    SourceError where the system cannot follow.
    """
    for number, _ in enumerate(_moments(root, interrupted)):
        _until_done(sync, say, interrupted)
        if number == 0:
            say(f"{root} is followed; Ctrl-C ends it")
    raise AssertionError("unreachable")


def _moments(root: Path, interrupted: threading.Event) -> Iterator[None]:
    """When to look at the folder: now, after each change, and now and then. Raises KeyboardInterrupt."""
    from watchfiles import watch

    while True:
        _require_going(interrupted)
        looked = -math.inf
        try:
            for changes in watch(
                root,
                watch_filter=None,
                debounce=GATHERED_MS,
                step=QUIET_MS,
                rust_timeout=LOOK_MS,
                yield_on_timeout=True,
                stop_event=interrupted,
            ):
                if changes or time.monotonic() - looked >= LOOK_AGAIN_SECONDS:
                    yield
                    looked = time.monotonic()
                if not root.is_dir():
                    break  # what comes to be there again must be watched anew
        except FileNotFoundError:
            yield
            time.sleep(FIRST_WAIT_SECONDS)
        except OSError as error:
            raise SourceError(
                f"{root} cannot be followed ({reason_of(error)}); set WATCHFILES_FORCE_POLLING=true to have "
                "it looked at now and then instead"
            ) from error


def _require_going(interrupted: threading.Event) -> None:
    """Raises KeyboardInterrupt."""
    if interrupted.is_set():
        raise KeyboardInterrupt


def _until_done(sync: FolderSync, say: Callable[[str], None], interrupted: threading.Event) -> None:
    """Brings the collection up to the folder, however often the server is away meanwhile."""
    wait = FIRST_WAIT_SECONDS
    while True:
        _require_going(interrupted)
        try:
            if not sync.run().unsettled:
                return
            time.sleep(LOOK_MS / 1000)
        except FileNotFoundError as error:
            say(f"{error}: the folder is gone; waiting for it, what was put of it stays")
            return
        except RemoteError as error:
            if not isinstance(error, UnreachableError) and error.status not in AWAY:
                raise
            say(f"{error}; trying again in {wait:.0f} s")
            sync.forget()
            time.sleep(wait)
            wait = min(LONGEST_WAIT_SECONDS, 2 * wait)
