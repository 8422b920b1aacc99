"""What a command sends to a server, and to nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from tercet.cli.stores.remote import Remote, RemoteError, path_of
from tercet.service.settings.settings import Settings

pytestmark = pytest.mark.slow


class Recorded(ThreadingHTTPServer):
    """A server that keeps what it was asked, with the key; answers are `body`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.status, self.body = 200, b"{}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Recorded)
        server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(server.body)))
        self.end_headers()
        self.wfile.write(server.body)

    do_PUT = do_POST = do_CONNECT = do_GET  # noqa: N815 - named by http.server

    def log_message(self, format: str, *values: Any) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[tuple[Recorded, Recorded]]:
    """A server, and a proxy that nobody is to ask."""
    both = Recorded(), Recorded()
    threads = [threading.Thread(target=each.serve_forever, daemon=True) for each in both]
    for thread in threads:
        thread.start()
    yield both
    for each in both:
        each.shutdown()
        each.server_close()


@pytest.fixture
def proxied(servers: tuple[Recorded, Recorded], monkeypatch: pytest.MonkeyPatch) -> tuple[Recorded, Recorded]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, servers[1].url)
        monkeypatch.setenv(name.lower(), servers[1].url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return servers


def test_no_key_goes_to_a_proxy_of_the_environment(proxied: tuple[Recorded, Recorded]) -> None:
    server, proxy = proxied
    with Remote(server.url, Settings(api_keys=[SecretStr("secret")])) as remote:
        assert remote.ask("GET", "/collections") == {}
    assert server.asked == [("/collections", "Bearer secret")]
    assert proxy.asked == []


def test_a_client_has_a_key_of_its_own(servers: tuple[Recorded, Recorded]) -> None:
    server, _ = servers
    keys = {"api_keys": [SecretStr("own")], "read_keys": [SecretStr("reads")]}
    for settings, sent in (({"client_key": SecretStr("secret")}, "secret"), ({}, "reads")):
        with Remote(server.url, Settings(**keys, **settings), reads=True) as remote:  # type: ignore[arg-type]
            remote.ask("GET", "/")
        assert server.asked[-1] == ("/", f"Bearer {sent}")


@pytest.mark.parametrize(
    ("key", "said"),
    [(None, "needs a key: set TERCET_CLIENT_KEY"), (SecretStr("old"), "does not know the key")],
)
def test_a_missing_key_says_which_variable_has_it(
    servers: tuple[Recorded, Recorded], key: SecretStr | None, said: str
) -> None:
    server, _ = servers
    server.status, server.body = 401, b'{"error": {"message": "send the header"}}'
    with Remote(server.url, Settings(client_key=key)) as remote, pytest.raises(RemoteError, match=said):
        remote.ask("GET", "/collections")


def test_no_key_of_another_system_does_either(proxied: tuple[Recorded, Recorded]) -> None:
    from tercet.transfer.rest import RestServer

    server, proxy = proxied
    rest = RestServer("Elasticsearch", server.url, "ApiKey secret")
    rest.ask("GET", "/_cat")
    rest.close()
    assert server.asked == [("/_cat", "ApiKey secret")]
    assert proxy.asked == []


def test_no_key_of_qdrant_does_either(proxied: tuple[Recorded, Recorded]) -> None:
    from tercet.transfer.qdrant.connection import QdrantPlace

    server, proxy = proxied
    server.body = b'{"result": {"collections": []}, "status": "ok", "time": 0}'
    with pytest.warns(UserWarning, match="insecure"):
        client = QdrantPlace(server.url, api_key="secret").open()
    assert client.get_collections().collections == []
    client.close()
    assert [path for path, _ in server.asked] == ["/collections"]
    assert proxy.asked == []


def test_what_is_no_answer_is_one_error(servers: tuple[Recorded, Recorded]) -> None:
    server, _ = servers
    with Remote(server.url, Settings()) as remote:
        server.body = b"<html>"
        with pytest.raises(RemoteError, match="answered 200, which is no answer of a Tercet server"):
            remote.ask("GET", "/collections")
        with pytest.raises(RemoteError, match="no UTF-8 text"):
            remote.ask("PUT", "/x", json={"text": "a\ud800"})
        with pytest.raises(RemoteError, match="no UTF-8 text"):
            path_of("demo", "documents", "\ud800")
    for url in ("http://a:b", "ftp://x"):
        with pytest.raises(RemoteError, match="give one such as"):
            Remote(url, Settings())
