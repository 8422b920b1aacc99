"""The socket that a server listens on, and how it is called."""

from __future__ import annotations

import ipaddress
import os
import socket

from tercet.service.exceptions import AddressError

BACKLOG = 2048


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket bound to the address, before anything is loaded; `::` takes IPv4 too. Raises AddressError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = _is_every_address(host) and family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        # Errors of name resolution have numbers of their own, below 0.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise AddressError(
            f"cannot listen on {host}:{port} ({reason}); choose another address with --host and --port"
        ) from error


def address_of(listener: socket.socket) -> str:
    """The URL at which a socket answers, as `http://[::]:8080 (IPv6 and IPv4)`."""
    host, port = listener.getsockname()[:2]
    if listener.family != socket.AF_INET6:
        return f"http://{host}:{port}"
    takes_both = not listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    return f"http://[{host}]:{port}" + (" (IPv6 and IPv4)" if takes_both else "")


def url_of(host: str, port: int) -> str:
    """Where a server that listens there is asked from this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - what listens on all is asked here
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_every_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
