"""The shapes of the ASGI protocol, for type checking, and what is read from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = tuple[tuple[bytes, bytes], ...]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

READING = {"GET", "HEAD", "OPTIONS"}  # methods that change nothing


def header(scope: Scope, name: bytes) -> str | None:
    """The first request header of this lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def headers(scope: Scope, name: bytes) -> list[str]:
    """All request headers of this lower-case name."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
