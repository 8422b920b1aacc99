"""HTML as text: blocks on lines, headings known, without what is beside the text."""

import pytest

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


SPHINX = """<title>Tea</title><div class="related"><ul><li>index</ul></div>
<div class="document"><div class="body"><h1>Tea</h1><p>Hot.</div></div>
<div class="sphinxsidebar"><h3>Table of Contents</h3><ul><li>Tea</ul></div><div class="footer">2012</div>"""


def test_navigation_of_pages_without_elements_for_it_is_left_out() -> None:
    assert parse_html(SPHINX.encode(), None).text == "Tea\n\nHot."


@pytest.mark.parametrize(
    "banner",
    [
        '<div id="onetrust-banner-sdk">We value your privacy</div>',
        '<div class="wrap cookie-consent shown">Accept all</div>',
        '<aside id="gdpr_banner">We ask you</aside>',
        '<div role="dialog" aria-label="privacy">This site uses cookies.</div>',
        "<dialog open>쿠키를 씁니다</dialog>",
    ],
)
def test_banners_about_cookies_are_left_out(banner: str) -> None:
    assert parse_html(f"<body>{banner}<h1>Tea</h1><p>Hot.".encode(), None).text == "Tea\n\nHot."


def test_what_a_text_says_of_cookies_and_other_dialogs_stay() -> None:
    page = (
        '<div role="main"><div class="section" id="cookie-consent"><h2>Cookie consent</h2>How to ask.</div>'
        "</div>"
        '<div class="cookie-recipes">Bake.</div><div role="dialog">Sign in</div>'
    )
    text = parse_html(f"<body><p>Sweet.</p>{page}".encode(), None).text
    assert text.split("\n\n") == ["Cookie consent", "How to ask."]
    other = b"<p>Hot.</p><div class=cookie-recipes>Bake.</div><div role=dialog>Sign in</div>"
    assert parse_html(other, None).text == "Hot.\n\nBake.\nSign in"


def test_what_wikis_and_manuals_of_code_put_around_a_text_is_left_out() -> None:
    wiki = (
        '<div id="content"><h1>Tea</h1><div id="toc">Contents</div>'
        '<h2>History<span class="mw-editsection">[edit]</span></h2><p>Old.</p>'
        '<div class="catlinks">Drinks</div></div>'
    )
    assert parse_html(wiki.encode(), None).text == "Tea\n\nHistory\n\nOld."
    manual = (
        '<div class="topNav"><a name="x">Skip</a></div><h2>Class Tea</h2><div class="bottomNav">Next</div>'
    )
    assert parse_html(manual.encode(), None).text == "Class Tea"
