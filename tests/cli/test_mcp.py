"""`tercet mcp`: an assistant's own client, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tercet.cli.mcp import LARGEST_TOP_K
from tests.ports import held_port

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.slow

SECONDS = 120.0


async def check_tools(session: ClientSession) -> None:
    """Lists, searches and reads, as an assistant does."""
    await session.initialize()
    tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert set(tools) == {"list_collections", "search", "get_document"}
    assert all(tool.description for tool in tools.values())

    async def call(tool: str, **arguments: Any) -> Any:
        result = await session.call_tool(tool, arguments)
        assert not result.is_error, result
        assert result.structured_content is not None
        return result.structured_content.get("result", result.structured_content)

    (collection,) = await call("list_collections")
    assert collection == {"name": "small", "documents": 4, "fields": {"year": "integer"}}
    hits = await call("search", collection="small", query="how is tea made", top_k=2)
    assert [hit["id"] for hit in hits][:1] == ["tea"]
    assert len(hits) == 2
    assert set(hits[0]["scores"]) == {"dense", "sparse", "colbert"}
    assert len(await call("search", collection="small", query="tea", top_k=10 * LARGEST_TOP_K)) == 4
    old = await call("search", collection="small", query="tea", filter={"lt": {"year": 1900}})
    assert [hit["id"] for hit in old] == ["rail"]
    assert (await call("get_document", collection="small", id="korea"))["title"] == "김치"
    missing = await session.call_tool("get_document", {"collection": "small", "id": "none"})
    assert missing.is_error
    assert "none" in missing.content[0].text


async def test_over_standard_input_and_output(server: str, environment: dict[str, str]) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tercet.cli.main", "mcp", "--url", server],
        env={**environment, "TERCET_API_KEYS": "secret"},
    )
    async with stdio_client(started) as streams, ClientSession(*streams[:2]) as session:
        await asyncio.wait_for(check_tools(session), SECONDS)


@pytest.fixture
async def over_http(
    server: str, start: Callable[..., subprocess.Popen[str]]
) -> AsyncIterator[Callable[..., Awaitable[int]]]:
    """Starts `tercet mcp --http` with options and variables, and gives its port once it listens."""
    processes, ports = [], ExitStack()

    async def begin(*options: str, **variables: str) -> int:
        port = ports.enter_context(held_port())
        process = start("mcp", "--url", server, "--http", "--port", str(port), *options, **variables)
        processes.append(process)
        deadline = time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < deadline
            assert process.poll() is None
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return port
            except OSError:
                await asyncio.sleep(0.1)

    yield begin
    for process in processes:
        process.terminate()
        process.communicate(timeout=SECONDS)
    ports.close()


async def test_over_http(over_http: Callable[..., Awaitable[int]]) -> None:
    port = await over_http(TERCET_API_KEYS="secret")
    async with (
        streamable_http_client(f"http://127.0.0.1:{port}/mcp") as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await asyncio.wait_for(check_tools(session), SECONDS)


async def test_no_page_elsewhere_reaches_it_on_any_address(over_http: Callable[..., Awaitable[int]]) -> None:
    port = await over_http("--host", "0.0.0.0", TERCET_ALLOWED_HOSTS="tercet.lan")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:

        async def status(host: str, origin: str | None = None) -> int:
            headers = {**accept, "Host": host, **({} if origin is None else {"Origin": origin})}
            return (await client.post("/mcp", json=call, headers=headers)).status_code

        for host in (f"127.0.0.1:{port}", "localhost", "tercet.lan:8765", "192.168.0.7"):
            assert await status(host) == 200
        assert await status("tercet.lan", "http://tercet.lan") == 200
        assert await status("rebound.example:8765") == 403
        assert await status("rebound.example", "http://rebound.example") == 403
        for origin in ("http://elsewhere.example", "null", "http://192.168.0.9"):
            assert await status("127.0.0.1", origin) == 403


def test_what_cannot_be_is_one_line(tercet: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = tercet("mcp", "--url", "nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "nowhere" in done.stderr
