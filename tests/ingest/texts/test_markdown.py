"""Markdown: headings where CommonMark has them, and in blocks of HTML."""

import pytest

from tercet.ingest.texts.markdown import headings_of

TEXT = """Before.

# One `code` [link](x) *em* {not an id

```
# in a block of code
```

Two
lines
=====

## Same
## Same ##
> # in a quotation

- # in a list

### 한국어 제목! {#ko}
#hashtag
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_headings_are_those_of_commonmark(line_end: str) -> None:
    text = TEXT.replace("\n", line_end)
    found = headings_of(text)
    assert [(one.level, one.title, one.anchor) for one in found] == [
        (1, "One code link em {not an id", "one-code-link-em-not-an-id"),
        (1, "Two lines", "two-lines"),
        (2, "Same", "same"),
        (2, "Same", "same-1"),
        (3, "한국어 제목!", "ko"),
    ]
    lines = [text[one.start : one.end].replace(line_end, "\n") for one in found]
    assert lines == [
        "# One `code` [link](x) *em* {not an id\n",
        "Two\nlines\n=====\n",
        "## Same\n",
        "## Same ##\n",
        "### 한국어 제목! {#ko}\n",
    ]


README = """<p align="center"><img src="logo.png"></p>
<h1 align="center">
  <a href="/">Tea &amp; <b>Leaves</b></a>
</h1>

[![build](a.svg)](b)

Hot.

## Brewing

```html
<h2>Code</h2>
```
"""


def test_headings_in_blocks_of_html_are_headings() -> None:
    found = headings_of(README)
    assert [(one.level, one.title, one.slug) for one in found] == [
        (1, "Tea & Leaves", "tea--leaves"), (2, "Brewing", "brewing")
    ]  # fmt: skip
    assert README[found[0].start : found[0].end].startswith("<h1")
    assert README[found[0].end :].startswith("\n\n[!")
