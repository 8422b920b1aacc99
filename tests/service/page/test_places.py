"""Where hits come from: through aliases, and as passages of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.ingest.passages.cutter import PassageCutter
from tercet.ingest.passages.measure import TokenMeasure
from tercet.ingest.passages.outline import Outline
from tercet.ingest.passages.split import Split
from tercet.ingest.texts.markdown import headings_of

pytestmark = pytest.mark.slow

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect

Visit = Callable[..., Any]
FIELDS = {"kind": "keyword"}
FIGURES = {"Requests": "3", "Refused (4xx)": "1", "Failed (5xx)": "0", "Queries": "1"}


def put(url: str, collection: str, documents: list[dict[str, Any]], **settings: Any) -> None:
    """Makes a collection of these documents."""
    httpx.put(f"{url}/collections/{collection}", json=settings).raise_for_status()
    httpx.put(f"{url}/collections/{collection}/documents", json={"documents": documents}).raise_for_status()


def put_aliases(url: str) -> None:
    """Makes `library`, an alias of `books` and `papers`, and `today`, one of `demo`."""
    put(url, "books", [{"id": "a", "text": "hot tea", "metadata": {"kind": "x"}}], fields=FIELDS)
    put(url, "papers", [{"id": "a", "text": "green tea"}, {"id": "b", "text": "hot water"}], fields=FIELDS)
    for alias, meant in (
        ("library", {"collections": ["books", "papers"]}),
        ("today", {"collection": "demo"}),
    ):
        httpx.put(f"{url}/aliases/{alias}", json=meant).raise_for_status()


@pytest.fixture
def aliased(make_server: Any) -> Iterator[str]:
    """A server with those."""
    with make_server() as url:
        put_aliases(url)
        yield url


def found(page: Any, count: int) -> list[tuple[str, str]]:
    """Ids and places of the hits on the page, once there are as many."""
    expect(page.locator(".hit")).to_have_count(count)
    return [
        (hit.get_attribute("data-id"), " ".join(hit.locator(".place").all_inner_texts()))
        for hit in page.locator(".hit").all()
    ]


def test_aliases_are_searched_and_hits_tell_their_collections(aliased: str, visit: Visit) -> None:
    page = visit(f"{aliased}/#/search?c=demo&q=hot+tea")
    assert {place for _, place in found(page, 5)} == {""}
    names = page.get_by_label("Collection", exact=True)
    options = names.locator("option")
    shown = {option.get_attribute("value"): option.inner_text() for option in options.all()}
    assert shown == {
        "books": "books",
        "demo": "demo",
        "papers": "papers",
        "library": "library (alias of books, papers)",
        "today": "today (alias of demo)",
    }
    names.select_option("library")
    hits = found(page, 3)
    answer = httpx.post(f"{aliased}/search", json={"collection": "library", "query": "hot tea"}).json()
    assert hits == [(hit["id"], f"in {hit['collection']}") for hit in answer["hits"]]
    page.get_by_label("kind").fill("x")  # fields are those that the server tells of an alias
    page.get_by_label("kind").press("Tab")
    assert found(page, 1) == [("a", "in books")]
    shared = visit(page.url, locale="ko-KR")
    assert found(shared, 1) == [("a", "books 컬렉션")]
    assert shared.get_by_label("컬렉션", exact=True).input_value() == "library"
    expect(shared.locator("option[value=library]")).to_have_text("library (별칭: books, papers)")
    names.select_option("today")
    assert {place for _, place in found(page, 5)} == {""}
    page.get_by_label("year from").wait_for()


def test_long_names_and_places_fit_a_phone(make_server: Any, visit: Visit) -> None:
    names = [letter * 64 for letter in "abcd"]
    place = {"source": "long/" * 40, "headings": ["word" * 40], "start": 0, "end": 7}
    with make_server() as url:
        for name in names:
            put(url, name, [{"id": name, "text": "hot tea", "metadata": place}])
        httpx.put(f"{url}/aliases/all", json={"collections": names}).raise_for_status()
        page = visit(f"{url}/#/search?c=all&q=tea", viewport={"width": 360, "height": 740}, has_touch=True)
        found(page, 4)
        assert page.locator("option[value=all]").inner_text().endswith("c, …)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_what_an_alias_no_longer_means_is_said(aliased: str, visit: Visit) -> None:
    page = visit(f"{aliased}/#/search?c=gone&q=hot+tea")
    page.get_by_role("alert").get_by_text("It is not there").wait_for()
    assert page.get_by_label("Collection", exact=True).input_value() == "gone"


def test_a_key_for_an_alias_alone_searches_it(make_server: Any, tmp_path: Path, visit: Visit) -> None:
    with make_server() as url:
        put_aliases(url)
    keys = tmp_path / "keys.jsonl"
    keys.write_text('{"key": "alias", "access": "read", "collections": ["library"]}\n', "utf-8")
    with make_server(keys_file=keys) as url:
        page = visit(f"{url}/#/search?q=hot+tea")
        page.get_by_label("Key", exact=True).fill("alias")
        page.get_by_role("button", name="Use it").click()
        assert {place for _, place in found(page, 3)} == {"in books", "in papers"}
        expect(page.get_by_label("Collection", exact=True).locator("option")).to_have_count(1)


GUIDE = """# Tea

