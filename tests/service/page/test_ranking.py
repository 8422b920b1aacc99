"""What the page says of a search beside its weights, and of the fields of collections."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.slow

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect

Visit = Callable[..., Any]


def hits_of(page: Any, request: dict[str, Any], url: str) -> list[str]:
    """The ids on the page, once they are those of this request, which the server answers alike."""
    hits = httpx.post(f"{url}/search", json={"collection": "demo", **request}).json()["hits"]
    ids = [hit["id"] for hit in hits]
    page.wait_for_function(
        "ids => JSON.stringify([...document.querySelectorAll('.hit')].map(e => e.dataset.id)) === ids",
        arg=json.dumps(ids, separators=(",", ":"), ensure_ascii=False),
    )
    return ids


def test_boosts_are_part_of_the_score(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=hot+tea")
    before = hits_of(page, {"query": "hot tea"}, server)
    page.get_by_role("button", name="Boost a value").click()
    row = page.get_by_role("group", name="Boost a value")
    row.get_by_label("Field").select_option("kind")
    row.get_by_label("Value").fill("travel")
    row.get_by_label("Points").fill("5")
    page.keyboard.press("Tab")
    boosts: list[dict[str, Any]] = [{"filter": {"eq": {"kind": "travel"}}, "add": 5}]
    after = hits_of(page, {"query": "hot tea", "boosts": boosts}, server)
    assert after[0] == "rail" != before[0]
    expect(page.locator(".hit").first.locator(".parts")).to_contain_text("boost5.000")
    page.get_by_role("button", name="Boost by date or nearness").click()
    near = page.get_by_role("group", name="Boost by date or nearness")
    near.get_by_label("Decay").select_option("gauss")
    near.get_by_label("Origin").fill("1804")
    near.get_by_label("Half of it at").fill("10")
    near.get_by_label("Points").fill("20")
    page.keyboard.press("Tab")
    boosts.append({"field": "year", "decay": "gauss", "origin": 1804, "scale": 10, "add": 20})
    assert hits_of(page, {"query": "hot tea", "boosts": boosts}, server)[0] == "steam/engine"
    shared = visit(page.url)  # the address holds them
    assert hits_of(shared, {"query": "hot tea", "boosts": boosts}, server)[0] == "steam/engine"
    score = httpx.post(
        f"{server}/search", json={"collection": "demo", "query": "hot tea", "boosts": boosts}
    ).json()["hits"][0]["score"]
    assert float(shared.locator(".score").first.inner_text()) == pytest.approx(score, abs=0.0006)
    shared.get_by_role("group", name="Boost by date or nearness").get_by_role("button", name="Remove").click()
    hits_of(shared, {"query": "hot tea", "boosts": boosts[:1]}, server)


def test_fusion_by_ranks_and_groups(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=hot+tea")
    page.get_by_label("Scores are put together").select_option("rrf")
    hits_of(page, {"query": "hot tea", "fusion": "rrf"}, server)
    expect(page.locator(".hit .bar").first).to_be_hidden()
    page.get_by_role("slider", name="dense").fill("0")  # ranks are the server's: it is asked again
    weights = {"dense": 0, "sparse": 1, "colbert": 1}
    hits_of(page, {"query": "hot tea", "fusion": "rrf", "weights": weights}, server)
    expect(page.get_by_text("These hits are only re-ordered.")).to_be_hidden()
    page.get_by_label("One hit for each").select_option("kind")
    grouped = {"query": "hot tea", "fusion": "rrf", "weights": weights, "group_by": "kind"}
    hits_of(page, grouped, server)
    assert "fu=rrf" in page.url
    assert "g=kind" in page.url


def test_more_like_this_and_less_like_that(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=hot+tea")
    hits_of(page, {"query": "hot tea"}, server)
    assert page.get_by_role("button", name="Less like this: rail").count() == 0
    page.get_by_role("button", name="More like this: tea").click()
    hits_of(page, {"query": {"like": ["tea"]}}, server)
    assert page.get_by_label("What to search for").input_value() == ""
    page.get_by_role("button", name="Less like this: rail").click()
    found = hits_of(page, {"query": {"like": ["tea"], "unlike": ["rail"]}}, server)
    assert not {"tea", "rail"} & set(found)
    shared = visit(page.url)
    hits_of(shared, {"query": {"like": ["tea"], "unlike": ["rail"]}}, server)
    shared.get_by_role("button", name="Remove: rail").click()
    hits_of(shared, {"query": {"like": ["tea"]}}, server)
    shared.get_by_label("What to search for").fill("steam")
    hits_of(shared, {"query": "steam"}, server)
    expect(shared.locator(".examples")).to_have_count(0)


def test_the_place_of_a_hit_is_a_link_where_it_is_one_of_the_web(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        documents = [
            {"id": id, "text": "tea", "metadata": {"source": source, "anchor": "hot"}}
            for id, source in (
                ("w", "https://example.org/tea"),
                ("f", "tea.md"),
                ("j", "javascript:alert(1)"),
            )
        ]
        httpx.put(f"{url}/collections/demo/documents", json={"documents": documents}).raise_for_status()
        page = visit(f"{url}/#/search?c=demo&q=tea")
        link = page.locator(".hit[data-id=w] .place a")
        link.wait_for()
        assert link.get_attribute("href") == "https://example.org/tea#hot"
        assert page.locator(".hit[data-id=f] .place").inner_text() == "tea.md#hot"
        assert page.locator(".place a").count() == 1


def test_fields_with_their_counts_and_values(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        page = visit(f"{url}/#/collections")
        table = page.get_by_role("region", name="Fields: demo")
        table.wait_for()
        rows = {row.locator("th").inner_text(): row for row in table.locator("tbody tr").all()}
        cells = {name: row.locator("td").all_inner_texts() for name, row in rows.items()}
        assert cells["year"] == ["integer", "3", "–"]
        assert cells["kind"][:2] == ["keyword", "3"]
        assert rows["kind"].locator("li").all_inner_texts() == ["drink 1", "plant 1", "travel 1"]
        page.get_by_role("button", name="Declare a field: demo").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Field").fill("note")
        dialog.get_by_role("button", name="Declare a field").click()
        dialog.get_by_text("note").last.wait_for()  # holds an object, as the server says
        dialog.get_by_label("Field").fill("place")
        dialog.get_by_role("button", name="Declare a field").click()
        page.get_by_text("place is declared.").wait_for()
        table.get_by_role("row", name="place").wait_for()
        assert httpx.get(f"{url}/collections/demo").json()["fields"]["place"] == "keyword"
        table.get_by_role("link", name="travel").click()
        cards = page.locator(".documents tbody tr")
        expect(cards).to_have_count(1)
        expect(cards).to_contain_text("the train leaves the station")
        page.get_by_text("1 document").wait_for()


def test_documents_in_the_order_of_a_field(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/documents?c=demo&o=year&d=1")
    titles = page.locator(".documents tbody th")
    expect(titles).to_have_count(5)
    assert [each.split("\n")[0] for each in titles.all_inner_texts()[:3]] == [
        "green teatea",
        "rail",
        "steamsteam/engine",
    ]
    page.get_by_label("Greatest first").uncheck()
    expect(titles.first).to_contain_text("steam/engine")
    page.get_by_label("year from").fill("1805")
    page.keyboard.press("Tab")
    expect(titles).to_have_count(2)
    expect(titles.first).to_contain_text("rail")
