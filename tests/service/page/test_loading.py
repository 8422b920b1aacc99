"""Files that are loaded by the page: what is read of them, and what the server has afterwards."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.ingest.passages.cutter import PassageCutter
from tercet.ingest.passages.measure import TokenMeasure
from tercet.ingest.passages.outline import Outline
from tercet.ingest.passages.split import Split
from tercet.ingest.sources.columns import content_id
from tercet.ingest.texts.markdown import headings_of, parted

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
        expect(cards.nth(2)).to_contain_text("body is no text")
        page.get_by_role("combobox", name="note").select_option("out")
        load(page)
        page.get_by_text("2 documents written · 1 records refused").wait_for()
        page.get_by_text("Tea Houses.csv, 6:").wait_for()
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
    expect(rows).to_have_count(4)
    assert rows.all_inner_texts() == ["place", "2020", "10", "2"]  # objects have 2, 10 and 2020 first
    options = page.get_by_label("Text", exact=True).locator("option").all_inner_texts()
    assert options == ["text", "place", "2020", "10", "2"]
    chips = page.locator(".cards .card").first.locator(".chips li")
    assert chips.all_inner_texts() == ["place: Boseong", "2020: 7", "2: x"]


@pytest.mark.parametrize(
    ("locale", "written", "found", "title"),
    [
        ("ja-JP", "shift_jis", "shift_jis", "タイトル"),
        ("zh-CN", "gb18030", "gb18030", "标题"),
        ("zh-TW", "big5", "big5", "標題"),
        ("ko-KR", "shift_jis", "windows-1252", ""),  # which any bytes are, so that another can be chosen
    ],
)
def test_an_old_table_is_read_in_the_language_of_the_browser(
    server: str, visit: Visit, locale: str, written: str, found: str, title: str
) -> None:
    page = visit(f"{server}/#/load", locale=locale)
    content = (
        f"{title or 'タイトル'},content\n茶,茶の葉\n" if "jis" in written else f"{title},content\n茶,茶\n"
    )
    give(page, {"x.csv": content.encode(written)})
    encoding = page.locator("select", has=page.locator("option[value=big5]"))
    encoding.wait_for()
    assert encoding.input_value() == found
    assert page.locator("select", has=page.locator("option[value=content]")).nth(1).input_value() == title


def test_an_old_korean_table_is_read_as_such(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    text = "제목,글,분류\n녹차,찬물에 우린 녹차,차\n홍차,뜨거운 홍차,차\n".encode("cp949")
    give(page, {"차.csv": text})
    page.get_by_label("Encoding").wait_for()
    assert page.get_by_label("Encoding").input_value() == "euc-kr"
    assert page.get_by_label("Text", exact=True).input_value() == ""
    assert page.get_by_label("Title").input_value() == "제목"  # a usual name
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("Choose the column of the text.").wait_for()
    page.get_by_label("Text", exact=True).select_option("글")
    page.get_by_label("Name").fill("korean")
    expect(page.locator(".cards .card .text").first).to_have_text("찬물에 우린 녹차")
    load(page)
    expected = content_id("찬물에 우린 녹차", "녹차", {"분류": "차"})
    assert stored(server, "korean")[expected]["text"] == "찬물에 우린 녹차"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"_id": 1, "text": "x"}\n\nno\n{"_id": 2, "text": "tea \\"}{\\" é"}'),
        ("a.json", '[{"_id": 1, "text": "x"}, 3, {"_id": 2, "text": "tea \\"}{\\" é"}]'),
        (
            "a.json",
            '{"n": [1], "data": [{"_id": 1, "text": "x"}, [2], {"_id": 2, "text": "tea \\"}{\\" é"}],'
            ' "m": [{}]}',
        ),
        ("a.json", '{"_id": 1, "text": "x"}\nno\n{"_id": 2, "text": "tea \\"}{\\" é"}\n'),
        ("a.jsonl.gz", '{"_id": 1, "text": "x"}\nno\n{"_id": 2, "text": "tea \\"}{\\" é"}'),
    ],
)
def test_json_of_all_shapes(server: str, visit: Visit, name: str, content: str) -> None:
    page = visit(f"{server}/#/load")
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    # As it comes from a disk, in pieces that end anywhere.
    found = page.evaluate(
        """async ([name, bytes]) => {
          const { Source } = await import("/page/load/source.js");
          const file = new File([new Uint8Array(bytes)], name);
          const source = new Source([{ name, file }]);
          await source.find(new AbortController().signal);
          const found = [];
          for await (const { record, problem } of source.records()) found.push(problem ? "problem" : record);
          return found;
        }""",
        [name, list(packed)],
    )
    assert found == [{"_id": 1, "text": "x"}, "problem", {"_id": 2, "text": 'tea "}{" é'}]


def test_pieces_may_end_anywhere(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    read = """async ([text, size]) => {
      const { tableRecords } = await import("/page/load/tables.js");
      const { arrayRecords, lineRecords } = await import("/page/load/json.js");
      async function* pieces(whole) {
        for (let at = 0; at < whole.length; at += size) yield whole.slice(at, at + size);
      }
      const all = async (records) => {
        const found = [];
        for await (const each of records) found.push(each);
        return found;
      };
      const json = '[{"a": "x\\\\"]"},{"b":\\n [1, {"c": 2}]}]';
      return [
        await all(tableRecords(pieces(text), ",")),
        await all(arrayRecords(pieces(json))),
        await all(lineRecords(pieces('{"a":1}\\r\\n{"b":2}'))),
      ];
    }"""
    for text in (TABLE, TABLE.replace("\n", "\r\n"), 'sep=,\n"a",b\n"x""",\n'):
        whole, *others = [page.evaluate(read, [text, size]) for size in (10_000, 1, 2, 3, 7)]
        assert others == [whole] * 4
    assert whole[0] == [{"line": 3, "columns": ["a", "b"], "record": {"a": 'x"'}}]
    assert whole[1] == [
        {"number": 1, "record": {"a": 'x"]'}},
        {"number": 2, "record": {"b": [1, {"c": 2}]}},
    ]


