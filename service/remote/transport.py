"""How a remote server is reached: one method, so that HTTP and handles of Ray Serve do alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

Headers = Mapping[str, str]

NO_HEADERS: Headers = MappingProxyType({})
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class RemoteRequest:
    """What a remote server is sent. path: with its query, percent-encoded. repeatable: whether it may be sent
    twice, where a connection broke before the answer.
    """

    method: str
    path: str
    headers: Headers = field(default_factory=dict)
    body: bytes = b""
    repeatable: bool = True

    @property
    def operation(self) -> str:
        """What a trace calls it: without a query."""
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """What a remote server answered, whatever it says. headers: their names in lower case."""

    status: int
    headers: Headers
    body: bytes


class Transport(Protocol):
    """The way to one remote server. Use from one event loop."""

    @property
    def name(self) -> str:
        """What the server is called in errors and logs: its URL, or the name of its deployment."""
        ...

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        """The answer to one request, however long it takes. Raises CallFailedError where there is none."""
        ...
