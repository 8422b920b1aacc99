"""What does it take a router's processor to ask shards twice, and how does that grow with their number?

Processor time of one process that asks S servers at once, waits for all, and asks them again, by aiohttp on
uvloop, as `service/remote/http.py` does. Servers answer bodies of the sizes of searches: what they
are made of, and all else that a router does, is left out. `tercet plan` takes the growth for each shard from
here.

Run: python -m benchmarks.fan_out
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time

import aiohttp
import uvloop

from benchmarks.recording import dated, write

SHARDS = (1, 2, 4, 8, 16)
SEARCHES, WARM_UP, AT_ONCE, REPEATS = 300, 20, 4, 5
BODIES = ((32_768, 16_384), (2_048, 8_192))
"""Bytes sent to each shard and answered, of both rounds: a query's representations for the candidates of both
sides with their scores; places for scores and texts.
"""


def serve() -> None:
    """A server that reads requests and answers as many bytes as the path says; its port is the first line."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):  # the client has left
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                body = bytes(int(head.split(b" ")[1][1:]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**20)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    uvloop.run(run())


async def asked(ports: list[int]) -> float:
    """Processor milliseconds of a search over servers on these ports."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False) as session:

        async def one(port: int, sent: bytes, answered: int) -> int:
            async with session.post(f"http://127.0.0.1:{port}/{answered}", data=sent) as answer:
                return len(await answer.read())

        async def search() -> None:
            for sent, answered in BODIES:
                body = bytes(sent)
                sizes = await asyncio.gather(*(one(port, body, answered) for port in ports))
                assert set(sizes) == {answered}

        async def several(count: int) -> None:
            for _ in range(count // AT_ONCE):
                await asyncio.gather(*(search() for _ in range(AT_ONCE)))

        await several(WARM_UP)
        started = time.process_time()
        await several(SEARCHES)
        return 1000 * (time.process_time() - started) / SEARCHES


def measure() -> None:
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fan_out", "--serve"], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        ports = [int(server.stdout.readline()) for server in servers if server.stdout is not None]
        found = {
            shards: min(
                uvloop.run(asked([ports[place % len(ports)] for place in range(shards)]))
                for _ in range(REPEATS)
            )
            for shards in SHARDS
        }
    finally:
        for server in servers:
            server.kill()
            server.wait()
    first, last = SHARDS[0], SHARDS[-1]
    record = {
        "load": round(os.getloadavg()[0], 1),
        "processor_ms": {str(shards): round(value, 3) for shards, value in found.items()},
        "ms_a_shard": round((found[last] - found[first]) / (last - first), 3),
    }
    print(json.dumps(record))
    write("fan_out", dated(record))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    serve() if parser.parse_args().serve else measure()


if __name__ == "__main__":
    main()
