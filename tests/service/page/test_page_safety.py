"""The page takes no text for markup, and asks for a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.service.page.test_page import Visit, hits_of

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> water"


@pytest.fixture
def hostile(make_server: Any) -> Iterator[str]:
    """A server with a document whose every part would be markup."""
    with make_server() as url:
        document = {"id": HOSTILE, "title": HOSTILE, "text": HOSTILE, "metadata": {"kind": HOSTILE}}
        httpx.put(f"{url}/collections/demo/documents", json={"documents": [document]}).raise_for_status()
        yield url


@pytest.mark.slow
def test_text_of_documents_is_never_markup(hostile: str, visit: Visit, browser: Any) -> None:
    page = visit(f"{hostile}/#/search?c=demo&q=water")
    assert HOSTILE in hits_of(page)
    page.locator("mark", has_text="water").first.wait_for()
    assert page.locator(".hit .text", has_text=HOSTILE).count() == 1
    page.get_by_role("button", name=f"Why is {HOSTILE} here?").click()
    page.goto(f"{hostile}/#/documents?c=demo")
    page.locator(".documents .text", has_text=HOSTILE).wait_for()
    page.get_by_role("button", name=f"Edit: {HOSTILE}").click()
    assert page.get_by_label("Text").input_value() == HOSTILE
    page.keyboard.press("Escape")
    page.goto(f"{hostile}/#/embed?t={quote(HOSTILE)}")
    page.locator(".chip").first.wait_for()
    assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0
    # The policy holds as well, whatever a page would do; the browser complains of it.
    unwatched = browser.new_page()
    unwatched.goto(hostile)
    refused = unwatched.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return 'done'; } catch (e) { return e.name; } }"
    )
    unwatched.close()
    assert refused == "TypeError"


@pytest.mark.slow
def test_a_key_is_asked_for_and_kept_for_the_tab(make_server: Any, visit: Visit) -> None:
    with make_server(read_keys="reader") as url:
        page = visit(f"{url}/#/search?c=demo&q=tea")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("This server needs a key").wait_for()
        dialog.get_by_label("Key").fill("wrong")
        dialog.get_by_role("button", name="Use it").click()
        dialog.get_by_text("That key is not known here.").wait_for()
        dialog.get_by_label("Key").fill("reader")
        dialog.get_by_role("button", name="Use it").click()
        assert len(hits_of(page)) == 5
        page.reload()
        assert len(hits_of(page)) == 5
        assert "reader" not in page.url
        assert page.evaluate("JSON.stringify(localStorage)").count("reader") == 0
        page.goto(f"{url}/#/documents?c=demo")
        page.get_by_role("button", name="Delete: tea").click()
        dialog.get_by_role("button", name="Delete").click()
        dialog.get_by_text("This key may not do that").wait_for()
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Forget the key").click()
        dialog.get_by_text("This server needs a key").wait_for()
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_text("The server refused the key").wait_for()
