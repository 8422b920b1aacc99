"""Values before the text of Markdown."""

import pytest

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.texts.front_matter import parted


def test_front_matter_is_values_and_lists_of_them() -> None:
    front, text = parted(
        "---\n# a remark\ntitle: 'Tea: green'\nyear: 2001\ndate: 2020-01-02\ndraft: false\n"
        "tags: [a, b, [c]]\nnested: {a: 1}\nnothing:\nbad: .nan\n---\n# Tea\n"
    )
    assert front == {
        "title": "Tea: green", "year": 2001, "date": "2020-01-02", "draft": False, "tags": ["a", "b"]
    }  # fmt: skip
    assert text == "# Tea\n"


def test_front_matter_may_be_toml_or_empty() -> None:
    front, text = parted(
        '+++\ntitle = "Tea"\ndate = 2020-01-02\nat = 08:30:00\ntags = ["a", "b"]\n[more]\nx = 1\n+++\n# Tea\n'
    )
    assert front == {"title": "Tea", "date": "2020-01-02", "at": "08:30:00", "tags": ["a", "b"]}
    assert text == "# Tea\n"
    assert parted("---\n---\n# Tea\n") == ({}, "# Tea\n")


@pytest.mark.parametrize(
    "text",
    [
        "---\na = 1\n---\n",
        "---\nNo key here.\n---\n# One\n",
        "---\ntitle: never closed\n",
        "# One\n---\na: 1\n---\n",
        "",
    ],
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


def test_toml_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidDocumentError, match="no TOML"):
        parted("+++\ntitle: Tea\n+++\ntext\n")
