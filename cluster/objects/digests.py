"""Checksums of what is sent, computed while it is read once: our own, and the one that a store gives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tercet.cluster.objects.errors import DamagedObjectError
from tercet.cluster.objects.store import Moved

PIECE_BYTES = 1 << 20
SMALLEST_PART_BYTES = 8 << 20
MOST_PARTS = 9_000  # S3 takes 10,000


def part_bytes(size_bytes: int) -> int:
    """Into parts of how many bytes an upload is divided."""
    return max(SMALLEST_PART_BYTES, -(-size_bytes // MOST_PARTS))


def pieces_of(path: Path, moved: Moved, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """The content of a file, told as it is taken."""
    with path.open("rb", buffering=0) as file:
        while piece := file.read(size):
            yield piece
            moved(len(piece))


class SentFile:
    """Reads a file part by part for an upload; afterwards it knows what the store should have.

    Raises DamagedObjectError at the end where the content is another than `sha256` says, so that the upload
    is not completed.
    """

    def __init__(self, path: Path, sha256: str, moved: Moved) -> None:
        self.size_bytes = path.stat().st_size
        self.part_bytes = part_bytes(self.size_bytes)
        self._path = path
        self._sha256 = sha256
        self._moved = moved
        self._parts: list[bytes] = []

    def parts(self) -> Iterator[bytes]:
        """Each of `part_bytes`, but for the last."""
        whole = hashlib.sha256()
        for part in pieces_of(self._path, self._moved, self.part_bytes):
            whole.update(part)
            self._parts.append(hashlib.md5(part, usedforsecurity=False).digest())
            yield part
        if whole.hexdigest() != self._sha256:
            raise DamagedObjectError(
                f"{self._path} is not as it was published (its SHA-256 is {whole.hexdigest()[:12]}…, not "
                f"{self._sha256[:12]}…): nothing was sent; verify the collection (tercet collection verify)"
            )

    @property
    def e_tags(self) -> tuple[str, str]:
        """What S3 calls an object that has just this content: sent at once, or in parts."""
        joined = b"".join(self._parts)
        whole = self._parts[0].hex() if len(self._parts) == 1 else ""
        return whole, f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(self._parts)}"


def verified(pieces: Iterable[bytes], sha256: str, where: str) -> Iterator[bytes]:
    """The pieces of an object. Raises DamagedObjectError, which says where it is, at the end of another."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.hexdigest() != sha256:
        raise damaged(where, digest.hexdigest(), sha256)


def require_sha256(path: Path, sha256: str, where: str) -> None:
    """Reads a file. Raises DamagedObjectError, which says where it comes from, for another content."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise damaged(where, found, sha256)


def damaged(where: str, found: str, expected: str) -> DamagedObjectError:
    """The error for an object whose content is another one."""
    return DamagedObjectError(
        f"{where} is damaged: its SHA-256 is {found[:12]}…, and {expected[:12]}… was published; push the "
        "collection again from where it is sound (tercet collection push --repair), or take an older snapshot"
    )
