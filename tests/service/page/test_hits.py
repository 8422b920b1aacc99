"""What a hit shows of its document, and what is shown before there are hits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.slow

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect

Visit = Callable[..., Any]
MARKDOWN = """# How to *brew*

Use **hot `water` 🍵 and green tea** <b>now</b>.
- a [leaf](https://example.org/leaf), a [trap](javascript:alert(1)), an ![image](https://example.org/x.png)
- black tea

3. steam
```
**tea**
```"""


def test_markdown_becomes_elements_and_nothing_else_does(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        document = {"id": "m", "text": MARKDOWN}
        httpx.put(f"{url}/collections/demo/documents", json={"documents": [document]}).raise_for_status()
        page = visit(f"{url}/#/search?c=demo&q=green+tea")
        hit = page.locator(".hit[data-id=m]")
        whole = hit.get_by_role("button", name="Whole text")
        if whole.is_visible():
            whole.click()
        text = hit.locator(".text")
        assert text.locator("h4").inner_text() == "How to *brew*"
        assert text.locator("strong").inner_text() == "hot `water` 🍵 and green tea"
        assert text.locator("strong mark").all_inner_texts() == ["green", "tea"]  # behind an astral character
        assert text.locator("ul li").all_inner_texts() == ["a leaf, a trap, an image", "black tea"]
        assert [each.get_attribute("href") for each in text.locator("a").all()] == [
            "https://example.org/leaf"
        ]
        assert text.locator("ol").get_attribute("start") == "3"
        assert text.locator("pre").inner_text().strip() == "**tea**"
        assert text.locator("b, img, script").count() == 0
        assert hit.get_by_text("Best passage").count() == 0  # all of it is the passage


def test_questions_of_the_collection_are_asked_by_a_click(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo")
    question = page.get_by_role("button", name="the train leaves the station")
    expect(page.locator(".start")).to_contain_text("green tea")
    question.click()
    expect(page.locator(".hit").first).to_have_attribute("data-id", "rail")
    assert page.get_by_label("What to search for").input_value() == "the train leaves the station"


def test_a_search_is_shown_as_code(server: str, visit: Visit) -> None:
    page = visit(
        f"{server}/#/search?c=demo&q=tea's&k=5&f=%7B%22kind%22%3A%7B%22eq%22%3A%5B%22drink%22%5D%7D%7D"
    )
    page.get_by_role("button", name="As curl, Python or JavaScript").click()
    code = page.locator("dialog pre")
    expect(code).to_contain_text(f"curl {server}/search")
    assert """"query": "tea'\\''s",""" in code.inner_text()
    page.get_by_label("Programming language").select_option("Python")
    expect(code).to_contain_text(
        """client.search("demo", "tea's", top_k=5, filter={"eq": {"kind": "drink"}})"""
    )
    page.get_by_label("Programming language").select_option("JavaScript")
    expect(code).to_contain_text('"top_k": 5')
    page.get_by_role("button", name="Close").click()
    expect(page.locator("dialog")).to_have_count(0)
