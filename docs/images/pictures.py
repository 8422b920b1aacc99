"""Takes the pictures of the page that the documentation shows, with the demo's corpus and Chromium.

Run: python docs/images/pictures.py   (needs the extras dev and files, and Chromium)
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).resolve().parent
ROOT = IMAGES.parents[1]
COMMAND = [sys.executable, "-m", "tercet.cli.main"]
WAIT_MS = 60_000
BEES = "how do bees show each other the way to flowers?"
KIMCHI = "배추를 발효시킨 음식은 무엇인가요?"
JOBS = "why does a job run in a process of its own?"
TEXT = "Kimchi is cabbage that ferments with salt, chilli and garlic."
TABLE = """title,body,year,country
Rooibos,"A red bush of South Africa, brewed like tea, without caffeine.",1904,ZA
Mate,"Leaves of a holly of South America, steeped in hot water.",1592,PY
Barley tea,"Roasted barley, drunk cold in the summers of Korea and Japan.",,KR
"""
DROP = """(files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, base64] of Object.entries(files)) {
    dataTransfer.items.add(new File([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))], name));
  }
  document.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """The address of a server of this data root."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([*COMMAND, "serve", "--data", str(data), "--port", str(port)], cwd=ROOT) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            while not _is_ready(url):
                time.sleep(0.2)
            yield url
        finally:
            server.terminate()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready").is_success
    except httpx.TransportError:
        return False


class Camera:
    """Takes pictures of a server's page."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url

    def take(self, name: str, view: str, height: int = 820, **options: str) -> None:
        """A picture of a view, 1,200 pixels wide. options: of the browser's context."""
        with self._browser.new_context(
            viewport={"width": 1200, "height": height}, **{"locale": "en-GB", **options}
        ) as context:
            page = context.new_page()
            page.set_default_timeout(WAIT_MS)
            page.goto(f"{self._url}/#/{view}")
            getattr(self, f"_{name}", lambda _: None)(page)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=IMAGES / f"{name}.png")

    @staticmethod
    def _search(page: Page) -> None:
        page.get_by_text("The waggle dance").first.wait_for()

    @staticmethod
    def _why(page: Page) -> None:
        page.get_by_role("button", name="근거").first.click()
        page.get_by_text("함께 있는 단어").wait_for()

    @staticmethod
    def _load(page: Page) -> None:
        page.locator(".drop").first.wait_for()
        page.evaluate(DROP, {"drinks.csv": base64.b64encode(TABLE.encode()).decode()})
        page.get_by_text("Rooibos").first.wait_for()

    @staticmethod
    def _embed(page: Page) -> None:
        page.get_by_role("textbox").first.fill(TEXT)
        page.get_by_role("button", name="Encode").click()
        page.locator(".tokens", has_text="cabbage").wait_for()  # those of the example are there before


def address(view: str, **values: str) -> str:
    """The address of a view with values."""
    return f"{view}?{urlencode(values, quote_via=quote)}"


def main() -> None:
    """Builds both collections, serves them, and takes all pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        data = Path(folder)
        subprocess.run([*COMMAND, "demo", "--no-serve", "--data", folder], cwd=ROOT, check=True)
        decisions = [
            "collection",
            "build",
            "docs/decisions",
            "--collection",
            "decisions",
            "--split",
            "markdown",
        ]
        subprocess.run([*COMMAND, *decisions, "--data", folder], cwd=ROOT, check=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serving(data) as url:
            camera = Camera(browser, url)
            for _ in range(3):  # the first searches of a server compile and open what later ones find ready
                camera.take("search", address("search", c="demo", q=BEES))
            korean = address("search", c="demo", q=KIMCHI)
            camera.take("why", korean, locale="ko-KR", color_scheme="dark")
            camera.take("load", "load", 940)
            camera.take("sections", address("search", c="decisions", q=JOBS, g="source"), 940)
            camera.take("compare", address("compare", c="demo", q=BEES, a="w=1,0,0", b="w=0,1,0"))
            camera.take("collections", "collections")
            camera.take("embed", "embed")
        browser.close()


if __name__ == "__main__":
    main()
