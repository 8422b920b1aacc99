"""Files that are loaded by the page: what it shows of them, and what the server has afterwards."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.ingest.sources.columns import content_id
from tests.pdf_files import pdf_of

pytestmark = pytest.mark.slow

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: the extra dev").expect

Visit = Callable[..., Any]

TABLE = """id,title,body,year,kind,note
a,Green tea,"brew it, ""hot""
with water",2001,drink,
b,,the train,1830,travel,007

c,No text,,1900,drink,x
"""


DROP = """(files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, base64] of Object.entries(files)) {
    dataTransfer.items.add(new File([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))], name));
  }
  document.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


def give(page: Any, files: Mapping[str, bytes]) -> None:
    """Gives files to the page as somebody who drops them does."""
    page.locator(".drop").first.wait_for()
    given = {name: base64.b64encode(content).decode() for name, content in files.items()}
    page.evaluate(DROP, given)


def stored(url: str, collection: str) -> dict[str, dict[str, Any]]:
    """What a collection holds, by id."""
    answer = httpx.get(f"{url}/collections/{collection}/documents", params={"limit": 1000})
    return {each["id"]: each for each in answer.json()["documents"]}


def load(page: Any) -> None:
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("Done:").wait_for()


def test_a_table_becomes_a_collection_with_fields(make_server: Any, tmp_path: Path, visit: Visit) -> None:
    with make_server(data=tmp_path / "empty") as url:
        page = visit(url)
        page.get_by_role("link", name="Load a file").click()
        give(page, {"Tea Houses.csv": TABLE.encode()})
        assert page.get_by_label("Name").input_value() == "tea-houses"
        assert [page.get_by_label(each, exact=True).input_value() for each in ("Text", "Title", "Id")] == [
            "body",
            "title",
            "id",
        ]
        uses = page.locator("tbody tr")
        assert {
            row.locator("th").inner_text(): row.locator("select").input_value() for row in uses.all()
        } == {
            "year": "integer",
            "kind": "keyword",
            "note": "keyword",
        }
        cards = page.locator(".cards .card")
        expect(cards).to_have_count(3)
        expect(cards.nth(0).locator(".text")).to_have_text('brew it, "hot"\nwith water')
        expect(cards.nth(2)).to_contain_text("Tea Houses.csv line 6:")
        page.get_by_role("combobox", name="note").select_option("out")
        load(page)
        page.get_by_text("2 documents written · 1 record refused").wait_for()
        page.locator("section li", has_text="Tea Houses.csv line 6:").wait_for()
        assert stored(url, "tea-houses") == {
            "a": {
                "id": "a",
                "title": "Green tea",
                "text": 'brew it, "hot"\nwith water',
                "metadata": {"year": 2001, "kind": "drink"},
            },
            "b": {
                "id": "b",
                "title": None,
                "text": "the train",
                "metadata": {"year": 1830, "kind": "travel"},
            },
        }
        collection = httpx.get(f"{url}/collections/tea-houses").json()
        assert collection["fields"] == {"year": "integer", "kind": "keyword"}
        assert collection["title"] == "Tea Houses"
        page.get_by_role("link", name="Search it").click()
        page.get_by_label("What to search for").fill("hot")
        page.locator(".hit").first.wait_for()


