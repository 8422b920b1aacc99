"""How long bytes have waited in the kernel for the event loop to read them."""

from __future__ import annotations

import socket
import struct
import sys

# struct tcp_info of Linux: eight bytes, then numbers of 32 bits, of which the twelfth is tcpi_last_data_recv.
SIZE, LAST_DATA_OFFSET = 56, 52


def waited_seconds(connection: socket.socket) -> float:
    """Since the connection's last bytes came, in milliseconds' steps; 0 where the system does not tell.

    A connection that waits to be accepted counts, too.
    """
    if sys.platform != "linux":
        return 0.0
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SIZE)
    except OSError:  # it has ended, or is none of TCP
        return 0.0
    if len(info) < SIZE:
        return 0.0
    milliseconds: int = struct.unpack_from("=I", info, LAST_DATA_OFFSET)[0]
    return milliseconds / 1000
