"""The audit log: who changed what, who was turned away, and, where asked, every use of a key."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Literal

from service.exceptions import SettingsError
from service.facts import Facts
from service.http.asgi import Scope
from service.logs import json_formatter

AuditScope = Literal["off", "writes", "all"]

TURNED_AWAY = {401, 403}

log = logging.getLogger("tercet")


class AuditLog:
    """Writes an entry for each request in its scope, before the answer leaves."""

    def __init__(
        self, scope: AuditScope = "off", file: Path | None = None, failed: Callable[[], None] = lambda: None
    ) -> None:
        """file: entries are appended to it, and it may be moved away at any time; None: they go to the log.
        failed: told of each entry that could not be written.

        Raises SettingsError where the file cannot be written to.
        """
        self._scope = scope
        self._entries = logging.getLogger("tercet.audit")
        if scope != "off" and file is not None:
            self._entries = logging.Logger("tercet.audit")  # of this application alone
            self._entries.addHandler(_handler(file, failed))

    def enter(self, scope: Scope, method: str, path: str, status: int, facts: Facts) -> None:
        """Writes the entry of a request, if it is in the scope.

        path: without control characters. facts: what was written, such as the number of documents.
        """
        state = scope["state"]
        if self._scope == "off" or not (
            self._scope == "all" or state.get("changes") or status in TURNED_AWAY
        ):
            return
        client = scope.get("client")
        entry = {
            "request_id": state["request_id"],
            "key": state.get("key"),
            "client": client[0] if client else None,
            "method": method,
            "path": path,
            "status": status,
            **facts,
        }
        self._entries.info("audit", extra=entry)


class _FileHandler(WatchedFileHandler):
    """Tells of an entry that could not be written, as on a full disk; the next one is tried again."""

    failed: Callable[[], None]

    def emit(self, record: logging.LogRecord) -> None:
        """Writes an entry."""
        try:
            super().emit(record)
        except OSError:  # the file was moved away, and no new one can be made
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        log.exception("an audit entry could not be written to %s", self.baseFilename)
        self.failed()


def _handler(file: Path, failed: Callable[[], None]) -> logging.Handler:
    try:
        # Of the service's user alone: entries have ids of documents.
        os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
        handler = _FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"audit_file {file} cannot be written to: {error.strerror}") from None
    handler.failed = failed
    handler.setFormatter(json_formatter("%(asctime)s"))
    return handler
