"""How fast the page shows its first hits, and what it weighs: a real browser opens a shared address.

    python -m benchmarks.page [--openings 20]

Each opening is a fresh browser context, so that nothing is cached, of a server over the bundled corpus with
`multi-m3`. The time runs from the navigation until the first hit is drawn. Needs the
system's Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from playwright.sync_api import sync_playwright

from benchmarks.recording import dated, write
from benchmarks.serving.server import DEMO, build, serving

QUERY = "how do bees tell each other where food is?"
BAR_MS, BAR_BYTES = 700.0, 150_000
FIRST_HIT = """() => new Promise((found) => {
  const look = () => document.querySelector(".hit") ? requestAnimationFrame(() => found(performance.now()))
    : requestAnimationFrame(look);
  look();
})"""


@dataclass(slots=True)
class Openings:
    """What openings of the page took, weighed and complained of."""

    milliseconds: list[float] = field(default_factory=list)
    bytes_sent: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def main() -> None:
    """Prints a table and writes the figures; exits with 1 where a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--openings", type=int, default=20)
    parser.add_argument("--no-record", action="store_true", help="leave the committed figures as they are")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tercet-page-") as scratch, ExitStack() as running:
        data = Path(scratch)
        build(data, "demo", DEMO / "corpus.jsonl", "--checkpoint", "multi-m3", "--field", "lang:keyword")
        server = running.enter_context(serving(data, checkpoint="multi-m3"))
        playwright = running.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        found = opened(browser, server.url, arguments.openings)
        browser.close()
    figures = {
        "first_hits_ms": round(statistics.median(found.milliseconds)),
        "slowest_ms": round(max(found.milliseconds)),
        "page_bytes": max(found.bytes_sent),
        "console_errors": len(found.errors),
    }
    for name, value in figures.items():
        print(f"{name:<16} {value:>8,}")
    met = (
        figures["first_hits_ms"] <= BAR_MS
        and figures["page_bytes"] <= BAR_BYTES
        and not figures["console_errors"]
    )
    print(f"first hits within {BAR_MS:,.0f} ms, {BAR_BYTES:,} bytes, no errors: {'met' if met else 'MISSED'}")
    if not arguments.no_record:
        write("page", dated({"openings": arguments.openings, **figures}))
    raise SystemExit(not met)


def opened(browser: Any, url: str, count: int) -> Openings:
    """So many openings of a shared address. The bytes are those of the page's own files as they were sent."""
    found = Openings()
    httpx.post(f"{url}/search", json={"collection": "demo", "query": QUERY}).raise_for_status()  # warm
    for _ in range(count):
        context = browser.new_context()
        page = context.new_page()
        page.on("console", lambda message: found.errors.extend([message.text] * (message.type == "error")))
        page.on("pageerror", lambda error: found.errors.append(str(error)))
        page.goto(f"{url}/#/search?c=demo&q={quote(QUERY)}", wait_until="commit")
        found.milliseconds.append(page.evaluate(FIRST_HIT))
        page.wait_for_load_state("networkidle")
        entries = page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            ".map((each) => [each.name, each.transferSize])"
        )
        found.bytes_sent.append(
            sum(size for name, size in entries if "/page/" in name or name.split("#")[0] == f"{url}/")
        )
        context.close()
    return found


if __name__ == "__main__":
    main()