About tea and water.

## Green tea

### Japan

Steam the green leaf, then hot water, then steam the green leaf and brew the leaf in hot water.

The train moves, and the engine of the train moves the rail.
"""


def passages(source: str, how: str, outline: Outline | None) -> list[dict[str, Any]]:
    """What the command line makes of the guide, as documents of a request."""
    cutter = PassageCutter(Split(how, 16), TokenMeasure())
    metadata = {} if outline is None else {"source": source}
    cut = cutter.passages(Document(source, GUIDE, "Guide", metadata), outline)
    return [
        {"id": each.id, "title": each.title, "text": each.text, "metadata": each.metadata} for each in cut
    ]


def test_a_passage_shows_its_place_in_the_file(make_server: Any, visit: Visit) -> None:
    of_markdown = Outline(headings_of(GUIDE), markdown=True)
    web = "https://example.org/guide.html"
    cut = [
        *passages("guide.md", "markdown", of_markdown),
        *passages(web, "markdown", of_markdown),
        *passages("row", "paragraphs", None),
        *passages("guide.pdf", "tokens", Outline(pages=(0, 60))),
    ]
    with make_server() as url:
        put(url, "guide", cut)
        page = visit(f"{url}/#/search?c=guide&q=hot+water&k=50")
        found(page, len(cut))
        for each in cut:
            metadata = each["metadata"]
            anchor = f"#{metadata['anchor']}" if "anchor" in metadata else ""
            pages = {metadata["page"], metadata["last_page"]} if "page" in metadata else set()
            expected = [
                metadata["source"] + anchor,
                *([" › ".join(metadata["headings"])] if "headings" in metadata else []),
                *(
                    [f"page{'s' if len(pages) > 1 else ''} {' to '.join(map(str, sorted(pages)))}"]
                    if pages
                    else []
                ),
                f"characters {metadata['start']} to {metadata['end']}",
            ]
            assert GUIDE[metadata["start"] : metadata["end"]] == each["text"]
            hit = page.locator(f'.hit[data-id="{each["id"]}"]')
            assert hit.locator(".place > *").all_inner_texts() == expected
            assert hit.locator(".chips").count() == 0  # the line says all of it
            links = hit.locator(".place a").evaluate_all("all => all.map(each => each.href)")
            assert links == ([expected[0]] if metadata["source"] == web else [])
        texts = page.locator(".place").all_inner_texts()
        assert any("Tea › Green tea › Japan" in each for each in texts)
        assert any("pages 1 to 2" in each for each in texts)
        korean = visit(page.url, locale="ko-KR")
        korean.locator(".place", has_text="1~2쪽").first.wait_for()
        korean.locator(".place", has_text="번째 글자").first.wait_for()


def test_the_server_tells_how_it_fares(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        httpx.post(f"{url}/search", json={"collection": "demo", "query": "tea"}).raise_for_status()
        assert httpx.post(f"{url}/search", json={}).status_code == 422
        assert httpx.post(f"{url}/collections/demo/backups").status_code == 201
        page = visit(f"{url}/#/server")
        page.get_by_text("Searches: ready").wait_for()
        numbers = page.locator("main .numbers")
        figures = {
            each: numbers.locator(f"div:has(dt:text-is('{each}')) dd").inner_text() for each in FIGURES
        }
        assert figures == FIGURES
        row = page.locator("tbody tr").inner_text().split("\t")
        assert row[:3] == ["demo", "5", "1"]
        assert "second" in row[-1]
