"""Makes a collection hold what a folder holds, and keeps in mind what was done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from tercet.cli.output import counted
from tercet.cli.stores.remote import RemoteError, UnreachableError
from tercet.cli.watching.files import FileDocuments, FolderFiles, version_of
from tercet.cli.watching.stored_folder import StoredFile, StoredFolder
from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import reason_of
from tercet.ingest.texts.files import TextFile, text_files

SETTLED_SECONDS = 0.3  # since a file was written last: before that, more of it may follow
# What is wrong with one file; after any other answer the rest would fail, too.
_FILE_ERRORS = {HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.BAD_REQUEST}

Signature = tuple[int, ...]


@dataclass(slots=True)
class SyncReport:
    """Files that were put, removed and could not be read; documents that were encoded and deleted; whether
    some files were still being written.
    """

    put: int = 0
    removed: int = 0
    failed: int = 0
    encoded: int = 0
    deleted: int = 0
    unsettled: bool = False


class FolderSync:
    """The files of a folder and what a collection holds of them.

    say: gets a line about each file that changes, or cannot be read.
    """

    def __init__(self, files: FolderFiles, folder: StoredFolder, say: Callable[[str], None]) -> None:
        self._files = files
        self._folder = folder
        self._say = say
        self._stored: dict[str, StoredFile] | None = None
        self._seen: dict[str, Signature] = {}

    @property
    def documents(self) -> int:
        """How many the collection holds of the folder."""
        return sum(len(file.ids) for file in (self._stored or {}).values())

    def forget(self) -> None:
        """What the collection holds is asked again, and every file looked at: the server was away."""
        self._stored, self._seen = None, {}

    def run(self, *, settled: bool = False) -> SyncReport:
        """Puts files that are new or have changed since the last time, and removes those that are gone.

        settled: whether files that were written a moment ago are whole. Raises RemoteError where the server
        cannot be reached, or refuses more than single files; SourceError where what it holds may be another
        folder's; FileNotFoundError where the folder is gone.
        """
        if not self._files.root.is_dir():
            raise FileNotFoundError(self._files.root)
        if self._stored is None:
            self._stored = self._folder.files()
        report = SyncReport()
        try:
            self._compare(self._stored, report, settled=settled)
        finally:
            self._files.rest()
        return report

    def _compare(self, stored: dict[str, StoredFile], report: SyncReport, *, settled: bool) -> None:
        files = list(text_files(self._files.root))
        for file in files:
            if file.left_out is None:
                self._look_at(file, stored, report, settled=settled)
        if self._files.root.is_dir():  # else it went away meanwhile, which empties it only seemingly
            self._remove_gone(files, stored, report)

    def _look_at(
        self, file: TextFile, stored: dict[str, StoredFile], report: SyncReport, *, settled: bool
    ) -> None:
        try:
            status = file.path.stat()
            signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if self._seen.get(file.name) == signature:
                return
            if not settled and 0 <= time.time() - max(status.st_mtime, status.st_ctime) < SETTLED_SECONDS:
                report.unsettled = True
                return
            hashed = self._files.hash_of(file)
            if file.name not in stored or not stored[file.name].is_whole(hashed):
                self._put(file, self._files.read(file, hashed), hashed, stored, report)
        except FileNotFoundError:
            return  # it is gone again
        except (InvalidDocumentError, OSError) as error:
            self._failed(file, error, report)
        except RemoteError as error:
            if isinstance(error, UnreachableError) or error.status not in _FILE_ERRORS:
                raise
            self._failed(file, error, report)
        self._seen[file.name] = signature

    def _failed(self, file: TextFile, error: Exception, report: SyncReport) -> None:
        """What there was of the file stays: it may be in the middle of being written."""
        report.failed += 1
        self._say(f"skipped {file.path}: {reason_of(error)}")

    def _put(
        self,
        file: TextFile,
        read: FileDocuments,
        hashed: str,
        stored: dict[str, StoredFile],
        report: SyncReport,
    ) -> None:
        ids = {document.id for document in read.documents}
        present = self._folder.present(ids)
        former = stored.setdefault(file.name, StoredFile())
        former.ids |= ids  # so that what was put of it is known, should it not come to an end
        former.versions.add("")
        encoded = self._folder.put(read.documents, present)
        deleted = self._folder.remove(former.ids - ids)
        stored[file.name] = StoredFile(ids, {version_of(hashed, len(ids))})
        if not ids:
            del stored[file.name]
        report.put += 1
        report.encoded += encoded
        report.deleted += deleted
        for skip in read.skips:
            self._say(f"skipped {skip}")
        self._say(
            f"put {file.name}: {counted(len(ids), 'document')}, {encoded} of them encoded, {deleted} deleted"
        )

    def _remove_gone(self, files: list[TextFile], stored: dict[str, StoredFile], report: SyncReport) -> None:
        there = {file.name for file in files if file.left_out is None}
        unlisted = tuple("" if file.name == "." else f"{file.name}/" for file in files if file.unlisted)
        for name in sorted(set(stored) - there):
            if not name.startswith(unlisted):
                deleted = self._folder.remove(stored[name].ids)
                del stored[name]
                report.removed += 1
                report.deleted += deleted
                self._say(f"removed {name}: {counted(deleted, 'document')} deleted")
        self._seen = {name: seen for name, seen in self._seen.items() if name in there}
