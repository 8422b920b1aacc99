"""A folder that was copied is verified once, when it is first opened; one that was made here is not."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tercet.index import verified
from tercet.index.collection import Collection
from tercet.index.errors import DamagedIndexError
from tercet.index.live.collection import LiveCollection
from tercet.index.verified import note_verified
from tercet.index.verify import verify

OPENINGS: dict[str, Callable[[Collection], object]] = {
    "read": Collection.snapshot,
    "written": lambda collection: LiveCollection(collection).__enter__().__exit__(None, None, None),
}


@pytest.fixture(params=OPENINGS)
def open_it(request: pytest.FixtureRequest) -> Callable[[Collection], object]:
    return OPENINGS[request.param]


@pytest.fixture
def made(build: Any, three: Any, segments_of_files: None) -> Collection:
    collection: Collection = build(three)
    return collection


@pytest.fixture
def copied(made: Collection, tmp_path: Path) -> Collection:
    """A copy of the folder below another root."""
    shutil.copytree(made.layout.folder, tmp_path / "copied" / "demo")
    return Collection.open(tmp_path / "copied", "demo")


def flip_last_bit(collection: Collection) -> Path:
    """Of a file that opening only maps: token vectors."""
    [file] = collection.layout.segments.glob("*/token_codes.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.unlink()  # it may be a link of another folder's
    file.write_bytes(content)
    return file


def test_what_was_made_here_is_not_read_again(made: Collection, open_it: Any) -> None:
    flip_last_bit(made)
    open_it(made)


def test_a_damaged_copy_is_refused_until_it_is_mended(copied: Collection, open_it: Any) -> None:
    file = flip_last_bit(copied)
    for _ in range(2):
        with pytest.raises(DamagedIndexError, match="does not have the checksum") as error:
            open_it(copied)
        assert str(file) in str(error.value)
    flip_last_bit(copied)
    open_it(copied)


def test_a_sound_copy_is_verified_once(copied: Collection, open_it: Any) -> None:
    open_it(copied)
    flip_last_bit(copied)
    open_it(copied)


def test_a_copy_with_other_settings_is_refused(copied: Collection, open_it: Any) -> None:
    settings = copied.layout.settings
    settings.write_bytes(settings.read_bytes() + b"\n")
    with pytest.raises(DamagedIndexError, match=r"collection\.json was altered"):
        open_it(copied)


def test_verification_on_request_counts(copied: Collection) -> None:
    assert verify(copied.layout.folder.parent, "demo") == []
    flip_last_bit(copied)
    copied.snapshot()


def test_damage_that_was_found_on_request_counts(copied: Collection) -> None:
    flip_last_bit(copied)
    assert len(verify(copied.layout.folder.parent, "demo")) == 1
    with pytest.raises(DamagedIndexError):
        copied.snapshot()


def test_a_trusted_copy_is_opened_as_it_is(copied: Collection) -> None:
    flip_last_bit(copied)
    note_verified(copied.layout)
    copied.snapshot()


def test_where_nothing_can_be_written_each_opening_verifies(
    copied: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(verified, "write_atomically", refused)
    copied.snapshot()
    assert verify(copied.layout.folder.parent, "demo") == []
    flip_last_bit(copied)
    with pytest.raises(DamagedIndexError):
        copied.snapshot()


def test_a_copy_in_the_place_of_the_folder_is_verified(made: Collection, tmp_path: Path) -> None:
    """Whatever numbers the file system gives: those of what was removed, or of what is still there."""
    kept = tmp_path / "kept"
    shutil.copytree(made.layout.folder, kept)
    for anew in (True, False):
        if anew:
            shutil.rmtree(made.layout.folder)
        shutil.copytree(kept, made.layout.folder, dirs_exist_ok=True)
        flip_last_bit(made)
        with pytest.raises(DamagedIndexError):
            made.snapshot()


@pytest.mark.parametrize("content", [b"", b"1 1\n", b"\xff" * 100], ids=["empty", "other", "no number"])
def test_a_note_of_another_folder_counts_for_nothing(copied: Collection, content: bytes) -> None:
    copied.layout.verified.write_bytes(content)
    flip_last_bit(copied)
    with pytest.raises(DamagedIndexError):
        copied.snapshot()


def test_a_note_that_is_a_link_is_replaced_not_followed(copied: Collection, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    copied.layout.verified.unlink()
    copied.layout.verified.symlink_to(elsewhere)
    copied.snapshot()
    assert elsewhere.read_text() == "mine"
    assert not copied.layout.verified.is_symlink()
