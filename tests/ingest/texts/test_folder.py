"""Folders of text as sources."""

import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.index.errors import DuplicateDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.split import Split
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.files import source_files
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

MakePdf = Callable[..., bytes]


@pytest.fixture
def folder(tmp_path: Path, make_pdf: MakePdf) -> Path:
    root = tmp_path / "docs"
    (root / "guide" / "deep").mkdir(parents=True)
    (root / "b.md").write_text(
        "---\ntitle: Bees\ntags: [a, b]\nsource: elsewhere\n---\n\n# Heading\n\nThey dance.\n"
    )
    (root / "guide" / "A.MD").write_text("Intro\n\n## First\n\nText.\n")
    (root / "guide" / "deep" / "page.html").write_text("<title>Page</title><p>Hello.")
    (root / "guide" / "x.pdf").write_bytes(make_pdf(["Tea."], title="On tea"))
    (root / "old.txt").write_bytes("Straße\r\nzwei".encode("cp1252"))
    (root / "picture.png").write_bytes(b"\x89PNG")
    return root


def test_each_file_is_a_document(folder: Path) -> None:
    reader = DocumentReader(folder)
    documents = list(reader)
    assert [(one.id, one.title, dict(one.metadata)) for one in documents] == [
        ("b.md", "Bees", {"tags": ["a", "b"], "source": "b.md"}),
        ("old.txt", "old", {"source": "old.txt"}),
        ("guide/A.MD", "A", {"source": "guide/A.MD"}),
        ("guide/x.pdf", "On tea", {"pages": 1, "source": "guide/x.pdf"}),
        ("guide/deep/page.html", "Page", {"source": "guide/deep/page.html"}),
    ]
    assert documents[0].text == "\n# Heading\n\nThey dance.\n"
    assert documents[1].text == "Straße\nzwei"
    assert (reader.total, reader.fraction, reader.skipped) == (5, 1.0, 0)
    assert reader.described == "5 files of text (2 .md, 1 .html, 1 .pdf, 1 .txt)"


NOTE = "## Tickets\n\nBought in the train.\n\n## Bicycles\n\nThey need one, too.\n"


@pytest.mark.parametrize(
    ("name", "text", "titles"),
    [
        ("night-train_notes.md", NOTE, ["night train notes › Tickets", "night train notes › Bicycles"]),
        ("trip.md", "# Tickets\n\nOne.\n\n# Bicycles\n\nTwo.\n", ["trip › Tickets", "trip › Bicycles"]),
        ("trip.md", "# By train\n\nHere.\n\n## Seats\n\nTwo.\n", ["By train", "By train › Seats"]),
        ("trip.md", "#### Deep\n\nA.\n\n### Less\n\nB.\n", ["trip › Deep", "trip › Less"]),
        ("trip.md", "## Trip\n\nA.\n\n# Late\n\nB.\n", ["trip", "trip › Late"]),
        ("tea-log.txt", "Hot.", ["tea log"]),
        (
            "tea-log.html",
            "<h2>Green</h2><p>Hot.<h2>Black</h2><p>Hot.",
            ["tea log › Green", "tea log › Black"],
        ),
        (
            "tea-log.html",
            "<h1>Green</h1><p>Hot.<h1>Black</h1><p>Hot.",
            ["tea log › Green", "tea log › Black"],
        ),
        ("--.txt", "Hot.", ["--"]),
        ("a.rst", "Tea\n===\n\nHot.\n\nGreen\n-----\n\nCold.\n", ["Tea", "Tea › Green"]),
        ("green-tea/index.md", "Hot.", ["green tea"]),
        ("index.md", "Hot.", ["index"]),
        ("post.md", '+++\ntitle = "Tea"\n+++\nHot.', ["Tea"]),
        ("post.md", "---\ntitle: true\n---\nHot.", ["true"]),
        ("mail.txt", "From: a@example.org\nSubject: Tea\n\nHot.", ["Tea"]),
        ("tea.mdx", "import A from 'a'\n\n# Tea\n\nHot.", ["Tea"]),
    ],
)
def test_a_file_without_a_title_goes_by_its_name_and_no_section_by_its_sibling(
    tmp_path: Path, name: str, text: str, titles: list[str]
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    reading = Reading(split=Split("markdown"))
    assert [document.title for document in DocumentReader(tmp_path, reading=reading)] == titles


def test_pictures_within_markdown_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "notebook.md").write_text(f"![png](data:image/png;base64,{'iVBORw0K' * 1000}==)\n\nHot.\n")
    (document,) = DocumentReader(tmp_path)
    assert document.text == "![png](data:image/png;base64,)\n\nHot.\n"


