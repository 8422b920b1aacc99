"""Which names a server answers to, so that no page elsewhere reaches it through a name of its own.

DNS rebinding makes a browser send requests for a foreign name to this machine; such a request bears the name
in its Host header. Addresses and `localhost` cannot be rebound.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tercet.service.http.listening import is_loopback

if TYPE_CHECKING:  # it takes pydantic, and every command imports this module
    from tercet.service.settings.settings import Settings

ANY = "*"
AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/?#@\s]+))(?::[0-9]*)?")  # host, port


class AllowedHosts:
    """Judges the headers Host and Origin by the names that a server has."""

    def __init__(self, names: Iterable[str]) -> None:
        """names: beside `localhost` and all addresses; `*` is any."""
        self._names = frozenset(map(str.lower, names)) | {"localhost"}
        self.serves = lru_cache(maxsize=256)(self._serves)

    def _serves(self, host: str) -> bool:
        """Whether a Host header, as `localhost:8080`, names this server."""
        name = _name_of(host)
        return name is not None and (ANY in self._names or name in self._names or _address(name) is not None)

    def trusts(self, origin: str, host: str) -> bool:
        """Whether a request to a host may come from a page of this origin, as `http://localhost:3000`."""
        name = _name_of(_authority_of(origin))
        if name is None or not is_foreign(origin, host):
            return name is not None
        address = _address(name)
        return name in self._names or (address is not None and address.is_loopback)


def is_foreign(origin: str, host: str) -> bool:
    """Whether a page of this origin, as `http://localhost:3000`, is another server's than this host."""
    return _authority_of(origin) != host.lower()


def _authority_of(origin: str) -> str:
    return origin.lower().partition("://")[2]


def _name_of(authority: str) -> str | None:
    found = AUTHORITY.fullmatch(authority.lower())
    return (found[1] or found[2].removesuffix(".")) if found else None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def names_of(settings: Settings) -> Sequence[str]:
    """The names of a server. Who listens for other machines cannot know by which they reach it."""
    if settings.allowed_hosts:
        return settings.allowed_hosts
    return [settings.host] if is_loopback(settings.host) else [ANY]
