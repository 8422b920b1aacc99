"""Every view of the page: accessible, on a phone, in two languages, and those of operators."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.page.test_page import Visit, changed, expect, hits_of


@pytest.mark.slow
def test_collections_and_their_backups(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        page = visit(f"{url}/#/collections")
        page.locator(".numbers dd").first.wait_for()
        numbers = dict(
            zip(
                page.locator(".numbers dt").all_inner_texts(),
                page.locator(".numbers dd").all_inner_texts(),
                strict=True,
            )
        )
        assert (numbers["Documents"], numbers["Segments"]) == ("5", "1")
        page.get_by_role("button", name="Back up now").click()
        page.get_by_text("is made and verified.").wait_for()
        httpx.delete(f"{url}/collections/demo/documents/tea").raise_for_status()
        page.get_by_role("button", name=re.compile("^Restore")).click()
        page.get_by_role("dialog").get_by_role("button", name="Restore").click()
        page.get_by_text("demo is as it was in").wait_for()
        assert httpx.get(f"{url}/collections/demo/documents/tea").status_code == 200
        page.get_by_role("button", name=re.compile("^Delete: 2")).click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_text("There are none.").wait_for()
        page.get_by_role("button", name="Delete: demo").click()
        page.get_by_label("Name").fill("other")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        assert httpx.get(f"{url}/collections/demo").status_code == 200
        page.get_by_label("Name").fill("demo")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_text("There are no collections yet.").wait_for()
        assert httpx.get(f"{url}/collections/demo").status_code == 404


@pytest.mark.slow
def test_jobs_show_their_progress_and_can_be_cancelled(
    tmp_path: Path, embedded_checkpoint: Path, serve: Any, visit: Visit
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "short.jsonl").write_text('{"id": "a", "text": "hot water"}\n', "utf-8")
    text = "Water turns to steam and drives the engine of the train. " * 12
    with (sources / "long.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": str(place), "text": text}) + "\n" for place in range(20_000))
    settings = Settings(data=tmp_path, checkpoint=str(embedded_checkpoint), threads=1)
    with serve(create_app(settings)) as url:
        page = visit(f"{url}/#/jobs")
        page.get_by_text("No job has run yet.").wait_for()

        def submit(source: str) -> None:
            page.get_by_role("button", name="Build from a file").click()
            page.get_by_role("dialog").get_by_label("Collection").fill("built")
            page.get_by_label("File or folder").fill(source)
            page.get_by_role("button", name="Build", exact=True).click()

        submit("missing.jsonl")
        page.get_by_role("dialog").get_by_text("missing.jsonl").wait_for()
        page.get_by_role("button", name="Cancel", exact=True).click()
        submit("short.jsonl")
        page.get_by_text("succeeded").wait_for(timeout=180_000)
        page.get_by_text("1 of 1 document").wait_for()
        bar = page.get_by_role("progressbar", name="Progress of built")
        # Graphs take that many documents that a test cannot wait for them.
        page.route("**/jobs", lambda route: changed(route, state="running", phase="indexing", fraction=0.25))
        page.reload()
        page.get_by_text("indexing vectors").wait_for()
        expect(bar).to_have_attribute("value", "0.25")
        page.unroute("**/jobs")
        page.reload()
        submit("long.jsonl")
        bar.wait_for()
        while float(bar.get_attribute("value") or 0) == 0:
            page.wait_for_timeout(100)
        page.get_by_role("button", name="Cancel the job: built").click()
        page.get_by_text("cancelled").wait_for()
        assert bar.count() == 0


@pytest.mark.slow
def test_tokens_are_painted_by_their_weights_and_the_cut_shows(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/embed?t=" + "+".join(["tea"] * 40))
    page.get_by_text("The text has more tokens than the encoder reads: 30 of 40 count").wait_for()
    assert page.locator(".chip").count() == 40
    assert page.locator(".chip.cut").count() == 10
    page.get_by_label("Text").fill("hot tea")
    page.get_by_role("button", name="Encode").click()
    expect(page.locator(".chip")).to_have_count(2)
    embedded = httpx.post(f"{server}/embed", json={"inputs": "hot tea", "outputs": ["sparse"]}).json()
    sparse = embedded["embeddings"][0]["sparse"]
    weights = dict(zip(sparse["tokens"], sparse["weights"], strict=True))
    shares = page.locator(".chip").evaluate_all(
        "each => each.map(e => parseFloat(e.style.getPropertyValue('--share')))"
    )
    most = max(weights.values())
    assert shares == pytest.approx([weights["hot"] / most, weights["tea"] / most], abs=0.001)


def wait_for_view(page: Any, view: str) -> None:
    """Until the view is drawn and what it asked for is there; the heading alone may be the former view's."""
    name = view.partition("?")[0]
    page.locator(f'nav a[aria-current="page"][href^="#/{name}"]').wait_for()
    page.locator("main h1").wait_for(state="attached")
    page.wait_for_load_state("networkidle")


VIEWS = (
    "search?c=demo&q=hot+tea",
    "load",
    "documents?c=demo&o=year",
    "collections",
    "jobs",
    "compare?c=demo&q=hot+tea",
    "embed",
    "server",
)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "ko-KR"])
def test_every_view_is_accessible(server: str, visit: Visit, scheme: str, locale: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe: the extra dev"
    ).Axe()
    page = visit(f"{server}/#/search", color_scheme=scheme, locale=locale, bypass_csp=True)
    for view in VIEWS:
        page.goto(f"{server}/#/{view}")
        wait_for_view(page, view)
        if view.startswith("search"):
            page.locator(".hit button").first.click()
        found = axe.run(page)
        assert found.violations_count == 0, f"{view}: {found.generate_report()}"
    page.goto(f"{server}/#/documents?c=demo&new=1")
    page.get_by_role("dialog").wait_for()
    assert axe.run(page).violations_count == 0


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_it_fits_a_phone(server: str, visit: Visit, view: str) -> None:
    page = visit(f"{server}/#/{view}", viewport={"width": 360, "height": 740}, has_touch=True)
    wait_for_view(page, view)
    if view.startswith("search"):
        page.locator(".hit button").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.slow
def test_language_and_colours_are_kept(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=tea")
    page.get_by_label("Language").select_option("ko")
    page.get_by_role("button", name="검색").wait_for()
    assert page.evaluate("document.documentElement.lang") == "ko"
    page.get_by_label("테마", exact=True).select_option("dark")
    page.reload()
    page.get_by_role("button", name="검색").wait_for()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    assert hits_of(page)
