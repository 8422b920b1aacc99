"""Two settings side by side, and over judged queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import ir_measures
import pytest
from ir_measures import R, nDCG

pytestmark = pytest.mark.slow

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect

Visit = Callable[..., Any]

QUERIES = {"q1": "hot tea", "q2": "the train", "q3": "a green leaf", "q4": "not judged", "q5": "steam"}
QRELS = {
    "q1": {"tea": 2, "black": 1, "rail": 0},
    "q2": {"rail": 1, "steam/engine": 3, "gone": 1},
    "q3": {"leaf": 1},
    "q5": {"black": 0},  # nothing is relevant, so nothing is measured
}
SETTINGS = ({"dense": 1, "sparse": 0, "colbert": 0}, {"dense": 0, "sparse": 1, "colbert": 0})
ADDRESS = "/#/compare?c=demo&a=w%3D1%2C0%2C0&b=w%3D0%2C1%2C0"


def rankings(server: str, weights: dict[str, float]) -> dict[str, list[str]]:
    """What the server finds for each judged query."""
    found = {}
    for query in ("q1", "q2", "q3"):
        json = {"collection": "demo", "query": QUERIES[query], "weights": weights}
        hits = httpx.post(f"{server}/search", json=json).json()["hits"]
        found[query] = [hit["id"] for hit in hits]
    return found


def measured(ranked: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """nDCG@10 and recall@10 of each query as ir-measures has them."""
    judged = [
        ir_measures.Qrel(query, document, grade)
        for query in ranked
        for document, grade in QRELS[query].items()
    ]
    run = [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query, documents in ranked.items()
        for rank, document in enumerate(documents)
    ]
    found: dict[str, dict[str, float]] = {}
    for each in ir_measures.iter_calc([nDCG @ 10, R @ 10], judged, run):
        found.setdefault(each.query_id, {})[str(each.measure)] = each.value
    return found


def test_two_rankings_side_by_side(server: str, visit: Visit) -> None:
    page = visit(f"{server}{ADDRESS}&q=hot+tea")
    for name, weights in zip("AB", SETTINGS, strict=True):
        ranking = page.get_by_role("list", name=name, exact=True).locator("li")
        expect(ranking.first).to_be_visible()
        ids = ranking.evaluate_all("each => each.map(e => e.dataset.id)")
        assert ids == rankings(server, weights)["q1"]
    only = page.get_by_role("list", name="A", exact=True).locator("li.only")
    expect(only.first).to_contain_text("only here")
    page.get_by_role("group", name="A", exact=True).get_by_label("lexical", exact=True).fill("1")
    page.keyboard.press("Tab")
    expect(page.get_by_role("list", name="A", exact=True).locator("li").first).to_have_attribute(
        "data-id", "tea"
    )
    page.wait_for_function("location.hash.includes('a=w%3D1%252C1%252C0')")


def test_a_judged_set_is_measured_as_ir_measures_does(server: str, visit: Visit) -> None:
    page = visit(f"{server}{ADDRESS}")
    lines = [f'{{"_id": "{id}", "text": "{text}"}}' for id, text in QUERIES.items()]
    qrels = ["query-id\tcorpus-id\tscore"]
    qrels += [f"{query}\t{id}\t{grade}" for query, grades in QRELS.items() for id, grade in grades.items()]
    page.locator("input[type=file]").set_input_files(
        [
            {"name": "queries.jsonl", "mimeType": "text/plain", "buffer": "\n".join(lines).encode()},
            {"name": "qrels.tsv", "mimeType": "text/plain", "buffer": "\n".join(qrels).encode()},
        ]
    )
    page.get_by_text("5 queries, 4 of them judged").wait_for()
    page.get_by_role("button", name="Measure both").click()
    page.get_by_role("heading", name="Means over 3 queries").wait_for()
    expected = [measured(rankings(server, weights)) for weights in SETTINGS]
    for name in ("nDCG@10", "R@10"):
        row = page.get_by_role("row", name=name.replace("R@", "recall@"))
        shown = [float(each) for each in row.first.locator("td").all_inner_texts()]
        means = [sum(each[name] for each in found.values()) / 3 for found in expected]
        assert shown == pytest.approx(means, abs=0.00006)
    table = page.get_by_role("region", name="Where they differ most")
    rows = {row.locator("th").inner_text(): row for row in table.locator("tbody tr").all()}
    differing = [
        query
        for query in ("q1", "q2", "q3")
        if any(abs(expected[0][query][name] - expected[1][query][name]) > 0 for name in ("nDCG@10", "R@10"))
    ]
    assert set(rows) == {QUERIES[query] for query in differing}
    assert differing
    for query in differing:
        shown = [float(each) for each in rows[QUERIES[query]].locator("td").all_inner_texts()]
        values = [found[query][name] for name in ("nDCG@10", "R@10") for found in expected]
        assert shown == pytest.approx(values, abs=0.0006)
    first = table.locator("tbody button").first
    query = first.inner_text()
    first.click()
    assert page.get_by_label("What to search for").input_value() == query
    page.get_by_role("list", name="A", exact=True).wait_for()


def test_lines_are_judgments_and_what_is_none_says_so(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/compare?c=demo")
    page.get_by_role("button", name="Measure both").click()
    page.get_by_text("There are no judged queries").wait_for()
    lines = page.get_by_label("Or lines")
    lines.fill("hot tea\ttea\nno tab")
    page.get_by_role("button", name="Measure both").click()
    page.get_by_text("Line 2: write a query, a tab and a document id").wait_for()
    lines.fill("hot tea\ttea\nhot tea\tblack\t2\nthe train\trail")
    page.get_by_role("button", name="Measure both").click()
    page.get_by_role("heading", name="Means over 2 queries").wait_for()
    page.get_by_text("Both are as good in every query.").wait_for()
    page.locator("input[type=file]").set_input_files(
        [{"name": "queries.jsonl", "mimeType": "text/plain", "buffer": b'{"_id": "a"}'}]
    )
    page.get_by_text("queries.jsonl, line 1: no JSON object with _id and text").wait_for()


def test_a_setting_becomes_the_default_of_the_collection(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        page = visit(f"{url}{ADDRESS}")
        page.get_by_role("button", name="Make B the default").click()
        page.get_by_text("Weights and candidates of B are now the defaults of demo.").wait_for()
        stored = httpx.get(f"{url}/collections/demo").json()["defaults"]
        assert stored == {"weights": SETTINGS[1], "candidates": {"dense": 200, "sparse": 200}}
        page.get_by_role("link", name="Collections").click()
        page.get_by_text("weights 0, 1, 0 · candidates 200, 200").wait_for()
        page.get_by_role("button", name="Remove the defaults: demo").click()
        page.get_by_text("demo uses the usual weights again.").wait_for()
        assert httpx.get(f"{url}/collections/demo").json()["defaults"] is None


def test_both_begin_with_what_searches_use(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        stored = {"weights": {"sparse": 0.064}, "candidates": {"dense": 30}}
        httpx.put(f"{url}/collections/demo/defaults", json=stored).raise_for_status()
        page = visit(f"{url}/#/compare?c=demo")
        for name in "AB":
            group = page.get_by_role("group", name=name, exact=True)
            expect(group.get_by_label("lexical", exact=True)).to_have_value("0.064")
            expect(group.get_by_label("Candidates, dense")).to_have_value("30")
        group.get_by_label("lexical", exact=True).fill("0.128")
        page.keyboard.press("Tab")
        page.wait_for_function("location.hash.includes('b=w%3D1%252C0.128%252C1')")


@pytest.mark.parametrize("locale", ["en-GB", "ko-KR"])
def test_all_of_it_is_accessible_and_fits_a_phone(server: str, visit: Visit, locale: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe: the extra dev"
    ).Axe()
    page = visit(
        f"{server}{ADDRESS}&q=hot+tea", locale=locale, bypass_csp=True, viewport={"width": 360, "height": 740}
    )
    page.locator("textarea").fill("hot tea\ttea\nthe train\trail\na\tsteam/engine")
    page.get_by_role("button", name={"en-GB": "Measure both", "ko-KR": "둘 다 재기"}[locale]).click()
    page.locator("table .link").first.wait_for()
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
