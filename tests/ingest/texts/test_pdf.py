"""PDF as text: columns, letters that are set apart, lists, running heads, and fonts that say nothing."""

import zlib
from pathlib import Path

import pytest

from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.texts.parsed import ParsedText, UnreadableFileError
from tercet.ingest.texts.pdf import parse_pdf
from tests.pdf_files import nameless, pdf_of, squares

ALPHABET = "雨が降る。傘を持つ"


def parsed(path: Path, *pages: str, font: list[bytes] | None = None) -> ParsedText:
    """What is read of pages of content, in which F1 and F2 are fonts of 12 points."""
    packed = [zlib.compress(f"BT /F1 12 Tf {page} ET".encode()) for page in pages]
    (path / "x.pdf").write_bytes(pdf_of(*packed, font=font or []))
    return parse_pdf(path / "x.pdf", 2**20)


def column(left: int, top: int, text: str) -> str:
    codes = [ALPHABET.index(one) + 1 for one in text]
    shown = (f"1 0 0 1 {left} {top - 12 * place} Tm <{code:02x}> Tj" for place, code in enumerate(codes))
    return f"/F2 12 Tf {' '.join(shown)}"


def test_columns_of_vertical_writing_are_read_from_the_right(tmp_path: Path) -> None:
    upper = f"{column(480, 700, '傘を持つ。')} {column(500, 700, '雨が降る。')}"
    lower = f"{column(480, 400, 'が。')} {column(500, 400, '降る雨')}"
    foot = "/F1 12 Tf 1 0 0 1 300 30 Tm (page 12) Tj"
    found = parsed(tmp_path, f"{lower} {upper} {foot}", font=squares(ALPHABET)).text
    assert found == "雨が降る。\n傘を持つ。\n降る雨\nが。\npage 12"


def test_a_vertical_column_keeps_digits_that_stand_side_by_side(tmp_path: Path) -> None:
    digits = "/F1 12 Tf 1 0 0 1 500 664 Tm (12) Tj"
    text = f"{column(500, 700, '雨が降')} {digits} {column(500, 652, 'つ。')}"
    assert parsed(tmp_path, text, font=squares(ALPHABET)).text == "雨が降12つ。"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("[(T)-600(e)-600(r)-600(c)-600(e)-600(t)-1400(i)-600(n)-1400(a)-1400(b)] TJ", "Tercet in a b"),
        ("(N O T E   W E L L, then words) Tj", "NOTE WELL, then words"),
        ("(Options A B C D) Tj", "Options A B C D"),
        ("[(a)-3000(x)-3000(n)-3000(p)] TJ", "a x n p"),
        ("(I am a man) Tj", "I am a man"),
    ],
)  # fmt: skip
def test_letters_that_are_set_apart_make_words(tmp_path: Path, shown: str, text: str) -> None:
    assert parsed(tmp_path, f"72 700 Td {shown}").text == text


def test_the_number_of_an_item_of_a_list_stands_before_it(tmp_path: Path) -> None:
    numbers = "72 700 Td (4.) Tj 0 -16 Td (5.) Tj"
    items = (
        "1 0 0 1 102 700 Tm (Pour the water.) Tj 0 -16 Td (Wait exam-) Tj 0 -16 Td (ple.) Tj 0 -60 Td (-) Tj"
    )
    assert parsed(tmp_path, f"{numbers} {items}").text == "4. Pour the water.\n5. Wait example.\n-"


def test_heads_and_feet_of_most_pages_are_left_out(tmp_path: Path) -> None:
    def page(number: int, body: str) -> str:
        head, foot = "72 760 Td (The tea book) Tj", f"1 0 0 1 300 30 Tm (Page {number} of 4) Tj"
        steps = f"(Step {number}.) Tj 0 -16 Td ({body}) Tj 0 -16 Td (In {number} minutes.) Tj"
        return f"{head} 0 -60 Td {steps} {foot}"

    bodies = ["Boil", "Pour", "Wait", "Drink"]
    found = parsed(tmp_path, *(page(number, body) for number, body in enumerate(bodies)))
    assert found.text.splitlines()[:4] == ["Step 0.", "Boil", "In 0 minutes.", ""]
    assert "Page" not in found.text
    assert "tea book" not in found.text
    assert [found.text[start : start + 6] for start in found.outline.pages] == [f"Step {n}" for n in range(4)]
    assert parsed(tmp_path, *["72 760 Td (Tea) Tj"] * 4).text == "Tea\n\nTea\n\nTea\n\nTea"


def test_text_in_a_font_without_a_map_is_left_out_and_told(tmp_path: Path) -> None:
    odd = "/F2 12 Tf 72 700 Td <002400250026> Tj"
    parsed(tmp_path, f"{odd} /F1 12 Tf 0 -20 Td (Read me) Tj", font=nameless())
    reader = DocumentReader(tmp_path)
    assert [document.text for document in reader] == ["Read me"]
    assert (reader.skipped, reader.total) == (0, 1)
    assert "file x.pdf: left out: 3 characters, of a font that does not say" in str(reader.skips[0])
    with pytest.raises(
        UnreadableFileError, match="none of its 1 pages has text that can be read: 3 characters"
    ):
        parsed(tmp_path, odd, font=nameless())


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Microsoft Word - On tea.docx", "On tea"),
        ("untitled", None),
        ("PowerPoint Presentation", None),
        ("Untitled walks", "Untitled walks"),
        (" ", None),
    ],
)
def test_what_a_program_calls_a_file_is_no_title(tmp_path: Path, said: str, title: str | None) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf_of(["Hot."], title=said))
    assert parse_pdf(tmp_path / "x.pdf", 2**20).title == title
