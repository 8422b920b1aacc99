"""Keys: who may read, who may change. Without configured keys the service is open."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Literal

from fastapi import Request
from fastapi.security import HTTPBearer

from service.audit import AuditLog
from service.exceptions import ForbiddenError, UnauthenticatedError

Access = Literal["read", "write"]
OPEN_PATHS = {"/", "/health", "/ready", "/tei/health", "/docs"}
OPEN_FILES = ("/page/", "/docs/static/")  # of the pages, which have no data

KEY_ID_DIGITS = 12  # of a key's SHA-256 in hexadecimal: tells keys apart, and gives none away

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key of the setting `api_keys`, or of `read_keys` for routes that change nothing. "
    "Without configured keys none is needed.",
)


class KeyRing:
    """The configured keys as digests, so that a comparison takes the same time whatever is given."""

    def __init__(self, write_keys: Iterable[str], read_keys: Iterable[str]) -> None:
        self._digests: list[tuple[bytes, Access]] = [(_digest(key), "read") for key in read_keys]
        self._digests += [(_digest(key), "write") for key in write_keys]

    @property
    def is_open(self) -> bool:
        """Whether no key is configured, so that everyone may do everything."""
        return not self._digests

    def access(self, authorization: str | None) -> tuple[Access, str | None]:
        """What the `Authorization` header allows, and the id of its key. Raises UnauthenticatedError."""
        if self.is_open:
            return "write", None
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise UnauthenticatedError("this server needs a key: send the header Authorization: Bearer KEY")
        digest = _digest(key.strip())
        found: Access | None = None
        for known, access in self._digests:  # all of them: the time must not tell which one matched
            if hmac.compare_digest(known, digest):
                found = access
        if found is None:
            raise UnauthenticatedError("the key is not known to this server; check the setting api_keys")
        return found, digest.hex()[:KEY_ID_DIGITS]


def is_open(path: str) -> bool:
    """Whether a path needs no key."""
    return path in OPEN_PATHS or path.startswith(OPEN_FILES)


async def require_write(request: Request) -> None:
    """A dependency of routes that change something. Raises ForbiddenError for a read-only key."""
    request.state.changes = True
    audit: AuditLog = request.app.state.audit
    audit.require_room()
    if request.state.access != "write":
        raise ForbiddenError("this key may only read; use a key of the setting api_keys")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
