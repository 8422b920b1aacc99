"""Pages that nest without end."""

import pytest

from tercet.ingest.texts.html import parse_html
from tercet.ingest.texts.html_nesting import MAX_DEPTH, with_bounded_depth


@pytest.mark.parametrize("tag", ["div", "ul", "b", "table", "x-y", "DIV"])
def test_elements_below_the_bound_lose_their_tags_and_keep_their_text(tag: str) -> None:
    page = (
        f"<{tag} class=a>" * MAX_DEPTH
        + f"tea<{tag}>hot</{tag}>water"
        + f"</{tag}>" * MAX_DEPTH
        + "<i>milk</i>"
    )
    assert with_bounded_depth(page) == page.replace(f"tea<{tag}>hot</{tag}>water", "tea hot water")


def test_elements_that_end_by_themselves_do_not_nest() -> None:
    page = "<ul>" + "<li>tea<br><img src=a>" * 2000 + "</ul><p>" * 2000 + "<hr/>" * 1000
    assert with_bounded_depth(page) == page


@pytest.mark.parametrize("tag", ["<a", "<a ", "</a", "<", "<a/", "<a <a"])
def test_tags_without_an_end_are_looked_at_once(tag: str) -> None:
    """300,000 of them: looked at up to the end of the page each would take hours."""
    assert with_bounded_depth(tag * 300_000) == tag * 300_000


def test_a_page_of_opening_tags_is_read_like_any_other() -> None:
    """40,000 of them: without a bound half a minute."""
    assert parse_html(b"<div>" * 40_000 + b"tea", None).text == "tea"
    assert parse_html(b"<p>hot</p>" + b"<ul><li>" * 20_000 + b"water", None).text.split() == [
        "hot",
        "-",
        "water",
    ]
