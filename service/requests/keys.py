"""Keys: who asks, and what they may do. Without configured keys the service is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fastapi import Request
from pydantic import SecretStr

from tercet.index.wording import names_instead
from tercet.service.exceptions import NO_KEY, ForbiddenError, UnauthenticatedError
from tercet.service.keys.access import EVERYTHING, Access, Right
from tercet.service.keys.keys import digest_of, id_of
from tercet.service.runtime import Runtime
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.audit import AuditLog

OPEN_PATHS = {"/", "/health", "/ready", "/tei/health", "/docs"}
OPEN_FILES = ("/page/", "/docs/static/")  # of the pages, which have no data

# As the description has it.
KEY = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of the settings `api_keys` or `keys_file`, or of `read_keys` for routes that "
        "change nothing. Without configured keys none is needed.",
    }
}


class KeyRing:
    """The configured keys, by their digests."""

    def __init__(self, known: Mapping[bytes, Access], file: Mapping[bytes, Access] | None = None) -> None:
        """known: of the settings. file: of the file of keys, None where there is none; its access counts
        for a key that both have.
        """
        self.is_open = not known and file is None
        self._known = dict(known)
        self._all = self._known | dict(file or {})

    def take_up(self, file: Mapping[bytes, Access]) -> None:
        """From now on the file has these keys."""
        self._all = self._known | dict(file)

    def access(self, authorization: str | None) -> Access:
        """What the `Authorization` header allows. Raises UnauthenticatedError."""
        if self.is_open:
            return EVERYTHING
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise UnauthenticatedError(NO_KEY)
        # The time of this tells nothing of a key: a dictionary compares what has the same hash alone, and
        # nobody else knows the hash of a digest, which has a secret of this process in it.
        access = self._all.get(digest_of(key.strip()))
        if access is None:
            raise UnauthenticatedError(
                "the key is not known to this server; check the settings api_keys and keys_file"
            )
        return access


def keys_of(settings: Settings) -> dict[bytes, Access]:
    """The keys of the settings `api_keys` and `read_keys`; one that is in both may do everything."""
    return _granted(settings.read_keys, "read") | _granted(settings.api_keys, "admin")


def _granted(keys: Iterable[SecretStr], right: Right) -> dict[bytes, Access]:
    digests = [digest_of(key.get_secret_value()) for key in keys]
    return {digest: Access(right, id_of(digest)) for digest in digests}


def is_open(path: str) -> bool:
    """Whether a path needs no key."""
    return path in OPEN_PATHS or path.startswith(OPEN_FILES)


def access_of(request: Request) -> Access:
    """What whoever sent a request may do."""
    access: Access = request.state.access
    return access


async def other_collections(request: Request, name: str) -> str:
    """What is said of the collections that there are, and that whoever asks may see, instead of one that is
    not there.
    """
    runtime: Runtime = request.app.state.runtime
    names = await runtime.pools.operations.run(runtime.collections.names)
    return names_instead(name, list(filter(access_of(request).sees, names)))


async def require_write(request: Request) -> None:
    """A dependency of routes that change documents. Raises ForbiddenError where the key may not."""
    _note_change(request)
    access_of(request).require("write", "change documents")


async def require_admin(request: Request) -> None:
    """A dependency of routes that change anything else. Raises ForbiddenError where the key may not."""
    _note_change(request)
    access = access_of(request)
    access.require("admin", "change collections, aliases, jobs or backups")
    names = [request.path_params[part] for part in ("name", "alias") if part in request.path_params]
    await require_meant(request.app.state.runtime, access, names)


async def require_meant(
    runtime: Runtime, access: Access, names: Sequence[str], param: str | None = None
) -> None:
    """Raises ForbiddenError where one of the names is an alias of what the key may not use by its own name.

    By such an alias a key reads and writes documents. What it changes beyond that would outlast the alias.
    """
    if access.collections is None:
        return
    aliases = await runtime.pools.operations.run(runtime.collections.aliases.all)
    for name in names:
        if not all(map(access.sees, aliases.get(name, ()))):
            raise ForbiddenError(
                f"{name[:64]!r} is an alias of a collection that this key may not use by its own name; by "
                "the alias it may read and write documents alone",
                "collection_not_allowed",
                param,
            )


def _note_change(request: Request) -> None:
    """Raises AuditError or ForbiddenError where nothing may be changed."""
    request.state.changes = True
    runtime: Runtime = request.app.state.runtime
    runtime.require_writable()
    audit: AuditLog = request.app.state.audit
    audit.require_room()
