"""`tercet documents put FOLDER --watch` and `--sync`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from tercet.cli.encoders import tokenizer_of
from tercet.cli.output import console, counted, one_line
from tercet.cli.stores.remote import Remote, RemoteError, path_of
from tercet.cli.watching.files import FolderFiles
from tercet.cli.watching.mark import mark_of
from tercet.cli.watching.stored_folder import StoredFolder
from tercet.cli.watching.sync import FolderSync
from tercet.cli.watching.watch import follow, require_watchfiles
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.split import SOURCE_FIELD
from tercet.ingest.sources.lines import MAX_LINE_BYTES
from tercet.ingest.texts.parser import FileParser

if TYPE_CHECKING:
    from tercet.ingest.sources.reading import Reading
    from tercet.service.settings.settings import Settings


def keep_like(
    url: str,
    settings: Settings,
    folder: Path,
    collection: str,
    reading: Reading,
    mark: str | None,
    on_error: Literal["stop", "skip"],
    *,
    watch: bool,
) -> None:
    """Makes a server's collection hold what a folder of files of text holds: once, or until interrupted.

    mark: the name that tells the folder from others, by default its own and its place.

    Raises SourceError for what is no folder, where the collection has a folder of that name that may be
    another one, and, where it is done once and `on_error` is "stop", for files that cannot be read;
    RemoteError where the server refuses.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder}: no folder; --watch and --sync take a folder of files of text")
    if watch:
        require_watchfiles()
    root = folder.resolve()
    with (
        _interruptible(watch=watch) as interrupted,
        Remote(url, settings) as remote,
        FileParser(MAX_LINE_BYTES) as parser,
    ):
        described = _collection(remote, collection)
        tokenizer = tokenizer_of(described["model"]) if reading.split else None
        known_by = mark_of(root, mark)
        files = FolderFiles(root, known_by, reading, parser, tokenizer, described["fields"])
        sync = FolderSync(files, StoredFolder(remote, collection, known_by), _say)
        if watch:
            follow(sync, root, _say, interrupted)
        report = sync.run(settled=True)
    are = "is" if sync.documents == 1 else "are"
    _say(f"{counted(sync.documents, 'document')} of {folder} {are} in collection {collection!r}.")
    if report.failed and on_error == "stop":
        raise SourceError(
            f"{counted(report.failed, 'file')} could not be read, and stay as before: correct them, or "
            "leave them out (--on-error skip)"
        )


def _collection(remote: Remote, name: str) -> dict[str, Any]:
    """What the server says of a collection, which it makes where it is missing."""
    try:
        return remote.describe(name)
    except RemoteError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        remote.ask("PUT", path_of(name), json={"fields": SOURCE_FIELD})
        _say(f"collection {name!r} is new")
        return remote.describe(name)


@contextmanager
def _interruptible(*, watch: bool) -> Iterator[threading.Event]:
    """SIGTERM ends it as Ctrl-C does; for what would go on without end that is no failure.

    The event is set as well, since an exception is lost where it comes while an object is taken away.
    """
    interrupted = threading.Event()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield interrupted
    except KeyboardInterrupt:
        if not watch:
            raise
        raise SystemExit(0) from None
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _say(line: str) -> None:
    console().print(one_line(line), markup=False, soft_wrap=True)
