"""HTML as text: blocks on lines, headings known, without what is beside the text."""

from tercet.ingest.texts.html import parse_html

PAGE = """<!doctype html><html><head><title>My  page</title><style>p{}</style></head><body>
<nav><a href=/>Home</a></nav>
<main><h1>My <em>page</em><a class="headerlink" href="#x">¶</a></h1>
<p>Hello   <b>wor</b>ld,
 <a href=x>a link</a>.</p>
<ul><li>one<li><p>two</p></ul>
<h2 id="set-up">Set up <a href="#set-up">#</a></h2>
<pre>
make
    demo
</pre>
<table><tr><th>A<th>B</tr><tr><td>1<td>2</table>
<section id="sphinx">
<h3>In a section</h3>x<br>y<script>bad()</script></section></main>
<footer>Imprint</footer></body></html>"""

TEXT = """My page

Hello world, a link.

- one
- two

Set up

make
    demo

A | B
1 | 2

In a section

x
y"""


def test_a_page_is_its_readable_text() -> None:
    parsed = parse_html(PAGE.encode(), None)
    assert parsed.text == TEXT
    assert parsed.title == "My page"
    headings = parsed.outline.headings
    assert [(one.level, one.title, one.slug, one.anchor) for one in headings] == [
        (1, "My page", "my-page", None),
        (2, "Set up", "set-up", "set-up"),
        (3, "In a section", "sphinx", "sphinx"),
    ]
    assert [parsed.text[one.start : one.end] for one in headings] == [one.title for one in headings]


def test_the_title_is_the_first_heading_where_there_is_no_other() -> None:
    assert parse_html(b"<h1>Tea</h1><p>Hot.", None).title == "Tea"
    assert parse_html(b"<h1>Tea</h1><p>Hot.<h1>Bees</h1>", None).title is None
    assert parse_html(b"<p>Hot.", None).title is None


def test_encodings_are_found_said_or_given() -> None:
    for content in (
        "<meta charset=euc-kr><p>김치".encode("euc-kr"),
        "<meta charset=iso-8859-1><p>김치".encode(),  # said of what was converted since
        "<p>김치".encode("utf-16"),
    ):
        assert parse_html(content, None).text == "김치", content
    assert parse_html("<p>heiß".encode("cp437"), "cp437").text == "heiß"


def test_a_page_nested_deeper_than_calls_may_be_is_read() -> None:
    assert parse_html(b"<div>" * 3000 + b"deep" + b"</div>" * 3000, None).text == "deep"
