"""HTML and PDF in a child: what is in them, and files made to harm."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tercet.ingest.texts import parse_files
from tercet.ingest.texts.parsed import UnreadableFileError
from tercet.ingest.texts.parser import FileParser

MakePdf = Callable[..., bytes]


def test_a_pdf_is_its_pages(tmp_path: Path, make_pdf: MakePdf) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(make_pdf(["Tea is hot.", "Very hot."], [], ["Bees dance."], title="On tea"))
    with FileParser(2**20) as parser:
        parsed = parser.parse(path)
    assert (parsed.text, parsed.title, parsed.metadata) == (
        "Tea is hot.\nVery hot.\n\n\n\nBees dance.", "On tea", {"pages": 3}
    )  # fmt: skip
    assert [parsed.outline.page(parsed.text.index(word)) for word in ("Tea", "Very", "Bees")] == [1, 1, 3]


@pytest.mark.slow
def test_what_cannot_be_read_is_said_and_the_next_file_is_read(
    tmp_path: Path, make_pdf: MakePdf, pdf_bomb: bytes
) -> None:
    files = {
        "none.pdf": (make_pdf([]), "none of its 1 pages has text"),
        "damaged.pdf": (b"%PDF-1.4 and nothing more", "no readable PDF"),
        "bomb.pdf": (pdf_bomb, "takes more than 512 MiB of memory"),
        "long.pdf": (make_pdf(*[["Tea is hot."] * 40] * 30), "longer than 10000"),
        "large.html": (b"<b>x</b>" * 4_000_000, "takes more than 512 MiB"),
        "long.html": (b"tea " * 10_000, "longer than 10000 bytes"),
        "missing.html": (None, "No such file"),
    }
    slow = {"long.html": (b"<p><b>" * 1_000_000, "takes longer than 1 s")}
    good = tmp_path / "good.html"
    good.write_text("<p>Bees dance.")
    # A busy machine takes seconds to read enough of a file for 512 MiB, so those have longer.
    for seconds, given in ((120, files), (1, slow)):
        with FileParser(10_000, memory_bytes=2**29, seconds=seconds) as parser:
            for name, (content, said) in given.items():
                if content is not None:
                    (tmp_path / name).write_bytes(content)
                with pytest.raises(UnreadableFileError, match=said):
                    parser.parse(tmp_path / name)
                assert parser.parse(good).text == "Bees dance.", name


def test_one_child_parses_all_and_ends_with_the_block(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("<p>Tea")

    def children() -> list[int]:
        mark = parse_files.__name__
        return [one.pid for one in psutil.Process().children() if mark in " ".join(one.cmdline())]

    with FileParser(2**20) as parser:
        parser.parse(tmp_path / "x.html")
        first = children()
        parser.parse(tmp_path / "x.html")
        assert children() == first != []
    assert children() == []
