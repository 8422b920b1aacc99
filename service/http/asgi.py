"""The shapes of the ASGI protocol, for type checking, and what is read from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

CLOSE = (b"connection", b"close")


def header(scope: Scope, name: bytes) -> str | None:
    """The first request header of this lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def has_body(scope: Scope) -> bool:
    """Whether the head of a request announces a body."""
    return header(scope, b"transfer-encoding") is not None or header(scope, b"content-length") not in (
        None,
        "0",
    )


def is_arriving(message: Message) -> bool:
    """Whether more of the body comes after this message of a request."""
    return message["type"] == "http.request" and bool(message.get("more_body", False))
