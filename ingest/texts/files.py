"""Which files of a folder are text, and what each of them is called.

Left out are hidden files and folders, folders of what other programs bring, symbolic links that lead out of
the folder or to a folder, and tables.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tercet.ingest.sources.formats import KINDS

MARKDOWN = KINDS["markdown"].endings
ENDINGS = tuple(ending for kind in KINDS.values() if kind.text for ending in kind.endings)
TABLES = tuple(ending for kind in KINDS.values() if kind.lines for ending in kind.endings)
_OF_FOLDER = ("index", "_index", "readme")  # of files that are a folder's page
# What lies beside data and tells of it.
ABOUT = ("readme", "license", "licence", "copying", "notice", "changelog", "citation")
BROUGHT_FOLDERS = ("node_modules", "bower_components", "__pycache__", "site-packages", "venv")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file or folder, what it is called in its source, and why it is left out, None where it is not.

    name: its path below the source with slashes, in NFC; unlisted: whether it is a folder of which the system
    does not tell what is in it; read_as: an ending, whatever its name ends in.
    """

    path: Path
    name: str
    left_out: str | None = None
    unlisted: bool = False
    read_as: str | None = None

    @property
    def title(self) -> str:
        """What its name says in words: `tea-for_two.md` is `tea for two`, `guide/tea/index.md` is `tea`."""
        path = PurePosixPath(self.name)
        stem = path.parent.name if path.stem.lower() in _OF_FOLDER and path.parent.name else path.stem
        return " ".join(stem.replace("-", " ").replace("_", " ").split()) or stem

    @property
    def ending(self) -> str:
        """The ending of the file's name, in small letters, or that which it is read as."""
        return self.read_as or self.path.suffix.lower()


def is_text_file(path: Path) -> bool:
    """Whether a file's name ends as those of text do."""
    return path.suffix.lower() in ENDINGS


def text_files(source: Path, read_as: str | None = None) -> Iterator[TextFile]:
    """The files of text of a folder, in order of name, then of those in it; or the source, if it is one.

    read_as: the ending that all files are read as, whatever their names end in.
    """
    if not source.is_dir():
        yield TextFile(source, _named(source.name), read_as=read_as)
        return
    root = source.resolve()
    waiting = [source]
    while waiting:
        folder = waiting.pop()
        inside = []
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            yield TextFile(folder, _below(folder, source), str(error.strerror), unlisted=True)
            continue
        for entry in entries:
            file = _of(entry, source, root)
            if file is None:
                inside.append(entry)
            elif read_as is not None:
                yield replace(file, read_as=read_as)
            elif file.left_out is not None or is_text_file(entry):
                yield file
        waiting += reversed(inside)


def has_text_files(source: Path, *, beside_data: bool = False) -> bool:
    """Whether a folder, or one of those in it, holds a file of text that is not left out.

    beside_data: and that does not merely tell of data beside it.
    """
    return any(
        file.left_out is None and not (beside_data and file.path.stem.lower().startswith(ABOUT))
        for file in text_files(source)
    )


def _of(entry: Path, source: Path, root: Path) -> TextFile | None:
    """The file at an entry of a folder; None for a folder that is to be looked into."""
    name = _below(entry, source)
    folder, text = entry.is_dir(), is_text_file(entry)
    if entry.name.startswith("."):
        return TextFile(entry, name, "hidden" if folder or text else None)
    if entry.is_symlink():
        if folder:
            return TextFile(entry, name, "a symbolic link to a folder")
        if text and not entry.resolve().is_relative_to(root):
            return TextFile(entry, name, "a symbolic link out of the folder")
    elif folder:
        brought = entry.name in BROUGHT_FOLDERS
        return TextFile(entry, name, "a folder that other programs bring") if brought else None
    if entry.suffix.lower() in TABLES:
        return TextFile(entry, name, "a table, which is a source of its own")
    return TextFile(entry, name, None if entry.is_file() or not text else "no plain file")


def _below(entry: Path, source: Path) -> str:
    return _named(entry.relative_to(source).as_posix())


def _named(name: str) -> str:
    return unicodedata.normalize("NFC", name.replace(os.sep, "/"))
