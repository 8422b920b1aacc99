"""Loading by the page that is refused, cancelled or broken off."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from tests.service.page.test_loading import MARKDOWN, Visit, expect, give, load, stored

pytestmark = pytest.mark.slow


def test_what_the_server_refuses_is_listed_and_the_rest_is_loaded(server: str, visit: Visit) -> None:
    httpx.put(f"{server}/collections/typed", json={"fields": {"year": "integer"}}).raise_for_status()
    rows = [f'{{"id": "d{place}", "text": "tea", "year": {place}}}' for place in range(100)]
    rows[17] = '{"id": "d17", "text": "tea", "year": "many"}'
    page = visit(f"{server}/#/load?c=typed")
    give(page, {"typed.jsonl": "\n".join(rows).encode()})
    page.get_by_text("field: integer").wait_for(state="attached")
    load(page)
    page.get_by_text("99 documents written · 1 record refused").wait_for()
    page.locator("section li", has_text="typed.jsonl line 18:").wait_for()
    assert len(stored(server, "typed")) == 99


def test_a_busy_server_is_asked_again(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    asked: list[str] = []

    def busy(route: Any) -> None:
        if "dry_run" in route.request.url:
            route.continue_()
            return
        asked.append(route.request.url)
        if len(asked) == 1:
            error = {"error": {"type": "overloaded", "message": "busy", "param": None, "code": "overloaded"}}
            route.fulfill(status=429, headers={"Retry-After": "4"}, json=error)
        elif len(asked) == 2:
            route.abort()
        elif len(asked) == 3:  # whose connection ends in between
            route.fulfill(body='{"documents": 1, "skipped": 0, "position": 1, "fraction": 0.5}\n')
        else:
            route.continue_()

    page.route("**/collections/again/import?*", busy)
    give(page, {"again.jsonl": b'{"id": "a", "text": "tea"}'})
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("The server is busy: once more in 4 s").wait_for()
    for tries in (2, 3):
        page.get_by_text("The server does not answer").wait_for()
        assert len(asked) == tries
        page.get_by_role("button", name="Try again").click()
    page.get_by_text("Done: 1 document is in again.").wait_for()
    assert len(asked) == 4
    assert "on_error=skip" in asked[0]


def test_an_import_that_ends_early_says_why(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    error = {"type": "storage_full", "message": "the disk is full", "param": None, "code": "storage_full"}
    lines = [{"documents": 64, "skipped": 0, "position": 1, "fraction": 0.5}, {"error": error}]

    def ended(route: Any) -> None:
        if "dry_run" in route.request.url:
            route.continue_()
        else:
            route.fulfill(body="".join(json.dumps(line) + "\n" for line in lines))

    page.route("**/collections/early/import?*", ended)
    give(page, {"early.jsonl": b'{"id": "a", "text": "tea"}'})
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_role("alert").get_by_text("the disk is full").wait_for()
    page.get_by_text(re.compile(r"^64 (of about [\d,]+ )?documents? written")).wait_for()
    page.get_by_role("button", name="Try again").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled:").wait_for()


def test_a_loading_is_cancelled(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    rows = "\n".join(json.dumps({"id": f"d{place}", "text": "tea " * 20}) for place in range(20_000))
    give(page, {"long.jsonl": rows.encode()})
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text(re.compile(r"^[1-9]\d* (of about [\d,]+ )?documents? written")).wait_for()
    bar = page.get_by_role("progressbar", name="Progress into long")
    assert 0 < float(bar.get_attribute("value")) <= float(bar.get_attribute("max"))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled:").wait_for()
    count = httpx.post(f"{server}/collections/long/documents/count", json={}).json()["count"]
    assert 0 < count < 20_000


def test_what_cannot_be_loaded_says_why(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    for files, problem in (
        ({"a.xlsx": b"x"}, "a.xlsx: .xlsx is not read; save it as CSV"),
        ({"a.png": b"x", "b.png": b"x"}, "Nothing here can be loaded: a.png, b.png"),
        ({"a.csv": b"x", "b.md": b"x"}, "These are of several kinds"),
        ({"a.csv": b"x,x\n1,2"}, "a.csv: the column 'x' is there twice"),
        ({"a.json": b'[{"a": 1}, {'}, "the file ends too early"),
        ({"a.csv.gz": b"id,text\n1,tea"}, "a.csv.gz"),
    ):
        give(page, files)
        page.get_by_text(problem).wait_for()
        expect(page.get_by_role("alert").locator("strong")).to_have_text("Check your input")
    give(page, {"a.csv": b"id,text\n1,tea"})
    page.get_by_label("Encoding").select_option("utf-16")
    page.get_by_role("alert").get_by_text("Check your input").wait_for()


def test_a_text_that_cannot_be_read_says_why(server: str, visit: Visit) -> None:
    pytest.importorskip("pypdfium2", reason="needs the extra files")
    page = visit(f"{server}/#/load")
    give(page, {"damaged.pdf": b"%PDF-1.4 and nothing more"})
    expect(page.locator(".cards .notice")).to_contain_text("damaged.pdf: no readable PDF")
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_role("alert").get_by_text("damaged.pdf: no readable PDF").wait_for()
    page.get_by_text("It ended early: 0 documents are written.").wait_for()


def test_texts_that_a_server_cannot_cut_can_be_loaded_whole(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    error = {"type": "invalid_value", "message": "needs files", "param": None, "code": "bad_source"}

    def uncut(route: Any) -> None:
        if "split" in route.request.url:
            route.fulfill(status=422, json={"error": error})
        else:
            route.continue_()

    page.route("**/collections/uncut/import?*", uncut)
    give(page, {"uncut.md": MARKDOWN.encode()})
    page.get_by_role("alert").get_by_text("needs files").wait_for()
    page.get_by_label("Cut into passages").select_option("no, whole")
    expect(page.locator(".cards .card")).to_have_count(1)
    load(page)
    assert list(stored(server, "uncut")) == ["uncut.md"]
