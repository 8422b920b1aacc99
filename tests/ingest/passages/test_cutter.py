"""Passages: where documents are cut, and what each part is called."""

import random
from pathlib import Path

import pytest

from tercet.index.candidates import Document
from tercet.index.errors import DuplicateDocumentError, InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.cutter import PassageCutter
from tercet.ingest.passages.measure import TokenMeasure
from tercet.ingest.passages.outline import Outline
from tercet.ingest.passages.split import Split, SplitKind
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading
from tercet.models.checkpoint import read_settings
from tercet.models.tokenizer import Tokenizer

GUIDE = """Before all headings.

# Guide

## Set up

Run make.

## Empty

### Inside

Deep text.

## Set up

    indented code
"""


@pytest.fixture(scope="module")
def tokenizer(embedded_checkpoint: Path) -> Tokenizer:
    return Tokenizer.load(embedded_checkpoint, read_settings(embedded_checkpoint))


def cut(text: str, kind: SplitKind, size: int | None = None, title: str | None = "Guide") -> list[Document]:
    return list(PassageCutter(Split(kind, size), TokenMeasure()).passages(Document("g.md", text, title)))


def test_at_headings_each_section_is_a_passage() -> None:
    found = cut(GUIDE, "markdown")
    assert [(one.id, one.title, one.text) for one in found] == [
        ("g.md#1", "Guide", "Before all headings."),
        ("g.md#set-up", "Guide › Set up", "Run make."),
        ("g.md#inside", "Guide › Empty › Inside", "Deep text."),
        ("g.md#set-up-1", "Guide › Set up", "    indented code"),
    ]
    assert found[0].metadata == {"source": "g.md", "start": 0, "end": 20}
    assert found[2].metadata == {
        "source": "g.md",
        "headings": ["Guide", "Empty", "Inside"],
        "anchor": "inside",
        "start": GUIDE.index("Deep"),
        "end": GUIDE.index("Deep") + 10,
    }


def test_a_title_keeps_the_first_heading_where_that_says_more() -> None:
    assert [one.title for one in cut("# Tea\n\nHot.", "markdown", title="Drinks")] == ["Drinks › Tea"]
    assert [one.title for one in cut("# Tea\n\nHot.", "markdown", title="Tea - Drinks")] == ["Tea - Drinks"]
    assert [one.title for one in cut("# Tea\n\nHot.", "markdown", title="Teapots")] == ["Teapots › Tea"]
    assert [one.title for one in cut("## Tea\n\nHot.", "markdown", title="Tea - Drinks")] == [
        "Tea - Drinks › Tea"
    ]
    assert [one.title for one in cut("# Tea\n\nHot.", "markdown", title=None)] == ["Tea"]


def test_a_long_section_is_cut_further_and_numbered() -> None:
    text = "# One\n\n" + "\n\n".join(f"Paragraph {number} about tea." for number in range(20))
    found = cut(text, "markdown", 32)
    assert [one.id for one in found[:3]] == ["g.md#one", "g.md#one.2", "g.md#one.3"]
    assert {one.metadata["anchor"] for one in found} == {"one"}
    assert all(one.text.startswith("Paragraph") and one.text.endswith("tea.") for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["markdown", "paragraphs", "tokens"])
@pytest.mark.parametrize("measured", [True, False])
def test_passages_are_parts_of_the_text_within_the_size_and_leave_out_blanks_and_headings(
    kind: SplitKind, measured: bool, tokenizer: Tokenizer
) -> None:
    words = [
        "tea",
        "물",
        "😀",
        "water\n",
        "long" * 30,
        ".",
        "\n\n",
        "\r\n",
        "# A\n",
        "- b\n",
        "\ud800",
        "```\n",
    ]
    measure = TokenMeasure(tokenizer if measured else None)
    cutter, generator = PassageCutter(Split(kind, 20), measure), random.Random(0)
    for number in range(30):
        text = " ".join(generator.choices(words, k=number * 10))
        found = list(cutter.passages(Document(f"d{number}", text)))
        assert len({one.id for one in found}) == len(found)
        covered, before = set[int](), 0
        for one in found:
            start, end = one.metadata["start"], one.metadata["end"]
            assert before <= start < end
            assert one.text == text[start:end]
            assert measure.tokens(one.text.replace("\ud800", "\ufffd"), 20) <= 20
            covered.update(range(start, end))
            before = end
        left = "".join(text[place] for place in range(len(text)) if place not in covered)
        assert not left.strip() or (kind == "markdown" and set(left.split()) <= {"#", "A", *words})
        if kind != "markdown":
            assert not left.strip()


def test_by_size_passages_end_with_sentences_whatever_the_lines() -> None:
    text = "Tea is hot.\nIt is\ndrunk. " * 40
    found = cut(text, "tokens", 40)
    assert len(found) > 5
    assert all(one.text.endswith(("hot.", "drunk.")) for one in found)
    assert [one.id for one in found[:2]] == ["g.md#1", "g.md#2"]