def test_columns_are_in_the_order_of_the_file(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    give(page, {"years.csv": b"text,place,2020,10,empty,2\ntea,Boseong,7,,,x\nrail,Leeds,,8,,y\n"})
    rows = page.locator("tbody tr th")
    expect(rows).to_have_count(5)
    assert rows.all_inner_texts() == [
        "place",
        "2020",
        "10",
        "empty",
        "2",
    ]  # objects have 2, 10 and 2020 first
    options = page.get_by_label("Text", exact=True).locator("option").all_inner_texts()
    assert options == ["text", "place", "2020", "10", "empty", "2"]
    chips = page.locator(".cards .card").first.locator(".chips li")
    assert chips.all_inner_texts() == ["place: Boseong", "2020: 7", "2: x"]


def test_an_old_korean_table_is_read_as_such(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    text = "제목,글,분류\n녹차,찬물에 우린 녹차,차\n홍차,뜨거운 홍차,차\n".encode("cp949")
    give(page, {"차.csv": text})
    page.get_by_label("Encoding").wait_for()
    assert page.get_by_label("Encoding").input_value() == "cp949"
    assert page.get_by_label("Title").input_value() == "제목"  # a usual name
    page.get_by_text("“글” has the longest values and is taken as the text.").wait_for()
    assert page.get_by_label("Text", exact=True).input_value() == "글"
    page.get_by_label("Name").fill("korean")
    expect(page.locator(".cards .card .text").first).to_have_text("찬물에 우린 녹차")
    load(page)
    expected = content_id("찬물에 우린 녹차", "녹차", {"분류": "차"})
    assert stored(server, "korean")[expected]["text"] == "찬물에 우린 녹차"


RECORDS = [{"id": "a", "text": "hot tea", "year": 2001}, {"id": "b", "text": "the train", "year": 1830}]


def parquet() -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: the extra parquet")
    from pyarrow import parquet as parquets

    file = io.BytesIO()
    parquets.write_table(pyarrow.Table.from_pylist(RECORDS), file)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet"])
def test_every_kind_of_table(server: str, visit: Visit, kind: str) -> None:
    content = {
        "csv": lambda: b"id,text,year\na,hot tea,2001\nb,the train,1830\n",
        "jsonl": lambda: "\n".join(map(json.dumps, RECORDS)).encode(),
        "json": lambda: json.dumps({"data": RECORDS}).encode(),
        "parquet": parquet,
    }[kind]()
    page = visit(f"{server}/#/load")
    give(page, {f"kind {kind}.{kind}": content})
    expect(page.locator(".cards .card .text")).to_have_text(["hot tea", "the train"])
    assert page.get_by_role("combobox", name="year").input_value() == "integer"
    load(page)
    assert {id: (each["text"], each["metadata"]) for id, each in stored(server, f"kind-{kind}").items()} == {
        "a": ("hot tea", {"year": 2001}),
        "b": ("the train", {"year": 1830}),
    }


def test_html_is_read(server: str, visit: Visit) -> None:
    pytest.importorskip("selectolax", reason="needs the extra files")
    page = visit(f"{server}/#/load")
    give(page, {"web.html": b"<title>Tea</title><body><h1>Tea</h1><p>hot <b>tea</b></p></body>"})
    expect(page.locator(".cards .card .text")).to_contain_text(["hot tea"])
    load(page)
    (document,) = stored(server, "web").values()
    assert "hot tea" in document["text"]
    assert document["metadata"]["source"] == "web.html"


def test_pdf_is_read(server: str, visit: Visit) -> None:
    pytest.importorskip("pypdfium2", reason="needs the extra files")
    page = visit(f"{server}/#/load")
    give(page, {"paper.pdf": pdf_of(["hot tea"], title="Brewing")})
    expect(page.locator(".cards .card .title")).to_have_text("Brewing")
    load(page)
    assert stored(server, "paper")["paper.pdf"]["text"].strip() == "hot tea"


def test_several_tables_go_into_one_collection(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    give(
        page,
        {"several.csv": b"id,text\na,tea\n", "two.csv": b"id,text\nb,rail\n", "bad.csv": b"id,words\n1,x\n"},
    )
    page.get_by_label("Name").fill("several")
    page.get_by_label("Text", exact=True).select_option("words")
    page.locator(".cards .card .text").wait_for()
    load(page)
    page.get_by_text("1 document written · 2 records refused").wait_for()
    page.locator("section li", has_text="several.csv").wait_for()


def test_of_a_large_table_its_beginning_is_looked_at(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    sizes = page.evaluate(
        """async () => {
          const { FileKinds, Source } = await import("/page/load/files.js");
          const kinds = new FileKinds((await (await fetch("/info")).json()).files);
          const line = "a,hot tea\\n";
          const sample = (name, text) => new Source([{ name, file: new File([text], name) }], kinds).sample();
          const long = line.repeat(500000);
          const [a, b] = [await sample("a.csv", line), await sample("b.csv", long)];
          const c = await sample("c.json", long); // which has no end of its own within
          return [a.size, b.size, (await b.text()).endsWith(line), c.size];
        }"""
    )
    assert sizes == [10, 1_048_570, True, 5_000_000]


def test_what_is_left_out_is_not_kept_and_what_has_no_id_gets_one(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    give(page, {"columns.jsonl": b'{"pid": "a", "text": "tea", "x": "u", "y": "v"}'})
    page.get_by_role("combobox", name="x", exact=True).select_option("out")
    page.get_by_label("Id", exact=True).select_option("made of the content")
    card = page.locator(".cards .card").first
    expect(card.locator(".chips li")).to_have_text(["pid: a", "y: v"])
    load(page)
    assert list(stored(server, "columns")) == [content_id("tea", None, {"pid": "a", "y": "v"})]


MARKDOWN = """---
title: "Tea guide"
year: 2020
tags: [a, b]
---
Before all headings.

# Tea guide

About tea.

## How to `brew_it` *well*

Water.

```sh
# no heading
```

Under
-----

Lines
## Empty

## 녹차 & more {#green}

초록.

## How to brew_it well

Again.
"""


def test_texts_are_cut_at_their_headings(server: str, visit: Visit) -> None:
    pytest.importorskip("semantic_text_splitter", reason="needs the extra files")
    page = visit(f"{server}/#/load")
    give(
        page,
        {"tea.md": MARKDOWN.encode(), "plain.txt": b"Just text.\n", ".hidden": b"x", "a.png": b"x"},
    )
    page.get_by_text("2 others are left out").wait_for()
    page.get_by_label("Name").fill("guide")
    load(page)
    found = stored(server, "guide")
    assert found["plain.txt#1"]["text"] == "Just text."
    assert found["tea.md#green"]["text"] == "초록."
    assert found["tea.md#green"]["metadata"]["headings"] == ["Tea guide", "녹차 & more"]
    page.goto(f"{server}/#/search?c=guide&q=water")
    page.locator(".hit .place .source", has_text=re.compile("^tea.md#green$")).wait_for()
    page.locator(".hit .place .headings", has_text=re.compile("^Tea guide › 녹차 & more$")).wait_for()


def test_texts_are_whole_where_it_is_chosen(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    give(page, {"whole.md": MARKDOWN.encode()})
    expect(page.locator(".cards .card")).to_have_count(3)
    page.get_by_label("Cut into passages").select_option("no, whole")
    expect(page.locator(".cards .card")).to_have_count(1)
    load(page)
    document = stored(server, "whole")["whole.md"]
    assert document["metadata"] == {"year": 2020, "tags": ["a", "b"], "source": "whole.md"}


@pytest.mark.parametrize("locale", ["en-GB", "ko-KR"])
def test_all_of_it_is_accessible_and_fits_a_phone(server: str, visit: Visit, locale: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe: the extra dev"
    ).Axe()
    page = visit(f"{server}/#/load", locale=locale, bypass_csp=True, viewport={"width": 360, "height": 740})

    def look() -> None:
        found = axe.run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360

    give(page, {"phone.csv": TABLE.encode()})
    page.locator(".cards .card").first.wait_for()
    look()
    page.locator("form input[maxlength]").fill(f"phone-{locale.lower()}")
    page.locator("form button[type=submit]").click()
    page.locator("section a.button").first.wait_for()
    look()


def test_files_are_chosen_and_loaded_by_the_keyboard_alone(server: str, visit: Visit, tmp_path: Path) -> None:
    (tmp_path / "keys.jsonl").write_text('{"id": "a", "text": "tea"}', "utf-8")
    page = visit(f"{server}/#/load")
    # Listened for before anything else: Chromium is told of it in its own time.
    page.on("filechooser", lambda chooser: chooser.set_files(tmp_path / "keys.jsonl"))
    page.get_by_role("button", name="Choose files").focus()
    expect(page.get_by_role("button", name="Choose files")).to_be_focused()
    page.keyboard.press("Enter")
    name = page.get_by_label("Name")
    name.wait_for()
    name.focus()
    page.keyboard.press("Enter")
    page.get_by_text("Done: 1 document is in keys.").wait_for()


def test_a_folder_is_chosen(server: str, visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "guide book"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.md").write_text("# A\n\nhot tea\n", "utf-8")
    (folder / "sub" / "a name of more than 32 characters.txt").write_bytes(
        "찬물에 우린 녹차, 뜨거운 홍차".encode("cp949")
    )
    (folder / ".git" / "c.md").write_text("no", "utf-8")
    page = visit(f"{server}/#/load")
    page.locator("input[webkitdirectory]").set_input_files(folder)
    page.get_by_text("1 other is left out").wait_for()
    assert page.get_by_label("Name").input_value() == "guide-book"
    load(page)
    assert httpx.get(f"{server}/collections/guide-book").json()["fields"] == {"source": "keyword"}
    assert {id: each["text"] for id, each in stored(server, "guide-book").items()} == {
        "guide book/a.md#a": "hot tea",
        "guide book/sub/a name of more than 32 characters.txt#1": "찬물에 우린 녹차, 뜨거운 홍차",
    }
