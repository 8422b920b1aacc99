"""The audit log: who changed what, who was turned away, and, where asked, every use of a key."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tercet.service.exceptions import AuditError, SettingsError
from tercet.service.http.asgi import Scope
from tercet.service.telemetry.logs import json_formatter
from tercet.service.telemetry.queued_writer import QueuedWriter
from tercet.service.tracing.facts import Facts

AuditScope = Literal["off", "writes", "all"]

TURNED_AWAY = {401, 403}

WRITE_SECONDS = 5.0  # for an entry, before its answer leaves without it or as a refusal
RETRY_SECONDS = 1.0  # after one that failed, the next is tried
NONE = -1  # instead of a descriptor

log = logging.getLogger("tercet")
_log_entries = logging.getLogger("tercet.audit")


class AuditLog:
    """Writes an entry for each request in its scope, before the answer leaves."""

    def __init__(
        self,
        scope: AuditScope = "off",
        file: Path | None = None,
        lost: Callable[[int], None] = lambda _: None,
        *,
        required: bool = False,
    ) -> None:
        """file: entries are appended to it, and it may be moved away at any time; None: they go to the log.
        lost: told of so many entries that could not be written. required: no answer leaves without its entry.

        Raises SettingsError where the file cannot be written to.
        """
        self._scope = scope
        self._required = required
        self._lost = lost
        self._failed = -math.inf  # when an entry could not be written last
        self._writer = None
        if scope != "off" and file is not None:
            self._writer = QueuedWriter("audit", _File(file).write, json_formatter("%(asctime)s"), self._tell)

    async def enter(self, scope: Scope, method: str, path: str, status: int, facts: Facts) -> None:
        """Writes the entry of a request, if it is in the scope.

        path: without control characters. facts: what was written, such as the number of documents.
        Raises AuditError where entries are required and this one is not written in time.
        """
        entry = self._entry(scope, method, path, status, facts)
        if entry is None:
            return
        if self._writer is None:
            _log_entries.handle(entry)
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await asyncio.wrap_future(self._writer.written(entry))
        except (OSError, TimeoutError) as error:
            self._failed = time.monotonic()
            if self._required:
                raise AuditError(
                    "the audit log cannot be written, and this server answers nothing without its entry "
                    "(setting audit_required); what was asked for may have been done: make room for the log, "
                    "and send the request again"
                ) from error

    def enter_soon(self, scope: Scope, method: str, path: str, status: int, facts: Facts) -> None:
        """Enters a request that nobody waits for."""
        entry = self._entry(scope, method, path, status, facts)
        if entry is not None:
            if self._writer is None:
                _log_entries.handle(entry)
            elif not self._writer.put(entry):
                self._tell(1)

    def require_room(self) -> None:
        """Raises AuditError where entries are required and one could not be written a moment ago."""
        if self._required and time.monotonic() - self._failed < RETRY_SECONDS:
            raise AuditError(
                "the audit log cannot be written, so this server changes nothing (setting audit_required): "
                "make room for the log"
            )

    def close(self) -> None:
        """Writes what waits."""
        if self._writer is not None:
            self._writer.close()

    def _entry(
        self, scope: Scope, method: str, path: str, status: int, facts: Facts
    ) -> logging.LogRecord | None:
        state = scope["state"]
        if self._scope == "off" or not (
            self._scope == "all" or state.get("changes") or status in TURNED_AWAY
        ):
            return None
        client, access = scope.get("client"), state.get("access")
        entry = {
            "request_id": state["request_id"],
            "key": None if access is None else access.key,
            "client": client[0] if client else None,
            "method": method,
            "path": path,
            "status": status,
            **facts,
        }
        return _log_entries.makeRecord(_log_entries.name, logging.INFO, "", 0, "audit", (), None, extra=entry)

    def _tell(self, entries: int) -> None:
        log.error("%d audit entries could not be written", entries)
        self._lost(entries)


class _File:
    """The file of entries, opened anew where it was moved away."""

    _descriptor: int

    def __init__(self, file: Path) -> None:
        self._file = file
        self._torn = False  # whether the last line in the file has no end
        try:
            self._open()
        except OSError as error:
            raise SettingsError(f"audit_file {file} cannot be written to: {error.strerror}") from None

    def write(self, lines: str) -> None:
        """Appends lines. Raises OSError, after which the next ones are tried again."""
        if not self._is_there():
            if self._descriptor != NONE:
                os.close(self._descriptor)
                self._descriptor = NONE
            self._open()
        data = lines.encode()
        if self._torn:  # a full disk took a part of a line: the next one is not joined to it
            data = b"\n" + data
        while data:
            written = os.write(self._descriptor, data)
            self._torn = data[written - 1 : written] != b"\n"
            data = data[written:]

    def _open(self) -> None:
        # Of the service's user alone: entries have ids of documents.
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._torn = self._ends_torn()

    def _ends_torn(self) -> bool:
        """Whether the last writer ended amid a line; False of what is no file, or cannot be read."""
        try:
            if not self._file.is_file():
                return False
            with self._file.open("rb") as content:
                content.seek(-1, os.SEEK_END)  # an OSError where the file is empty
                return content.read() != b"\n"
        except OSError:
            return False

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(self._file.stat(), os.fstat(self._descriptor))
        except OSError:
            return False