@pytest.mark.parametrize("kind", ["tokens", "paragraphs", "markdown"])
@pytest.mark.parametrize("size", [16, 20, 24, 40])
def test_the_number_of_an_item_of_a_list_stays_with_it(kind: SplitKind, size: int) -> None:
    item = "Pour the hot water over the leaves and wait for a while now."
    text = "\n".join(f"{number}. {item}" for number in range(1, 13)) + "\n\n13."
    found = cut(text, kind, size)
    assert [one.text for one in found[:-1] if one.text[-2:-1].isdigit()] == []
    assert sum(one.text.count(". Pour") for one in found) == 12
    assert all(one.text == text[one.metadata["start"] : one.metadata["end"]] for one in found)
    assert found[-1].text.endswith("13.")


def test_at_blank_lines_paragraphs_are_gathered_up_to_the_size() -> None:
    paragraphs = [f"Paragraph {number} of some words." for number in range(10)]
    found = cut("\n\n".join(paragraphs), "paragraphs", 30)
    assert [one.text.count("Paragraph") for one in found] == [3, 3, 3, 1]
    assert found[0].text == "\n\n".join(paragraphs[:3])


def test_pages_are_told_and_linked() -> None:
    outline = Outline(pages=(0, 12, 24))
    text = "First page.\nSecond one.\nThird page."
    cutter = PassageCutter(Split("markdown", 16), TokenMeasure())
    found = list(cutter.passages(Document("x.pdf", text, "X", {"pages": 3}), outline))
    assert [(one.id, one.metadata["page"], one.metadata["last_page"]) for one in found] == [
        ("x.pdf#page=1", 1, 3)
    ]
    long = PassageCutter(Split("markdown", 16), TokenMeasure())
    found = list(long.passages(Document("x.pdf", "A. " * 40 + text, "X"), Outline(pages=(0, 132, 144))))
    assert [one.id for one in found[:2]] == ["x.pdf#page=1", "x.pdf#page=1.2"]
    assert (found[-1].metadata["anchor"], found[-1].metadata["last_page"]) == ("page=2", 3)


def test_nothing_is_lost_of_a_document_that_is_all_headings_and_none_is_made_of_blanks() -> None:
    assert [(one.id, one.text) for one in cut("# One\n## Two\n", "markdown")] == [("g.md#1", "# One\n## Two")]
    assert cut(" \n\n", "markdown") == cut("", "tokens") == []


def test_the_usual_size_is_half_of_what_the_encoder_reads(tokenizer: Tokenizer) -> None:
    assert TokenMeasure(tokenizer).usual_size == tokenizer.settings.max_length // 2
    assert TokenMeasure().usual_size == 256
    with pytest.raises(ValueError, match="15; give 16 to"):
        Split("tokens", 15)


def test_metadata_that_a_passage_has_of_its_own_are_refused() -> None:
    document = Document("a", "text", None, {"start": 1})
    with pytest.raises(InvalidDocumentError, match=r"'start'.*--no-metadata-field start"):
        list(PassageCutter(Split("tokens"), TokenMeasure()).passages(document))


def test_a_table_is_cut_and_a_document_that_is_there_twice_is_told_once(tmp_path: Path) -> None:
    rows = ["id,body,lang", '1,"# Tea\n\nHot.\n\n# Bees\n\nDance.",en', '2,"",en', '1,"# Tea\n\nCold.",en']
    (tmp_path / "x.csv").write_text("\n".join(rows))
    reader = DocumentReader(tmp_path / "x.csv", on_error="skip", reading=Reading(split=Split("markdown")))
    found = list(reader)
    assert [(one.id, one.metadata["source"], one.metadata["lang"]) for one in found] == [
        ("1#tea", "1", "en"), ("1#bees", "1", "en")
    ]  # fmt: skip
    assert (reader.total, reader.skipped) == (None, 2)
    with pytest.raises(SourceError, match='line 9: "body" is missing'):
        list(DocumentReader(tmp_path / "x.csv", reading=Reading(split=Split("markdown"))))
    (tmp_path / "x.csv").write_text("\n".join([*rows[:2], *rows[3:]]))
    with pytest.raises(DuplicateDocumentError, match="the id '1' occurs already"):
        list(DocumentReader(tmp_path / "x.csv", reading=Reading(split=Split("markdown"))))


def test_ids_stay_within_their_limit() -> None:
    document = Document(
        "가" * 160, "# " + "long heading " * 20 + "\n\nOne.\n\n# " + "long heading " * 20 + "\n\nTwo."
    )
    found = list(PassageCutter(Split("markdown"), TokenMeasure()).passages(document))
    assert len({one.id for one in found}) == 2
    assert all(len(one.id.encode()) <= 512 for one in found)
