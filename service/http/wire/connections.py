"""What the connections of one server share: their limits, and who among them waits for its client."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

MOST_CONNECTIONS = 4096  # without a setting; each costs some 20 kB


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how long a client may take."""

    connections: int
    head_seconds: float  # for the whole head of a request
    write_seconds: float  # for each next part of an answer


class Connections(ServerState):
    """Uvicorn's record of a server's connections, within limits."""

    def __init__(self, limits: ConnectionLimits) -> None:
        super().__init__()
        self.limits = limits
        # Those that can do nothing until their clients send or take something, the longest waiting first.
        self._waiting: dict[H11Protocol, None] = {}

    def waits(self, connection: H11Protocol) -> None:
        """Notes that a connection waits for its client from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def waits_no_more(self, connection: H11Protocol) -> None:
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
            longest.transport.abort()
        return True


def connections_of_files() -> int:
    """How many connections fit into the open files that the system allows, beside those of the index."""
    return min(MOST_CONNECTIONS, max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
