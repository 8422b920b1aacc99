"""A file that a client sends, kept below the data root for as long as it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath
from re import sub
from typing import BinaryIO, Self

from tercet.index.files.scratch import scratch_folder
from tercet.index.wording import shown
from tercet.ingest.sources.preview import Preview
from tercet.ingest.texts.files import is_text_file
from tercet.service.exceptions import InvalidRequestError, RequestTooLargeError
from tercet.service.load.pools import Pool

FOLDER = "imports"  # below the data root
BLOCK_BYTES = 1 << 20
NAME_BYTES = 255  # of a file or a folder
PATH_BYTES = 1024  # of all of them: a system's limit is for the data root's own path, too


class ReceivedFile:
    """A file in a folder of its own. source: what is read: the file, or for a text the folder, so that its
    documents' ids begin with its path.
    """

    def __init__(self, folder: Path, path: Path, file: BinaryIO, stack: ExitStack) -> None:
        """path: of the file, which is open to be written. stack: removes the folder."""
        self._folder = folder
        self._path = path
        self._file = file
        self._stack = stack
        self.source = folder if is_text_file(path) else path

    @classmethod
    def open(cls, data: Path, filename: str) -> Self:
        """An empty one. filename: as `checked_filename` gives it. Raises OSError, and leaves nothing then."""
        below = data / FOLDER
        below.mkdir(exist_ok=True)
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder(below))
            path = folder / filename
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("wb", buffering=0))
            return cls(folder, path, file, stack.pop_all())

    async def take(self, pieces: AsyncIterator[bytes], max_bytes: int, pool: Pool) -> None:
        """Writes what arrives. Raises RequestTooLargeError, OSError, and what the pieces raise."""
        waiting, size, waiting_bytes = list[bytes](), 0, 0
        async for piece in pieces:
            size += len(piece)
            if size > max_bytes:
                raise too_large(max_bytes)
            waiting.append(piece)
            waiting_bytes += len(piece)
            if waiting_bytes >= BLOCK_BYTES:
                await pool.run(_write, self._file, b"".join(waiting))
                waiting, waiting_bytes = [], 0
        await pool.run(_write, self._file, b"".join(waiting))

    def said(self, message: object) -> str:
        """A message of who read it, with paths as the client knows them, and parameters instead of flags."""
        named = str(message).replace(f"{self._folder}/", "").replace(str(self._folder), self._path.name)
        return sub(r"--([a-z]+(?:-[a-z]+)*)", lambda flag: flag[1].replace("-", "_"), named)

    def for_client(self, preview: Preview) -> Preview:
        """A preview, with messages as the client knows what they are about."""
        problem = None if preview.problem is None else self.said(preview.problem)
        return replace(preview, skips=tuple(map(self.said, preview.skips)), problem=problem)

    def close(self) -> None:
        """Removes it."""
        self._stack.close()


def checked_filename(filename: str) -> str:
    """A path that stays below the folder that it is put in. Raises InvalidRequestError for any other."""
    parts = PurePosixPath(filename).parts
    sizes = [len(part.encode("utf-8", "replace")) for part in parts]
    if not parts or filename.startswith("/") or ".." in parts or "\0" in filename:
        raise InvalidRequestError(
            f"filename is {shown(filename, 200)}; give a file's name, or its path below a folder", "filename"
        )
    if max(sizes) > NAME_BYTES or sum(sizes) > PATH_BYTES:
        raise InvalidRequestError(
            f"filename {filename[:40]!r} has {sum(sizes)} bytes; a name has at most {NAME_BYTES}, and a path "
            f"{PATH_BYTES}: give a shorter one",
            "filename",
        )
    return "/".join(parts)


def too_large(max_bytes: int) -> RequestTooLargeError:
    """What is said of a file that is larger."""
    return RequestTooLargeError(
        f"the file is larger than {max_bytes} bytes (setting max_import_bytes): send it in parts, or build "
        "the collection from it with a job"
    )


def _write(file: BinaryIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
