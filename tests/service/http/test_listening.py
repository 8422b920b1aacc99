"""Addresses to listen on, and what the log calls them."""

import socket

import pytest

from tercet.service.exceptions import AddressError
from tercet.service.http.listening import address_of, is_loopback, listening_socket

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")


def reaches(host: str, listener: socket.socket) -> bool:
    """Whether a connection to this address of the machine comes to the socket."""
    try:
        socket.create_connection((host, listener.getsockname()[1]), timeout=5).close()
    except OSError:
        return False
    return True


@needs_ipv6
@pytest.mark.parametrize("host", ["::", "0:0:0:0:0:0:0:0"])
def test_every_address_of_ipv6_takes_ipv4_too(host: str) -> None:
    with listening_socket(host, 0) as listener:
        assert reaches("::1", listener)
        assert reaches("127.0.0.1", listener)
        assert address_of(listener) == f"http://[::]:{listener.getsockname()[1]} (IPv6 and IPv4)"


@needs_ipv6
def test_one_address_of_ipv6_is_that_alone() -> None:
    with listening_socket("::1", 0) as listener:
        assert reaches("::1", listener)
        assert not reaches("127.0.0.1", listener)
        assert address_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


def test_an_address_of_ipv4_is_a_url() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        assert reaches("127.0.0.1", listener)
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_an_address_that_is_taken_fails_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            AddressError, match=rf"^cannot listen on 127\.0\.0\.1:{port} \(Address already in use\)"
        ):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("::", False), ("10.0.0.1", False)],
)
def test_loopback(host: str, only_here: bool) -> None:
    assert is_loopback(host) == only_here
