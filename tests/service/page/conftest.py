"""A real browser on the page of real servers. What it finds wrong by itself fails the test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Chromium tells of every answer that is an error; tests that provoke those look at the page instead.
OF_ANSWERS = "Failed to load resource"
PATIENCE_MS = 90_000  # for whatever a test waits for; a busy machine begins a browser in seconds


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium as the system has it."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("needs a browser: apt-get install chromium")
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    with sync_api.sync_playwright() as playwright:
        # Without its own sandbox it also runs as root, as in containers.
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"], timeout=PATIENCE_MS
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address in a fresh context, in English unless its options say otherwise.

    Fails in the end where a page wrote an error to its console, threw one, asked another host for anything,
    or opened a dialog of the browser.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def visit(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"locale": "en-GB", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        host = re.match(r"\w+://[^/]+", url)[0]

        def console(message: Any) -> None:
            if message.type in ("error", "warning") and OF_ANSWERS not in message.text:
                wrong.append(f"console: {message.text}")

        def dialog(shown: Any) -> None:
            wrong.append(f"dialog: {shown.message}")
            shown.dismiss()

        page.on("console", console)
        page.on("pageerror", lambda error: wrong.append(f"thrown: {error}"))
        page.on("dialog", dialog)
        page.on("request", lambda request: request.url.startswith(host) or wrong.append(request.url))
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []
