"""A collection made like a folder, once."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tercet.cli.stores.remote import Remote, RemoteError, UnreachableError
from tercet.cli.watching.files import VERSION, FolderFiles
from tercet.cli.watching.mark import FOLDER, FolderMark
from tercet.cli.watching.stored_folder import StoredFile, StoredFolder
from tercet.cli.watching.sync import FolderSync
from tercet.ingest.passages.split import Split
from tercet.ingest.sources.reading import Reading
from tercet.ingest.texts.parser import FileParser
from tercet.service.settings.settings import Settings

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]
Listed = Callable[[], dict[str, Any]]
Sync = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sync(tercet: Run, url: str, docs: Path, collection: str) -> Sync:
    def sync(*flags: str) -> subprocess.CompletedProcess[str]:
        return tercet(
            *("documents", "put", str(docs), "--collection", collection, "--sync", "--split", "markdown"),
            *("--url", url, *flags),
            TERCET_API_KEYS="secret",
        )

    return sync


def test_files_are_put_changed_and_removed_and_nothing_else_is(
    sync: Sync, listed: Listed, docs: Path, tercet: Run, url: str, collection: str, tmp_path: Path
) -> None:
    done = sync()
    assert done.returncode == 0, done.stderr
    assert f"collection '{collection}' is new" in done.stdout
    first = listed()
    assert list(first) == ["bees.html#bees", "guide/tea.md#japan", "guide/tea.md#tea"]
    assert {each["metadata"][FOLDER] for each in first.values()} == {"docs"}
    assert sync().stdout.splitlines() == [f"3 documents of {docs} are in collection '{collection}'."]

    others = tmp_path / "others.jsonl"
    others.write_text(
        '{"id": "other", "text": "x", "metadata": {"source": "guide/tea.md"}}\n'
        '{"id": "guide/tea.md#own", "text": "x", "metadata": {"source_folder": "b"}}'
    )
    where = ["--collection", collection, "--url", url]
    put = tercet("documents", "put", str(others), *where, TERCET_API_KEYS="secret")
    assert put.returncode == 0, put.stderr
    (docs / "guide" / "tea.md").write_text("# Tea\n\nA new paragraph.\n\nHot.\n\n## Korea\n\nRoasted.\n")
    (docs / "bees.html").unlink()
    done = sync()
    assert "put guide/tea.md: 2 documents, 2 of them encoded, 1 deleted" in done.stdout
    assert "removed bees.html: 1 document deleted" in done.stdout
    assert list(listed()) == ["guide/tea.md#korea", "guide/tea.md#own", "guide/tea.md#tea", "other"]


def test_what_has_the_same_text_is_not_encoded_again(sync: Sync, listed: Listed, docs: Path) -> None:
    sync()
    former = listed()
    (docs / "guide" / "tea.md").write_text("Before.\n\n# Tea\n\nHot.\n\n## Japan\n\nSteamed.\n")
    assert "put guide/tea.md: 3 documents, 1 of them encoded, 0 deleted" in sync().stdout
    found = listed()["guide/tea.md#tea"]
    assert found["metadata"]["start"] == former["guide/tea.md#tea"]["metadata"]["start"] + len("Before.\n\n")
    assert found["metadata"][VERSION] != former["guide/tea.md#tea"]["metadata"][VERSION]


def test_what_a_build_put_is_taken_over(
    tercet: Run, sync: Sync, docs: Path, data_root: Path, collection: str
) -> None:
    where = ["--collection", collection, "--data", str(data_root)]
    done = tercet("collection", "build", str(docs), "--split", "markdown", *where)
    assert done.returncode == 0, done.stderr
    done = sync()
    assert "put guide/tea.md: 2 documents, 0 of them encoded, 0 deleted" in done.stdout, done.stderr


def test_another_way_to_read_puts_all_again(sync: Sync, listed: Listed) -> None:
    sync()
    done = sync("--split-size", "100")
    assert "put guide/tea.md: 2 documents, 0 of them encoded" in done.stdout
    assert sync("--split", "paragraphs").returncode == 0
    assert list(listed()) == ["bees.html#1", "guide/tea.md#1"]


def test_a_file_that_cannot_be_read_keeps_what_was_put_of_it(sync: Sync, listed: Listed, docs: Path) -> None:
    sync()
    (docs / "guide" / "tea.md").write_text("---\ntitle: a: b\n---\n# Tea\n")
    done = sync()
    assert (done.returncode, "1 file could not be read" in done.stderr) == (1, True)
    assert "tea.md: its front matter is no YAML" in done.stdout
    assert sync("--on-error", "skip").returncode == 0
    assert len(listed()) == 3
    (docs / "guide" / "tea.md").write_text("")
    assert sync().returncode == 0
    assert list(listed()) == ["bees.html#bees"]


def test_a_folder_that_cannot_be_listed_keeps_what_was_put_of_it(
    sync: Sync, listed: Listed, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync()
    entries = Path.iterdir

    def refused(folder: Path) -> Iterator[Path]:
        if folder.name == "guide":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return entries(folder)

    (docs / "bees.html").unlink()
    monkeypatch.setattr(Path, "iterdir", refused)
    assert sync().returncode == 0
    assert list(listed()) == ["guide/tea.md#japan", "guide/tea.md#tea"]


def test_marks_tell_folders_of_the_same_name_apart(
    sync: Sync, listed: Listed, tercet: Run, url: str, collection: str, tmp_path: Path
) -> None:
    sync("--mark", "here")
    other = tmp_path / "elsewhere" / "docs"
    other.mkdir(parents=True)
    (other / "x.txt").write_text("x")
    put = ["documents", "put", str(other), "--collection", collection, "--sync", "--url", url]
    assert tercet(*put, TERCET_API_KEYS="secret").returncode == 0
    assert set(listed()) == {"bees.html#bees", "guide/tea.md#japan", "guide/tea.md#tea", "x.txt"}
    sync("--mark", "here")
    assert "x.txt" in listed()


def test_a_folder_of_the_same_name_at_another_place_changes_nothing(
    sync: Sync, listed: Listed, docs: Path, tercet: Run, url: str, collection: str, tmp_path: Path
) -> None:
    sync()
    moved = tmp_path / "moved" / "docs"
    moved.parent.mkdir()
    docs.rename(moved)
    (moved / "bees.html").unlink()
    put = ["documents", "put", str(moved), "--collection", collection, "--sync", "--url", url]
    refused = tercet(*put, "--split", "markdown", TERCET_API_KEYS="secret")
    assert (refused.returncode, "--mark docs" in refused.stderr) == (1, True)
    assert set(listed()) == {"bees.html#bees", "guide/tea.md#japan", "guide/tea.md#tea"}
    done = tercet(*put, "--split", "markdown", "--mark", "docs", TERCET_API_KEYS="secret")
    assert done.returncode == 0, done.stderr
    assert set(listed()) == {"guide/tea.md#japan", "guide/tea.md#tea"}


def test_the_working_directory_does_not_matter(
    sync: Sync, listed: Listed, docs: Path, tercet: Run, url: str, collection: str
) -> None:
    sync()
    (docs / "bees.html").unlink()
    put = ["documents", "put", "docs/guide/..", "--collection", collection, "--sync", "--url", url]
    done = tercet(*put, "--split", "markdown", TERCET_API_KEYS="secret")
    assert "removed bees.html" in done.stdout, done.stderr
    assert set(listed()) == {"guide/tea.md#japan", "guide/tea.md#tea"}


def test_documents_of_another_folder_are_not_replaced(sync: Sync, listed: Listed, docs: Path) -> None:
    sync("--mark", "first")
    (docs / "new.txt").write_text("x")
    (docs / "guide" / "tea.md").write_text("# Tea\n\nCold.\n")
    done = sync("--mark", "second")
    assert done.returncode == 1
    assert "'guide/tea.md#tea' is of the folder 'first' already" in done.stdout
    assert f"1 document of {docs} is in collection" in done.stdout
    assert {id: each["metadata"][FOLDER] for id, each in listed().items()} == {
        "bees.html#bees": "first",
        "guide/tea.md#japan": "first",
        "guide/tea.md#tea": "first",
        "new.txt#1": "second",
    }


def test_a_file_put_in_part_is_put_again(
    sync: Sync, listed: Listed, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the command had ended between two requests of one file."""
    monkeypatch.setattr("tercet.cli.batches.BATCH_DOCUMENTS", 1)
    asked = Remote.ask
    puts = 0

    def ends(remote: Remote, method: str, path: str, **more: Any) -> Any:
        nonlocal puts
        puts += method == "PUT" and path.endswith("/documents")
        if puts == 2:
            raise UnreachableError("away")
        return asked(remote, method, path, **more)

    (docs / "bees.html").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Remote, "ask", ends)
        assert sync().returncode == 1
    assert len(listed()) == 1
    assert "put guide/tea.md: 2 documents, 1 of them encoded" in sync().stdout
    assert len(listed()) == 2


def test_a_file_is_whole_where_all_its_documents_have_its_version() -> None:
    assert StoredFile({"a", "b"}, {"h/2"}).is_whole("h")
    assert not StoredFile({"a"}, {"h/2"}).is_whole("h")
    assert not StoredFile({"a", "b"}, {"h/2", "g/2"}).is_whole("h")
    assert not StoredFile({"a", "b"}, {"g/2"}).is_whole("h")


def test_files_that_are_being_written_wait_and_a_folder_that_is_gone_empties_nothing(
    url: str, collection: str, listed: Listed, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.cli.watching.sync.SETTLED_SECONDS", 3600.0)  # however slow this test is
    said: list[str] = []
    settings = Settings(api_keys=[SecretStr("secret")])
    with Remote(url, settings) as remote, FileParser(2**20) as parser:
        with pytest.raises(RemoteError, match=collection):
            StoredFolder(remote, collection, FolderMark("docs")).files()
        remote.ask("PUT", f"/collections/{collection}", json={})
        mark = FolderMark("docs")
        files = FolderFiles(docs, mark, Reading(split=Split("markdown")), parser, None, {})
        sync = FolderSync(files, StoredFolder(remote, collection, mark), said.append)
        sync.run(settled=True)
        (docs / "new.txt").write_text("half")
        assert sync.run().unsettled
        assert "new.txt#1" not in listed()
        assert not sync.run(settled=True).unsettled
        assert "new.txt#1" in listed()
        taken = {"id": "new.txt#1", "text": "somebody else's"}
        remote.ask("PUT", f"/collections/{collection}/documents", json={"documents": [taken]})
        (docs / "new.txt").unlink()
        sync.run(settled=True)
        assert listed()["new.txt#1"]["text"] == "somebody else's"
        docs.rename(docs.with_name("away"))
        with pytest.raises(FileNotFoundError):
            sync.run(settled=True)
        assert len(listed()) == 4
