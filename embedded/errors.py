"""What can go wrong in a program that has Tercet inside, by the names that `tercet_client` has for it.

TercetError
└── ApiError            a request was refused
    ├── NotFoundError   there is no such collection, document, alias or backup
    ├── ConflictError   it conflicts with what exists
    └── OverloadedError too much waits already, or something cannot be used now
"""

from __future__ import annotations


class TercetError(Exception):
    """Any failure that Tercet reports; its message names the value, the limit and the remedy."""


class ApiError(TercetError):
    """A request was refused.

    status: that of HTTP for it; type: the kind of error that goes with the status; code: the exact reason,
    for programs; param: the argument that is wrong, if any.
    """

    def __init__(
        self, status: int, message: str, code: str = "", param: str | None = None, type: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.type = type


class NotFoundError(ApiError):
    """404: there is no such collection, document, alias or backup."""


class ConflictError(ApiError):
    """409: it conflicts with what exists."""


class OverloadedError(ApiError):
    """429 or 503: too much waits already, or something cannot be used now."""


KINDS: dict[int, type[ApiError]] = {
    404: NotFoundError,
    409: ConflictError,
    429: OverloadedError,
    503: OverloadedError,
}
