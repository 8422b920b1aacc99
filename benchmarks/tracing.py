"""What traces cost a search: servers without tracing, with a sampling of 0 and of 1, in turns in one run.

    python -m benchmarks.tracing [--blocks 40]

Each server has the embedded encoder and the bundled corpus, of which a search takes a few milliseconds, so
that what tracing adds shows. Spans go to a collector in this process, which drops them. Each block of
searches is compared with the block of the server without tracing beside it; the figures are medians over the
blocks.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from benchmarks.serving.server import DEMO, ROOT, Server, build, demo_queries, machine, serving

RESULTS = ROOT / "benchmarks" / "results" / "tracing.json"
SEARCHES = 60  # of a block
WARM_UP = 100
BAR = 1.05  # of a search without tracing


@dataclass(slots=True)
class Figures:
    """Milliseconds of a search in each block: until its answer, and of the server's processors."""

    waits: list[float] = field(default_factory=list)
    processors: list[float] = field(default_factory=list)


def main() -> None:
    """Prints a table and writes the figures; exits with 1 where a sampling of 0 costs more than the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--blocks", type=int, default=40, help="blocks of searches of each server")
    parser.add_argument("--no-record", action="store_true", help="leave the committed figures as they are")
    arguments = parser.parse_args()
    figures = measure(arguments.blocks)
    table = {name: row(each, figures["off"]) for name, each in figures.items()}
    print(f"{'tracing':<12} {'search ms':>10} {'ratio':>7} {'processor ms':>13} {'ratio':>7}")
    for name, values in table.items():
        print(
            f"{name:<12} {values['search_ms']:>10.3f} {values['search_ratio']:>7.3f} "
            f"{values['processor_ms']:>13.3f} {values['processor_ratio']:>7.3f}"
        )
    cost = table["sampling 0"]["search_ratio"]
    verdict = "met" if cost <= BAR else "MISSED"
    print(f"a sampling of 0: {cost:.3f} of a search without tracing, at most {BAR}: {verdict}")
    if not arguments.no_record:
        record = {"date": date.today().isoformat(), **machine(), "blocks": arguments.blocks, "figures": table}
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(cost > BAR)


def measure(blocks: int) -> dict[str, Figures]:
    """Figures of each server by its name."""
    with tempfile.TemporaryDirectory(prefix="tercet-tracing-") as scratch, ExitStack() as running:
        first = Path(scratch) / "off"
        first.mkdir()
        build(first, "demo", DEMO / "corpus.jsonl")
        collector = running.enter_context(collecting())
        samplings = {"off": None, "sampling 0": 0, "sampling 1": 1}
        servers: dict[str, tuple[Server, httpx.Client]] = {}
        for name, sampling in samplings.items():
            data = first if sampling is None else Path(shutil.copytree(first, Path(scratch) / name))
            running_server = (
                serving(data)
                if sampling is None
                else serving(data, trace_endpoint=collector, trace_sampling=sampling)
            )
            server = running.enter_context(running_server)
            servers[name] = server, running.enter_context(httpx.Client(base_url=server.url))
        for _, client in servers.values():
            searches(client, WARM_UP)
        figures = {name: Figures() for name in samplings}
        for _ in range(blocks):
            for name, (server, client) in servers.items():
                before = server.cpu_seconds
                figures[name].waits.append(searches(client, SEARCHES))
                figures[name].processors.append((server.cpu_seconds - before) * 1000 / SEARCHES)
        return figures


def searches(client: httpx.Client, count: int) -> float:
    """Median milliseconds of searches one after another."""
    queries = demo_queries()
    took: list[float] = []
    for place in range(count):
        body = {"collection": "demo", "query": queries[place % len(queries)]}
        began = time.perf_counter()
        client.post("/search", json=body).raise_for_status()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def row(each: Figures, off: Figures) -> dict[str, float]:
    """Medians, and of the ratios to the block beside it."""
    return {
        "search_ms": round(statistics.median(each.waits), 3),
        "search_ratio": round(ratio(each.waits, off.waits), 3),
        "processor_ms": round(statistics.median(each.processors), 3),
        "processor_ratio": round(ratio(each.processors, off.processors), 3),
    }


def ratio(values: list[float], others: list[float]) -> float:
    """The median of one block's figure to the other's."""
    return statistics.median(value / other for value, other in zip(values, others, strict=True))


@contextmanager
def collecting() -> Iterator[str]:
    """The address of a collector that drops what it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


if __name__ == "__main__":
    main()
