"""Markdown: headings where CommonMark has them, and front matter."""

import pytest

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.texts.markdown import headings_of, parted

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


def test_front_matter_is_values_and_lists_of_them() -> None:
    front, text = parted(
        "---\n# a remark\ntitle: 'Tea: green'\nyear: 2001\ndate: 2020-01-02\ndraft: false\n"
        "tags: [a, b, [c]]\nnested: {a: 1}\nnothing:\nbad: .nan\n---\n# Tea\n"
    )
    assert front == {
        "title": "Tea: green", "year": 2001, "date": "2020-01-02", "draft": False, "tags": ["a", "b"]
    }  # fmt: skip
    assert text == "# Tea\n"


@pytest.mark.parametrize(
    "text", ["---\nNo key here.\n---\n# One\n", "---\ntitle: never closed\n", "# One\n---\na: 1\n---\n", ""]
)
def test_what_is_no_front_matter_is_text(text: str) -> None:
    assert parted(text) == ({}, text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("title: a: b", "no YAML at line 2"),
        ("a: &x [1]\nb: [*x, *x]", "aliases are not read"),
        ("a: " + "[" * 5000, "no YAML"),
        ("a: !!python/object/apply:os.getcwd []", "no YAML"),
        ("a: 1\n" * 20_000, "at most 65536"),
    ],
)
def test_front_matter_that_cannot_be_read_is_refused(front: str, said: str) -> None:
    with pytest.raises(InvalidDocumentError, match=said):
        parted(f"---\n{front}\n---\ntext\n")
