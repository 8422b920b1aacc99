"""The page as its users meet it: a real browser, real servers, a tiny encoder."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.ports import held_port

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect

Visit = Callable[..., Any]
SIDES = ("dense", "sparse", "colbert")


def hits_of(page: Any) -> list[str]:
    """The ids of the hits on the page, in order, once they are there."""
    page.wait_for_selector(".hit")
    return [element.get_attribute("data-id") for element in page.query_selector_all(".hit")]


def searches_of(page: Any) -> list[dict[str, Any]]:
    """Bodies of the searches that the page asks for from now on, but for those that count values."""
    asked: list[dict[str, Any]] = []

    def request(sent: Any) -> None:
        if sent.url.endswith("/search") and "facets" not in (body := json.loads(sent.post_data)):
            asked.append(body)

    page.on("request", request)
    return asked


def test_the_way_of_a_new_user(make_server: Any, tmp_path: Path, visit: Visit) -> None:
    with make_server(data=tmp_path / "empty") as url:
        page = visit(url)
        page.get_by_text("There are no collections yet.").wait_for()
        page.get_by_role("button", name="Create a collection").click()
        page.get_by_role("dialog").wait_for()
        page.get_by_label("Name").fill("notes")
        page.get_by_label("Fields for filters").fill("year: whole")
        page.get_by_role("button", name="Create", exact=True).click()
        page.get_by_text("year: whole is no field").wait_for()
        page.get_by_label("Fields for filters").fill("year: integer\nkind: keyword")
        page.get_by_role("button", name="Create", exact=True).click()
        page.get_by_text("notes is created.").wait_for()

        page.get_by_role("link", name="Search").click()
        page.get_by_text("This collection has no documents yet.").wait_for()
        page.get_by_role("button", name="Add a document").click()
        page.get_by_role("dialog").wait_for()
        page.get_by_label("Id").fill("a/1 차")
        page.get_by_label("Text").fill("brew green tea")
        page.get_by_label("Metadata").fill("[1]")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("The metadata are no JSON object").wait_for()
        page.get_by_label("Metadata").fill('{"year": "many"}')
        page.get_by_role("button", name="Save").click()
        page.get_by_role("alert").get_by_text("year").wait_for()  # the server's own words
        page.get_by_label("Metadata").fill('{"year": 2024}')
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved as write 1.").wait_for()

        page.get_by_role("link", name="Search").click()
        page.get_by_label("What to search for").fill("green tea")
        assert hits_of(page) == ["a/1 차"]
        page.get_by_role("button", name="Why is a/1 차 here?").click()
        page.get_by_role("heading", name="Which token met which").wait_for()

        page.get_by_role("link", name="Documents").click()
        page.get_by_role("button", name="Edit: a/1 차").click()
        page.get_by_label("Text").fill("steam moves the train")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved as write 2.").wait_for()
        assert (
            httpx.get(f"{url}/collections/notes/documents/{quote('a/1 차', safe='')}").json()["text"]
            == "steam moves the train"
        )
        page.get_by_role("button", name="Delete: a/1 차").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_text("a/1 차 is deleted.").wait_for()
        page.get_by_text("There are no documents here.").wait_for()


@pytest.mark.slow
def test_a_document_whose_id_is_a_step_of_a_path_is_changed_and_deleted_alone(
    make_server: Any, visit: Visit
) -> None:
    with make_server() as url:
        put = {"documents": [{"id": "..", "text": "hot water"}]}
        httpx.put(f"{url}/collections/demo/documents", json=put).raise_for_status()
        page = visit(f"{url}/#/documents?c=demo")
        page.get_by_role("button", name="Edit: ..").click()
        page.get_by_label("Text").fill("green leaf")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved as write 2.").wait_for()
        page.get_by_role("button", name="Delete: ..").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_text(".. is deleted.").wait_for()
        assert httpx.get(f"{url}/collections/demo").json()["documents"] == 5


@pytest.mark.slow
def test_someone_elses_change_is_not_overwritten(make_server: Any, visit: Visit) -> None:
    with make_server() as url:
        page = visit(f"{url}/#/documents?c=demo")
        page.get_by_role("button", name="Edit: tea").click()
        page.get_by_role("dialog").wait_for()
        changed = {"documents": [{"id": "tea", "text": "hot water"}]}
        httpx.put(f"{url}/collections/demo/documents", json=changed).raise_for_status()
        page.get_by_label("Text").fill("green leaf")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Something else changed at the same time").wait_for()
        assert httpx.get(f"{url}/collections/demo/documents/tea").json()["text"] == "hot water"


@pytest.mark.slow
def test_a_shared_address_shows_its_hits_and_their_parts(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=hot+tea%3F")
    assert page.get_by_label("What to search for").input_value() == "hot tea?"
    answer = httpx.post(
        f"{server}/search",
        json={"collection": "demo", "query": "hot tea?", "explain": True, "highlight": True},
    )
    expected = answer.json()["hits"]
    assert hits_of(page) == [hit["id"] for hit in expected]
    first = page.locator(".hit").first
    assert float(first.locator(".score").inner_text()) == pytest.approx(expected[0]["score"], abs=0.0006)
    parts = [float(each) for each in first.locator(".parts dd").all_inner_texts()]
    assert parts == pytest.approx([expected[0]["scores"][side] for side in SIDES], abs=0.0006)
    widths = first.locator(".bar .piece").evaluate_all("each => each.map(e => parseFloat(e.style.width))")
    positive = [max(0, expected[0]["scores"][side]) for side in SIDES]
    full = max(3, sum(positive))  # 1 on each side, on every page
    assert widths == pytest.approx([each / full * 100 for each in positive], abs=0.01)
    assert "took" not in page.locator(".status").inner_text()
    assert re.search(r"encode [\d.]+ ms · retrieve", page.locator(".status").inner_text())
    marks = first.locator(".text mark").all_inner_texts()
    assert marks == [expected[0]["text"][each["start"] : each["end"]] for each in expected[0]["highlights"]]
    first.get_by_role("button", name="Why").click()
    rows = first.locator(".explanation section").last.locator("tbody tr")
    shown = [row.locator("td").all_inner_texts() for row in rows.all()]
    assert [(query, document) for query, document, _ in shown] == [
        (each["query_token"], each["document_token"]) for each in expected[0]["explanation"]["alignment"]
    ]


@pytest.mark.slow
def test_an_address_is_shown_though_the_view_before_it_writes_its_own(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo")
    page.get_by_label("What to search for").wait_for()
    page.evaluate("""() => {
        location.hash = "#/search?c=demo&q=hot+tea";
        document.querySelector(".options select:last-of-type").dispatchEvent(new Event("change"));
    }""")  # the browser tells of the new address only after this
    assert "tea" in hits_of(page)
    assert page.get_by_label("What to search for").input_value() == "hot tea"
    assert page.evaluate("location.hash") == "#/search?c=demo&q=hot+tea"


@pytest.mark.slow
def test_sliders_reorder_without_a_request(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=black+tea+station")
    before = hits_of(page)
    page.locator("mark").first.wait_for()
    asked = searches_of(page)
    for side in ("dense", "lexical"):
        page.get_by_role("slider", name=side).fill("0")
    page.get_by_text("These hits are only re-ordered.").wait_for()
    hits = httpx.post(f"{server}/search", json={"collection": "demo", "query": "black tea station"}).json()[
        "hits"
    ]
    by_colbert = [hit["id"] for hit in sorted(hits, key=lambda hit: -hit["scores"]["colbert"])]
    assert hits_of(page) == by_colbert
    assert asked == []
    assert "w=0%2C0%2C1" in page.url
    shared = visit(page.url)
    assert hits_of(shared) == by_colbert
    page.get_by_role("button", name="Search with these weights").click()
    page.get_by_text("These hits are only re-ordered.").wait_for(state="hidden")
    assert [each["weights"] for each in asked] == [{"dense": 0, "sparse": 0, "colbert": 1}]
    page.get_by_role("slider", name="dense").fill("1")
    page.get_by_role("button", name="Undo").click()
    assert page.get_by_role("slider", name="dense").input_value() == "0"
    assert set(before) == set(by_colbert)


@pytest.mark.slow
def test_filters_come_from_the_declared_fields(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=tea")
    hits_of(page)
    asked = searches_of(page)
    values = page.get_by_role("group", name="kind")
    expect(values.locator("label")).to_have_text(["drink1", "plant1", "travel1"])
    values.get_by_label("drink").check()
    expect(page.locator(".hit")).to_have_count(1)
    values.get_by_label("travel").check()  # its own filter does not take it away
    expect(page.locator(".hit")).to_have_count(2)
    page.get_by_label("year from").fill("1900")
    page.get_by_label("year from").press("Tab")
    expect(page.locator(".hit")).to_have_count(1)
    assert hits_of(page) == ["tea"]
    assert asked[-1]["filter"] == {"and": [{"in": {"kind": ["drink", "travel"]}}, {"gte": {"year": 1900}}]}
    expect(values.locator("label")).to_have_text(["drink1", "travel"])  # of the years since 1900
    assert hits_of(visit(page.url)) == ["tea"]
    page.get_by_label("year to").fill("1901")
    page.get_by_label("year to").press("Tab")
    page.get_by_text("Nothing was found.").wait_for()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".hit")).to_have_count(5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("locale", "entered", "failed"),
    [
        ("en-GB", "Check your input", "The page failed"),
        ("ko-KR", "입력한 것을 확인하세요", "페이지에 오류가 났습니다"),
    ],
)
def test_a_users_mistake_is_no_failure_of_the_page(
    server: str, visit: Visit, locale: str, entered: str, failed: str
) -> None:
    filtered = quote('{"year": {"gte": "many"}}')
    page = visit(f"{server}/#/search?c=demo&q=tea&f={filtered}", locale=locale)
    heading = page.get_by_role("alert").locator("strong")
    expect(heading).to_have_text(entered)
    answer = httpx.post(
        f"{server}/search", json={"collection": "demo", "query": "tea", "filter": {"gte": {"year": "many"}}}
    )
    assert answer.status_code == 422
    expect(page.get_by_role("alert").locator("p")).to_have_text(answer.json()["error"]["message"])
    malformed = {"type": "malformed_request", "message": "so", "param": None, "code": "invalid_json"}
    page.route("**/search", lambda route: route.fulfill(status=400, json={"error": malformed}))
    page.get_by_role("alert").get_by_role("button").click()
    expect(page.get_by_role("alert").locator("p")).to_have_text("so")
    expect(heading).to_have_text(entered)
    page.goto(f"{server}/#/documents?c=demo&new=1")  # what the page itself finds wrong
    page.locator("dialog input").first.fill("a")
    page.locator("dialog textarea").first.fill("tea")
    page.locator("dialog textarea.code").fill('{"year": NaN}')
    page.locator("dialog button[type=submit]").click()
    expect(heading).to_have_text(entered)
    expect(page.get_by_role("alert").locator("p")).to_contain_text(
        {"en-GB": "Line 1, column 10: NaN is no JSON", "ko-KR": "1행 10열: NaN은(는) JSON이 아닙니다"}[locale]
    )
    page.keyboard.press("Escape")
    page.goto(f"{server}/#/compare?c=demo")
    page.locator("section.card > .row button").click()
    expect(heading).to_have_text(entered)
    page.route("**/jobs", lambda route: route.fulfill(json={}))
    page.goto(f"{server}/#/jobs")
    expect(heading).to_have_text(failed)


@pytest.mark.slow
def test_a_filter_of_another_shape_in_an_address_is_left_out(server: str, visit: Visit) -> None:
    filtered = quote('{"kind": {"eq": "drink"}, "year": 3}')
    assert len(hits_of(visit(f"{server}/#/search?c=demo&q=tea&f={filtered}"))) == 5


@pytest.mark.slow
def test_all_can_be_done_by_the_keyboard(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo&q=tea")
    first, second, *_ = hits_of(page)
    page.locator(".hit mark").first.wait_for()
    page.get_by_role("link", name="Search").focus()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.id") == first
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.id") == second
    page.keyboard.press("Enter")
    why = page.get_by_role("button", name=f"Why is {second} here?")
    assert why.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert why.get_attribute("aria-expanded") == "false"
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "query"
    page = visit(f"{server}/#/collections")
    page.locator(".card").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.slow
def test_a_syllable_that_is_being_put_together_is_not_searched_for(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/search?c=demo", locale="ko-KR")
    field = page.get_by_label("검색할 내용")
    field.focus()
    asked = searches_of(page)
    keyboard = page.context.new_cdp_session(page)
    for unfinished in ("ㅊ", "차", "찬"):
        keyboard.send("Input.imeSetComposition", {"text": unfinished, "selectionStart": 1, "selectionEnd": 1})
        page.wait_for_timeout(450)  # longer than the pause after which what was typed is searched for
    assert asked == []
    keyboard.send("Input.insertText", {"text": "찬물"})
    hits_of(page)
    assert [each["query"] for each in asked] == ["찬물"]
    assert page.get_by_text("결과 5건").is_visible()


@pytest.mark.slow
def test_a_server_that_is_gone_and_comes_back(make_app: Any, serve: Any, visit: Visit) -> None:
    with held_port() as port:
        with serve(make_app(), port=port) as url:
            page = visit(f"{url}/#/search?c=demo&q=tea")
            hits_of(page)
        page.get_by_label("What to search for").fill("water")
        page.get_by_text("The server does not answer").wait_for()
        with serve(make_app(), port=port):
            page.get_by_role("button", name="Try again").click()
            assert len(hits_of(page)) == 5


@pytest.mark.slow
def test_a_busy_server_says_when_to_come_back(make_server: Any, held: Any, visit: Visit) -> None:
    with make_server(encoder=held, max_wait_seconds=0.01) as url:
        page = visit(f"{url}/#/search?c=demo")
        page.get_by_text("Type something").wait_for()
        held.gate.clear()
        blocking = threading.Thread(
            target=httpx.post, args=(f"{url}/embed",), kwargs={"json": {"inputs": "a"}}
        )
        blocking.start()
        try:
            while 'wait_seconds{kind="query"} 0.0' in httpx.get(f"{url}/metrics").text:
                page.wait_for_timeout(20)
            page.get_by_label("What to search for").fill("tea")
            # It counts down from one second, after which it is gone.
            page.get_by_role("button", name=re.compile(r"Try again in \d+ s"), disabled=True).wait_for()
            page.get_by_text("The server is busy").wait_for()
        finally:
            held.gate.set()
            blocking.join()
        page.get_by_role("button", name="Try again", exact=True).click()
        assert len(hits_of(page)) == 5


def changed(route: Any, **values: object) -> None:
    """What the server answers, with other values of the newest job."""
    answer = route.fetch()
    jobs = answer.json()["jobs"]
    route.fulfill(response=answer, json={"jobs": [{**jobs[0], **values}, *jobs[1:]]})
