"""Which servers a setting concerns; each field of `settings.py` says it in its annotation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

# `tercet serve` is a search server with collections of its own, the router before shards, or a server before
# an engine of another kind; `tercet encoder` is a worker.
Server = Literal["search", "router", "backend", "worker"]


@dataclass(frozen=True, slots=True)
class Role:
    """The servers that a setting concerns, and what it has to do with other settings.

    needs: a setting without which this one asks for something that does not happen. Numbers that only tune
    something need none: they may stand in a file for several servers.
    encodes: whether it says how texts are encoded, so that a child process which encodes is given it.
    """

    servers: frozenset[Server]
    needs: str | None = None
    encodes: bool = False


class Panel(StrEnum):
    """What a flag is about. `--help` shows the common ones; `--help-all` shows all, by these headings."""

    COMMON = "Common"
    SOURCES = "Sources"
    COLLECTION = "New collection"
    ENCODER = "Encoder"
    ACCESS = "Access"
    CLUSTER = "Cluster"
    LIMITS = "Limits"
    LOGS = "Logs and health"


_ALL: frozenset[Server] = frozenset({"search", "router", "backend", "worker"})
_SERVE: frozenset[Server] = _ALL - {"worker"}
_SEARCH: frozenset[Server] = frozenset({"search"})

OF_ALL = Role(_ALL)
OF_ENCODER = Role(_ALL, encodes=True)
OF_SERVE = Role(_SERVE)
OF_WORKERS_USE = Role(_SERVE, encodes=True)  # how servers ask encoder workers
OF_SEARCH = Role(_SEARCH)
OF_LEDGERS = Role(_SEARCH, needs="ledger_url")
OF_PUBLISHING = Role(_SEARCH, needs="publish_url")
OF_BACKUPS = Role(_SEARCH, needs="backup_hours")
OF_FOLLOWING = Role(frozenset({"search", "router"}))
OF_ROUTER = Role(frozenset({"router"}))
OF_BACKEND = Role(frozenset({"backend"}))
OF_COMMANDS = Role(frozenset())  # commands that ask a server
OF_AUDIT = Role(_ALL, needs="audit")
OF_AUDIT_FILE = Role(_ALL, needs="audit_file")