def test_utf_16_is_read(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", "c.html"):
        (tmp_path / name).write_text("녹차 tea", encoding="utf-16")
    assert {document.text for document in DocumentReader(tmp_path)} == {"녹차 tea"}


def test_one_file_is_a_source(folder: Path) -> None:
    (document,) = DocumentReader(folder / "guide" / "x.pdf")
    assert (document.id, document.text) == ("x.pdf", "Tea.")


def test_what_is_left_out_is_counted_and_named_and_stops_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "inside.md").symlink_to(folder / "b.md")
    (folder / "parent").symlink_to(tmp_path)
    (folder / "gone.md").symlink_to(folder / "missing.md")
    for hidden in (".git", "node_modules"):
        (folder / hidden).mkdir()
        (folder / hidden / "x.md").write_text("x")
    (folder / ".hidden.md").write_text("x")
    (folder / "empty.md").write_text(" \n")
    reader = DocumentReader(folder)
    ids = [document.id for document in reader]
    assert ids == ["b.md", "inside.md", "old.txt", "guide/A.MD", "guide/x.pdf", "guide/deep/page.html"]
    said = {str(skip).partition(" file ")[2] for skip in reader.skips}
    assert said == {
        ".git: left out: hidden",
        ".hidden.md: left out: hidden",
        "empty.md: left out: there is no text in it",
        "gone.md: left out: no plain file",
        "link.md: left out: a symbolic link out of the folder",
        "node_modules: left out: a folder that other programs bring",
        "parent: left out: a symbolic link to a folder",
    }
    assert reader.skipped == len(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"a\0b", "no text: it holds bytes of 0"),
        ("x.md", b"---\ntitle: a: b\n---\n", "front matter is no YAML"),
        ("x.pdf", b"%PDF", "no readable PDF"),
        ("x.md", b"tea " * 1200, "longer than 4096 bytes"),
    ],
)
def test_files_that_cannot_be_read_stop_the_reading_or_are_skipped(
    folder: Path, name: str, content: bytes, said: str
) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(SourceError, match=f"docs file {name}: .*{said}.*--on-error skip"):
        list(DocumentReader(folder, line_bytes=4096))
    reader = DocumentReader(folder, on_error="skip", line_bytes=4096)
    assert len(list(reader)) == 5
    assert reader.skipped == 1


def test_names_are_told_in_nfc_and_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    name = "가나다.md"
    (tmp_path / unicodedata.normalize("NFD", name)).write_text("x")
    assert [document.id for document in DocumentReader(tmp_path)] == [name]
    (tmp_path / name).write_text("y")
    with pytest.raises(DuplicateDocumentError, match=name):
        list(DocumentReader(tmp_path))


def test_texts_go_before_tables_and_these_before_what_tells_of_them(folder: Path, tmp_path: Path) -> None:
    (folder / "openapi.json").write_text("{}")
    assert source_files(folder) == [folder]
    (folder / "table.csv").write_text("id,text\n1,tea\n")
    assert source_files(folder) == [folder]
    reader = DocumentReader(folder, on_error="skip")
    list(reader)
    assert "table.csv: left out: a table, which is a source of its own" in "\n".join(map(str, reader.skips))
    data = tmp_path / "data"
    (data / "more").mkdir(parents=True)
    (data / "README.md").write_text("# What it is")
    (data / "LICENSE.txt").write_text("MIT")
    (data / "more" / "table.csv").write_text("id,text\n1,tea\n")
    assert source_files(data) == [data / "more" / "table.csv"]
    (folder / "year=2024").mkdir()
    (folder / "year=2024" / "part.csv").write_text("id,text\n1,tea\n")
    assert folder not in source_files(folder)


def test_columns_and_metadata_may_be_chosen(folder: Path) -> None:
    reading = Reading(ColumnChoice(not_metadata=("tags",), generate_ids=True))
    first = next(iter(DocumentReader(folder, reading=reading)))
    assert (len(first.id), dict(first.metadata)) == (32, {"id": "b.md", "source": "b.md"})
    with pytest.raises(SourceError, match=r"no column 'body' .*columns are id, title, text, metadata"):
        list(DocumentReader(folder, reading=Reading(ColumnChoice(text="body"))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name"), [("markdown_it", "x.md"), ("selectolax", "x.html"), ("pypdfium2", "x.pdf")]
)
def test_a_missing_package_is_one_error_that_says_how_to_get_it(
    tmp_path: Path, repository: Path, package: str, name: str
) -> None:
    (tmp_path / name).write_text("x")
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from pathlib import Path; from tercet.ingest.sources.reader import DocumentReader\n"
        f"DocumentReader(Path({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert 'pip install "tercet[files]"' in done.stderr.splitlines()[-1]
