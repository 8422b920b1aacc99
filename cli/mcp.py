"""`tercet mcp`: the collections of a running server as tools of assistants, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.stores.remote import Remote, RemoteError
from tercet.service.exceptions import SettingsError
from tercet.service.http.asgi import Receive, Scope, Send, header
from tercet.service.http.hosts import AllowedHosts
from tercet.service.http.listening import is_loopback

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from tercet.service.http.asgi import Application

INSTRUCTIONS = (
    "Search the collections of a Tercet server. Look at list_collections first, search in one of them, and "
    "get a whole document where a hit is not enough. Queries may be questions or keywords, in any language "
    "that the documents are in."
)
LARGEST_TOP_K = 50  # hits that an assistant can read


def mcp(
    url: Annotated[
        str,
        typer.Option(metavar="URL", help="The Tercet server. It is sent a read-only key where one is set."),
    ] = "http://127.0.0.1:8080",
    http: Annotated[
        bool,
        typer.Option("--http", help="Serve streamable HTTP at /mcp instead of standard input and output."),
    ] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --http: the port.", min=0, max=65535)] = 8765,
) -> None:
    """Offer a running server's collections to assistants: tools search, get_document, list_collections."""
    settings = options.settings_from()
    with Remote(url, settings, reads=True) as remote:
        server = mcp_server(remote)
        if http:
            serve_http(server, host, port, settings.allowed_hosts)
        else:
            server.run()


def serve_http(server: MCPServer, host: str, port: int, names: Sequence[str]) -> None:
    """Serves at /mcp until a signal ends it.

    names: that requests may give in Host beside the address, `localhost` and all addresses; whoever passes
    may read all that the key of this command may.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    app = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        # It knows no list of "all addresses", and checks nothing where the address is not this machine's.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    if not is_loopback(host):
        typer.echo(
            f"listening on {host}: whoever reaches this address may search and read with this command's key",
            err=True,
        )
    uvicorn.run(of_known_hosts(app, AllowedHosts([host, *names])), host=host, port=port, log_level="warning")


def of_known_hosts(app: Application, hosts: AllowedHosts) -> Application:
    """The application for requests that name one of the hosts, and are not of pages of others."""
    from tercet.service.errors import Failure

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        host, origin = header(scope, b"host") or "", header(scope, b"origin")
        if not hosts.serves(host):
            problem = f"this server is not called {host[:200]!r}; name it in the setting allowed_hosts"
            await Failure(403, problem, "host_not_allowed").response()(scope, receive, send)
        elif origin is not None and not hosts.trusts(origin, host):
            problem = f"pages of {origin[:200]!r} may not ask; name their host in the setting allowed_hosts"
            await Failure(403, problem, "origin_not_allowed").response()(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


def mcp_server(remote: Remote) -> MCPServer:
    """The tools, which ask a running server. Raises SettingsError where the package mcp is missing."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise SettingsError("tercet mcp needs the package mcp: pip install 'tercet[mcp]'") from error

    server = MCPServer("tercet", instructions=INSTRUCTIONS, version=version("tercet"), log_level="WARNING")

    async def ask(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return await asyncio.to_thread(method, *arguments, **options)
        except RemoteError as error:
            raise ToolError(str(error)) from error

    @server.tool()
    async def list_collections() -> list[dict[str, Any]]:
        """The collections that can be searched, with their number of documents and the fields of filters."""
        records = await ask(remote.collections)
        return [{name: record.get(name) for name in ("name", "documents", "fields")} for record in records]

    @server.tool()
    async def search(
        collection: str,
        query: str,
        top_k: int = 10,
        filter: dict[str, Any] | None = None,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        """The documents of a collection that match a query best, each with its text and scores.

        filter: over declared fields, such as {"eq": {"language": "ko"}}, {"in": {"year": [2024, 2025]}},
        {"gte": {"year": 2020}}, {"and": [...]}, {"or": [...]}, {"not": {...}}. offset: hits to leave out,
        for the next page.
        """
        options = {
            "top_k": max(1, min(top_k, LARGEST_TOP_K)),
            **({} if filter is None else {"filter": filter}),
            **({"offset": offset} if offset > 0 else {}),
        }
        hits = (await ask(remote.search, collection, query, **options))["hits"]
        parts = ("id", "title", "text", "metadata", "score", "scores")
        return [
            {name: hit.get(name) for name in (*parts, *(("collection",) if "collection" in hit else ()))}
            for hit in hits
        ]

    @server.tool()
    async def get_document(collection: str, id: str) -> dict[str, Any]:
        """A whole document by its id."""
        document: dict[str, Any] = await ask(remote.document, collection, id)
        return document

    return server