DOCUMENTS = [
    ("tea", None, {}),
    ("", "x", {"b": 1, "a": [True, None, 'é\u007f\u0001"\\/']}),
    (
        "차 🍵",
        "제목",
        {"n": 0.5, "m": -3, "big": 1e16, "small": 0.00001, "tiny": 1.5e-7, "o": {"z": 1, "a": 2}},
    ),
    ("a" * 127, None, {}),
    ("b" * 1000, "t", {"x": "y"}),
]


@pytest.mark.parametrize(("text", "title", "metadata"), DOCUMENTS)
def test_ids_of_the_content_are_those_of_the_command_line(
    server: str, visit: Visit, text: str, title: str | None, metadata: dict[str, Any]
) -> None:
    page = visit(f"{server}/#/load")
    made = page.evaluate(
        """async (document) => (await import("/page/load/ids.js")).contentId(document)""",
        {"text": text, "title": title, "metadata": metadata},
    )
    assert made == content_id(text, title, metadata)


def test_numbers_that_a_browser_would_round_are_refused(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    rows = [{"id": "a", "text": "x", "n": 2**53 + 1}, {"id": "b", "text": "x", "n": 1e300}]
    give(page, {"big.jsonl": "\n".join(map(json.dumps, rows)).encode()})
    page.get_by_text("the number 9007199254740993 is too large").wait_for()
    expect(page.locator(".cards .card")).to_have_count(2)
    page.get_by_text("n: 1e+300").wait_for()


NOT_JSON = [
    ("a.jsonl", '{"text": "x"}\n\n{"text": "NaN: y", "n": NaN}', "a.jsonl, 3:", "{line 3}, {column 25}: NaN"),
    ("a.json", '{"text": "x", "n": -Infinity}\n', "a.json, 1:", "{line 1}, {column 20}: -Infinity"),
    (
        "a.json",
        '[{"text": "x"},\n {"text": "y",\n  "n": [1, nan]}]',
        "{record 2}",
        "{line 3}, {column 12}: nan",
    ),
    ("a.jsonl", "{\"text\": 'it'}", "a.jsonl, 1:", "{line 1}, {column 10}: 'it'"),
    ("a.jsonl", '{"text": "x"}\n{"text": "y", "n": 07}', "a.jsonl, 2:", "{line 2}, {column 20}: 07"),
    ("a.json", '[{"text": "x"},\n{"text": "y",}]', "{record 2}", "{broken 2}"),
    ("a.jsonl", '{"text": "x \\" n: NaN}', "a.jsonl, 1:", "{broken 1}"),
]
WORDS = {
    "en-GB": {
        "line": "Line {}",
        "column": "column {}",
        "record": "a.json, record {}:",
        "broken": "What begins in line {} is no JSON: look for commas",
        "allowed": "and null for what is missing",
    },
    "ko-KR": {
        "line": "{}행",
        "column": "{}열",
        "record": "a.json, 기록 {}:",
        "broken": "{}행에서 시작하는 것이 JSON이 아닙니다",
        "allowed": "값이 없으면 null을 쓰세요",
    },
}


def worded(text: str, words: Mapping[str, str]) -> str:
    """A text in which "{line 3}" stands for what a language makes of it; Korean has no comma between two."""
    text = re.sub(r"\{(\w+) (\d+)\}", lambda found: words[found[1]].format(found[2]), text)
    return text.replace("행, ", "행 ")


@pytest.mark.parametrize("locale", ["en-GB", "ko-KR"])
def test_what_is_no_json_says_where_and_what_is_allowed(server: str, visit: Visit, locale: str) -> None:
    page = visit(f"{server}/#/load", locale=locale)
    words = WORDS[locale]
    for name, content, place, problem in NOT_JSON:
        give(page, {name: content.encode()})
        card = page.locator(".cards .card", has=page.locator(".notice"))
        expect(card.locator("h4")).to_have_text(re.compile(re.escape(worded(place, words))))
        expect(card).to_have_count(1)
        notice = card.locator(".notice")
        expect(notice).to_contain_text(worded(problem, words))
        if "broken" not in problem:
            expect(notice).to_contain_text(words["allowed"])
        assert "JSON.parse" not in notice.inner_text()
        assert "nexpected" not in notice.inner_text()


def test_packed_files_that_are_none_say_so(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    packed = gzip.compress(b"".join(b"%d,tea\n" % place for place in range(10_000)))
    for content in (b"id,text\n1,tea", packed[:-100]):
        give(page, {"a.csv.gz": content})
        page.get_by_text("a.csv.gz is no gzip file, or a part of it is missing").wait_for()
        expect(page.get_by_role("alert").locator("strong")).to_have_text("Check your input")


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


def passages_of(text: str) -> dict[str, tuple[str | None, str, Any, Any]]:
    """What the command line makes of a file of Markdown."""
    front, body = parted(text)
    metadata = {name: value for name, value in front.items() if name != "title"}
    document = Document("tea.md", body, front["title"], {**metadata, "source": "tea.md"})
    cutter = PassageCutter(Split("markdown", 1000), TokenMeasure())
    passages = cutter.passages(document, Outline(headings_of(body), markdown=True))
    return {
        each.id: (each.title, each.text, each.metadata.get("headings"), each.metadata.get("anchor"))
        for each in passages
    }


def test_sections_of_markdown_are_those_of_the_command_line(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    give(
        page,
        {"tea.md": MARKDOWN.encode(), "plain.txt": b"Just text.\n", ".hidden": b"x", "a.png": b"x"},
    )
    page.get_by_text("2 others are left out").wait_for()
    page.get_by_label("Name").fill("guide")
    load(page)
    found = stored(server, "guide")
    plain = found.pop("plain.txt")
    assert (plain["title"], plain["text"], plain["metadata"]) == (
        "plain.txt",
        "Just text.",
        {"source": "plain.txt"},
    )
    assert {
        id: (each["title"], each["text"], each["metadata"].get("headings"), each["metadata"].get("anchor"))
        for id, each in found.items()
    } == passages_of(MARKDOWN)
    assert found["tea.md#green"]["metadata"] == {
        "year": 2020,
        "tags": ["a", "b"],
        "source": "tea.md",
        "headings": ["Tea guide", "녹차 & more"],
        "anchor": "green",
    }
    page.goto(f"{server}/#/search?c=guide&q=water")
    page.locator(".hit .place .source", has_text=re.compile("^tea.md#green$")).wait_for()
    page.locator(".hit .place .headings", has_text=re.compile("^Tea guide › 녹차 & more$")).wait_for()


FRONT_MATTER = [
    'title: "Tea: a \\u00e9 \\"guide\\"\\n" # said\ndate: 2024-01-02\ndraft: yes\nweight: 10\n',
    "layout: post\ntitle:  'It''s tea'\ndate:   2015-11-17 16:16:01 -06:00\ncategories: tea water\n",
    "date: 2024-01-02T03:04:05Z\nlastmod: 2024-1-2T3:04:05.25+9\nlocal: 2024-01-02 03:04:05 +0900\n",
    "tags: [tea, 'hot, water', \"a: b\", 3, true, ~, 2024-01-02, C#, [x], {y: 1}, z: 1]\nempty: []\n",
    "tags: [ # those\n  tea,\n  'water',\n]\nkinds:\n  [a, b]\n",
    "tags:\n- tea\n- 'hot: water' # so\n\n- \"x\"\n-\n- [a]\n- name: x\n  url: y\n- 1.50\nlast: 1\n",
    "tags:\n  # those\n  - tea\n    and water\n  - - a\n  - b\nby:\n  name: x\n  tags:\n    - y\nslug: z\n",
    "folded: >\n  Hot\n  tea.\n\n  And\n    more\n  of it\nkept: |-\n  a\n   b\n",
    "lines: |\n  a\n\nall: |+\n  a\n\n",
    'plain: hot\n  tea\n\n  and more # said\nquoted: "hot\n  tea"\nurl: https://example.org/#a\nnone:\n',
    "a: 010\nb: 0x1F\nc: 1_000\nd: 10:30\ne: .5\nf: 1e3\ng: 1.5e-3\nh: -0.5\ni: .nan\nj: 08\nk: 0b11\n",
    "shown: Off\nnothing: ~\nminus: -5 degrees\nplus: +5\nhyphen: a - b\nasked: What?\ntwice: 1\ntwice: 2\n",
    "\n# said\n\n'a b': c\n\"d\": e\n차.x: 물\nwater : 7\n",
    "no key\n",
]


def test_front_matter_is_that_of_the_command_line(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    texts = [f"---\n{front}---\nHot tea.\n" for front in FRONT_MATTER]
    texts += [text.replace("\n", "\r\n") for text in texts]
    read = page.evaluate(
        """async (texts) => {
          const { parted } = await import("/page/load/front_matter.js");
          return texts.map((text) => parted(text));
        }""",
        texts,
    )
    for text, found in zip(texts, read, strict=True):
        values, below = parted(text.replace("\r\n", "\n"))
        assert (found["values"], found["text"].replace("\r\n", "\n")) == (values, below)
        assert {name: type(value) for name, value in found["values"].items()} == {
            name: type(value) for name, value in values.items()
        }


def test_what_the_server_refuses_is_listed_and_the_rest_is_loaded(server: str, visit: Visit) -> None:
    httpx.put(f"{server}/collections/typed", json={"fields": {"year": "integer"}}).raise_for_status()
    rows = [f'{{"id": "d{place}", "text": "tea", "year": {place}}}' for place in range(100)]
    rows[17] = '{"id": "d17", "text": "tea", "year": "many"}'
    rows[70] = '{"id": "d3", "text": "tea", "year": 1}'
    page = visit(f"{server}/#/load?c=typed")
    give(page, {"typed.jsonl": "\n".join(rows).encode()})
    page.get_by_text("field: integer").wait_for(state="attached")
    load(page)
    page.get_by_text("98 documents written · 2 records refused").wait_for()
    refused = page.locator("section li", has_text="typed.jsonl, ").all_inner_texts()
    assert {re.match(r"typed.jsonl, (\d+):", each)[1] for each in refused} == {"18", "71"}
    assert len(stored(server, "typed")) == 98


def test_a_busy_server_is_asked_again_under_the_same_key(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    asked: list[dict[str, Any]] = []

    def busy(route: Any) -> None:
        asked.append(json.loads(route.request.post_data))
        if len(asked) == 1:
            error = {"error": {"type": "overloaded", "message": "busy", "param": None, "code": "overloaded"}}
            route.fulfill(status=429, headers={"Retry-After": "4"}, json=error)
        elif len(asked) == 2:
            route.abort()
        else:
            route.continue_()

    page.route("**/collections/again/documents", busy)
    give(page, {"again.jsonl": b'{"id": "a", "text": "tea"}'})
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("The server is busy: once more in 4 s").wait_for()
    page.get_by_text("The server does not answer").wait_for()
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("Done: 1 documents are in again.").wait_for()
    assert len(asked) == 3
    assert asked[0] == asked[1] == asked[2]
    assert asked[0]["idempotency_key"]


def test_a_loading_is_cancelled(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    rows = "\n".join(json.dumps({"id": f"d{place}", "text": "tea " * 20}) for place in range(20_000))
    give(page, {"long.jsonl": rows.encode()})
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text(re.compile(r"^[1-9]\d* documents written")).wait_for()
    bar = page.get_by_role("progressbar", name="Progress into long")
    assert 0 < float(bar.get_attribute("value")) <= float(bar.get_attribute("max"))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled:").wait_for()
    count = httpx.post(f"{server}/collections/long/documents/count", json={}).json()["count"]
    assert 0 < count < 20_000


def test_what_cannot_be_loaded_says_why(server: str, visit: Visit) -> None:
    page = visit(f"{server}/#/load")
    for files, problem in (
        ({"a.pdf": b"x"}, "Nothing here can be loaded: a.pdf"),
        ({"a.csv": b"x", "b.md": b"x"}, "These are of several kinds"),
        ({"a.csv": b"x,x\n1,2"}, "The column x is there twice"),
        ({"a.json": b'[{"a": 1}, {'}, "The file ends within its array"),
    ):
        give(page, files)
        page.get_by_text(problem).wait_for()
        expect(page.get_by_role("alert").locator("strong")).to_have_text("Check your input")
    give(page, {"a.csv": b"id,text\n1,tea"})
    page.get_by_label("Encoding").select_option("utf-16le")
    page.get_by_text(re.compile("There are no records in it|is no text in utf-16le")).wait_for()


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
    page.get_by_text("Done: 1 documents are in keys.").wait_for()


def test_a_folder_is_chosen(server: str, visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "guide book"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.md").write_text("# A\n\nhot tea\n", "utf-8")
    (folder / "sub" / "a name of more than 32 characters.txt").write_bytes("찬물".encode("cp949"))
    (folder / ".git" / "c.md").write_text("no", "utf-8")
    page = visit(f"{server}/#/load")
    page.locator("input[webkitdirectory]").set_input_files(folder)
    page.get_by_text("1 others are left out").wait_for()
    assert page.get_by_label("Name").input_value() == "guide-book"
    load(page)
    assert httpx.get(f"{server}/collections/guide-book").json()["fields"] == {"source": "keyword"}
    assert {id: each["text"] for id, each in stored(server, "guide-book").items()} == {
        "guide book/a.md#a": "hot tea",
        "guide book/sub/a name of more than 32 characters.txt": "찬물",
    }
