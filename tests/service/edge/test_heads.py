"""Host and Origin: by which names a server is reached, and from which pages."""

from typing import Any

import pytest

from tercet.service.edge.cross_origin import CrossOrigin
from tercet.service.edge.heads import refusal_of_head
from tercet.service.http.hosts import AllowedHosts

QUERY = {"collection": "demo", "query": "tea"}
EVIL = "evil.example"


async def code(client: Any, host: str, origin: str | None = None, method: str = "POST") -> str | None:
    """The code of a search's error, or of another request's; None where it is answered."""
    headers = {"Host": host} if origin is None else {"Host": host, "Origin": origin}
    if method == "POST":
        response = await client.post("/search", json=QUERY, headers=headers)
    else:
        response = await client.request(method, "/collections/demo", headers=headers)
    if response.status_code < 400:
        return None
    assert response.status_code == 403
    error: str = response.json()["error"]["code"]
    return error


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "localhost.:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "[::1]",
        "10.1.2.3:80",
    ],
)
async def test_localhost_and_addresses_are_always_served(make_client: Any, host: str) -> None:
    for hosts in ("", "api.example.com"):
        async with make_client(allowed_hosts=hosts) as client:
            assert await code(client, host) is None


@pytest.mark.parametrize(
    "host",
    [EVIL, f"{EVIL}:8080", f"localhost.{EVIL}", f"127.0.0.1.{EVIL}", "localhost@evil", "", "[::1", "a:b"],
)
async def test_on_a_loopback_address_no_foreign_name_is_served(make_client: Any, host: str) -> None:
    async with make_client() as client:
        for method in ("GET", "DELETE", "POST"):
            assert await code(client, host, method=method) == "host_not_allowed"
        assert (await client.get("/health", headers={"Host": host})).status_code == 403


async def test_names_are_those_of_the_setting_or_any_on_other_addresses(make_client: Any) -> None:
    async with make_client(allowed_hosts="api.example.com, Other") as client:
        for host in ("api.example.com", "API.example.com:443", "other:8080"):
            assert await code(client, host) is None
        assert await code(client, EVIL) == "host_not_allowed"
    for settings in ({"host": "0.0.0.0"}, {"host": "::"}, {"allowed_hosts": "*"}):
        async with make_client(**settings) as client:
            assert await code(client, "tercet.cluster.local:8080") is None


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_pages_elsewhere_may_not_write(make_client: Any, method: str) -> None:
    async with make_client(allowed_hosts="api.example.com") as client:
        for origin in (
            f"http://{EVIL}",
            "null",
            "http://10.1.2.3",
            "http://localhost.evil.example",
            "file://",
        ):
            assert await code(client, "localhost:8080", origin, method) == "origin_not_allowed"
            assert await code(client, "localhost:8080", origin, "GET") is None
    async with make_client(host="0.0.0.0") as client:
        assert await code(client, "tercet:8080", f"http://{EVIL}", method) == "origin_not_allowed"


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("localhost:8080", "http://localhost:3000"),
        ("10.1.2.3:8080", "http://10.1.2.3:8080"),
        ("127.0.0.1:8080", "https://api.example.com"),
    ],
)
async def test_pages_of_this_server_may_write(make_client: Any, host: str, origin: str) -> None:
    async with make_client(allowed_hosts="api.example.com") as client:
        assert await code(client, host, origin) is None


async def test_behind_any_name_a_page_of_the_same_name_may_write(make_client: Any) -> None:
    async with make_client(host="0.0.0.0") as client:
        assert await code(client, "tercet:8080", "http://tercet:8080") is None


def test_a_head_has_one_host(server: str, connect: Any) -> None:
    client = connect(server)
    client.socket.sendall(b"GET /health HTTP/1.1\r\n\r\n")
    answer = client.answer()
    assert (answer.status, answer.code) == (400, "invalid_http")


def test_of_two_hosts_it_does_not_matter_which_is_ours() -> None:
    hosts = [(b"host", b"localhost"), (b"host", EVIL.encode())]
    for given in (hosts, hosts[::-1], [hosts[0]] * 2):
        scope = {"method": "GET", "http_version": "1.1", "query_string": b"", "headers": given}
        failure = refusal_of_head(scope, AllowedHosts(()), CrossOrigin())
        assert failure is not None
        assert (failure.status, failure.code) == (400, "invalid_http")


def test_http_1_0_which_health_checks_speak_needs_none(server: str, connect: Any) -> None:
    client = connect(server)
    client.socket.sendall(b"GET /health HTTP/1.0\r\n\r\n")
    assert client.answer().status == 200
    assert client.is_closed()
    foreign = connect(server)
    foreign.socket.sendall(b"GET /health HTTP/1.0\r\nHost: evil.example\r\n\r\n")
    assert foreign.answer().code == "host_not_allowed"


def test_a_target_in_absolute_form_names_the_host_itself(server: str, connect: Any) -> None:
    for target, status in (
        ("http://localhost/health", 200),
        ("HTTP://127.0.0.1:1/health", 200),
        ("http://localhost", 200),
        ("http://evil.example/health", 403),
        ("ftp://localhost/health", 400),
        ("localhost:80", 400),
    ):
        client = connect(server)
        client.send(f"GET {target} HTTP/1.1")  # beside the header Host: localhost
        assert client.answer().status == status, target
