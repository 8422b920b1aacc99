"""How long bytes waited in the kernel."""

import socket
import sys
import time

import pytest

from tercet.service.wire.kernel import waited_seconds

TICK_SECONDS = 0.02  # of the kernel's clock, at most

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


def test_bytes_wait_from_when_they_came_not_from_when_they_are_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.connect(listener.getsockname())
        began = time.monotonic()
        client.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.3)
        connection, _ = listener.accept()  # it waited to be accepted, too
        with connection:
            assert 0.2 < waited_seconds(connection) <= time.monotonic() - began + TICK_SECONDS
            began = time.monotonic()
            client.sendall(b"\r\n")
            while b"\r\n\r\n" not in connection.recv(100, socket.MSG_PEEK):
                pass
            assert waited_seconds(connection) <= time.monotonic() - began + TICK_SECONDS


def test_what_is_no_connection_has_not_waited() -> None:
    with socket.socket(socket.AF_UNIX) as other:
        assert waited_seconds(other) == 0
