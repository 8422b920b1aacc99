"""Who may reach a server of these settings, and whether its limits fit each other and the machine."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.cli.doctor.findings import Finding
from tercet.service.exceptions import SettingsError
from tercet.service.keys.access import RIGHTS

if TYPE_CHECKING:
    from tercet.service.settings.settings import Settings

TOPIC = "server"
MEMORY_SHARE = 0.25  # of the machine's, which documents that wait to be published may take


def findings(settings: Settings) -> Iterator[Finding]:
    """What a server would do, and what to change."""
    yield from _access(settings)
    yield from _limits(settings)


def _access(settings: Settings) -> Iterator[Finding]:
    from tercet.service.http.listening import is_loopback

    where = f"{settings.host}, port {settings.port}"
    if settings.needs_key:
        yield Finding(
            "ok",
            TOPIC,
            f"{where}: {len(settings.api_keys)} keys for everything, {len(settings.read_keys)} to read",
        )
        if settings.keys_file is not None:
            yield _keys_file(settings.keys_file)
    elif is_loopback(settings.host):
        yield Finding("ok", TOPIC, f"{where}: open, for this machine alone")
    else:
        yield Finding(
            "warning",
            TOPIC,
            f"{where}: whoever reaches it may read and change everything",
            "set TERCET_API_KEYS_FILE, or listen on 127.0.0.1",
        )
    for name in ("api_keys_file", "read_keys_file", "keys_file", "encoder_key_file", "client_key_file"):
        file: Path | None = getattr(settings, name)
        if file is not None and file.exists() and stat.S_IMODE(file.stat().st_mode) & stat.S_IROTH:
            yield Finding(
                "warning", TOPIC, f"every user of this machine may read {name} {file}", f"chmod o-r {file}"
            )


def _keys_file(path: Path) -> Finding:
    from tercet.service.keys.key_file import read_key_file

    try:
        keys = read_key_file(path)
    except SettingsError as error:
        return Finding(
            "problem", TOPIC, str(error), "correct that line; a running server keeps the keys of before"
        )
    counts = Counter(access.right for access in keys.values())
    listed = ", ".join(f"{counts[right]} {right}" for right in RIGHTS)
    return Finding("ok", TOPIC, f"keys_file {path}: {len(keys)} keys ({listed})")


def _limits(settings: Settings) -> Iterator[Finding]:
    for less, more, why in (
        ("batch_tokens", "queue_tokens", "no batch can be full"),
        ("flush_documents", "unpublished_documents", "writes are refused before they would be published"),
        ("flush_bytes", "unpublished_bytes", "writes are refused before they would be published"),
        ("max_top_k", "max_candidates", "a search for so many hits has fewer candidates"),
    ):
        low, high = getattr(settings, less), getattr(settings, more)
        if low is not None and low > high:
            yield Finding(
                "warning",
                TOPIC,
                f"{less} is {low}, but {more} is {high}: {why}",
                f"raise {more}, or lower {less}",
            )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if settings.unpublished_bytes > memory * MEMORY_SHARE:
        yield Finding(
            "warning",
            TOPIC,
            f"unpublished_bytes is {settings.unpublished_bytes / 2**20:.0f} MiB of each collection, and the "
            f"machine has {memory / 2**20:.0f} MiB, which collections that are written may fill",
            "lower TERCET_UNPUBLISHED_BYTES and TERCET_FLUSH_BYTES",
        )
    else:
        yield Finding("ok", TOPIC, "the limits fit each other and the machine")
