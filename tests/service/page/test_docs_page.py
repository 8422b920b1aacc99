"""The page of the description as a browser shows it, on servers with keys and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect


@pytest.mark.slow
@pytest.mark.parametrize("keys", [{}, {"api_keys": "secret"}])
def test_an_operation_is_tried_out(make_server: Any, visit: Callable[..., Any], keys: Any) -> None:
    with make_server(**keys) as url:
        page = visit(f"{url}/docs")
        operation = page.locator("#operations-collections-list_collections")
        if keys:
            key = page.get_by_label("This server needs a key")
            key.fill("wrong")
            page.get_by_role("button", name="Show the description").click()
            page.get_by_role("alert").get_by_text("is not known").wait_for()
            assert operation.count() == 0
            key.fill("secret")
            page.get_by_role("button", name="Show the description").click()
        operation.wait_for()
        operation.locator(".opblock-summary-control").click()
        page.get_by_role("button", name="Try it out").click()
        page.get_by_role("button", name="Execute").click()
        answer = operation.locator(".live-responses-table .response")
        expect(answer.locator(".response-col_status")).to_contain_text("200")
        expect(answer).to_contain_text('"demo"')
