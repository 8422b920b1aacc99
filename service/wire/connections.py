"""What the connections of one server share: their limits, and who among them waits for its client."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Any, Protocol

from uvicorn.server import ServerState

from tercet.service.edge.entrance import Entrance
from tercet.service.edge.marks import Marks
from tercet.service.edge.records import Records
from tercet.service.exceptions import RefusalReason
from tercet.service.http.asgi import Scope

MOST_CONNECTIONS = 4096  # without a setting; each costs some 20 kB


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how long a client may take."""

    connections: int
    head_seconds: float  # for the whole head of a request
    write_seconds: float  # for each next part of an answer


class Connection(Protocol):
    """One of them."""

    def abort(self) -> None:
        """Ends it at once."""


class Connections(ServerState):
    """Uvicorn's record of a server's connections, within limits, and who of them is let in."""

    connections: set[Any]  # for uvicorn they are of its own protocols

    def __init__(self, limits: ConnectionLimits, entrance: Entrance, records: Records, marks: Marks) -> None:
        super().__init__()
        self.limits = limits
        self.marks = marks
        self.entrance = entrance
        self._records = records
        # Those that can do nothing until their clients send or take something, the longest waiting first.
        self._waiting: dict[Connection, None] = {}

    def turned_away(self, scope: Scope, status: int, reason: RefusalReason | None) -> str:
        """Keeps what became of a request that was not let in; gives its id."""
        return self._records.turned_away(scope, status, reason)

    def refused(self, client: tuple[str, int] | None, status: int) -> str:
        """Keeps what became of no valid request, or of a connection too many; gives its id."""
        return self._records.turned_away(
            {"type": "http", "method": "", "path": "", "headers": [], "client": client}, status
        )

    def waits(self, connection: Connection) -> None:
        """Notes that a connection waits for its client from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def waits_no_more(self, connection: Connection) -> None:
        """Notes that the server has something to do for a connection, or that it has ended."""
        self._waiting.pop(connection, None)

    def make_room(self) -> bool:
        """Whether there is room for the newest connection; the one that waits longest ends for it."""
        if len(self.connections) > self.limits.connections:
            longest = next(iter(self._waiting), None)
            if longest is None:
                return False
            self.waits_no_more(longest)
            self.connections.discard(longest)
            longest.abort()
        return True


def connections_of_files() -> int:
    """How many connections fit into the open files that the system allows, beside those of the index."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(1, allowed // 2))
