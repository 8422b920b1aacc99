"""What the kernel knows of a TCP connection."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any

# struct tcp_info of Linux: eight bytes, of which the first is the state, then numbers of 32 bits, of which
# the twelfth is tcpi_last_data_recv.
SIZE, LAST_DATA_OFFSET = 56, 52
CLOSED = 7


def address_of(given: Any) -> tuple[str, int] | None:
    """Host and port of one end of a connection; None for one that has none."""
    return (str(given[0]), int(given[1])) if isinstance(given, tuple) and len(given) >= 2 else None


def waited_seconds(connection: socket.socket) -> float:
    """How long the last bytes of a connection have waited for the event loop to read them, in milliseconds'
    steps; 0 where the system does not tell.

    A connection that waits to be accepted counts, too.
    """
    info = _info(connection)
    milliseconds: int = struct.unpack_from("=I", info, LAST_DATA_OFFSET)[0] if info else 0
    return milliseconds / 1000


def is_reset(connection: socket.socket) -> bool:
    """Whether the other side has refused what was sent to it; False where the system does not tell."""
    info = _info(connection)
    return bool(info) and info[0] == CLOSED


def _info(connection: socket.socket) -> bytes:
    """Empty where there is none: the connection has ended, or is none of TCP."""
    if sys.platform != "linux":
        return b""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SIZE)
    except OSError:
        return b""
    return info if len(info) == SIZE else b""
