"""What goes into a live collection beside documents, and what comes out of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from tercet.index.errors import IdempotencyMismatchError, WriteTooLargeError
from tercet.index.ledger.records import IdempotencyKey, StoredAnswer
from tercet.index.segments.rows import DocumentRows

WriteStage = Literal["log", "apply"]


@dataclass(frozen=True, slots=True)
class WriteKey:
    """A client's name for one write, of 1 to 255 bytes of UTF-8.

    request_sha256: of the request, 64 hexadecimal digits, which tells a repeat from another request.
    """

    key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Written:
    """What was acknowledged: the collection's position, and the documents that the operation concerned.

    tokens: those that were encoded for it, as its writer said.
    """

    position: int
    documents: int
    tokens: int = 0

    def stored_under(self, key: WriteKey) -> IdempotencyKey:
        """What the ledger keeps for a repeat. Raises InvalidDocumentError for a key that it cannot keep."""
        answer = json.dumps({"documents": self.documents, "tokens": self.tokens})
        return IdempotencyKey(key.key, key.request_sha256, answer)

    @staticmethod
    def of(stored: StoredAnswer, key: WriteKey) -> Written:
        """What a repeat is answered. Raises IdempotencyMismatchError where it is another request."""
        if stored.request_sha256 != key.request_sha256:
            raise IdempotencyMismatchError(
                f"the idempotency key {key.key!r:.80} was used for another write, at position "
                f"{stored.position}; give each write a key of its own"
            )
        return Written(stored.position, **json.loads(stored.answer))


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """How much memory holds of what no segment on the disk has, and how many segments of a size there may be.

    flush_documents, flush_bytes, flush_seconds: from so many on, or so long after the first of them was
    written, they are flushed. memory_documents, memory_bytes: with so many, writes wait for a flush, up to
    `wait_seconds`; then they are refused. merge_width: so many published segments of a size are joined.
    """

    flush_documents: int = 16_384
    flush_bytes: int = 2**28
    flush_seconds: float = 60.0
    memory_documents: int = 65_536
    memory_bytes: int = 2**30
    wait_seconds: float = 5.0
    merge_width: int = 8

    def require_fitting(self, rows: DocumentRows) -> None:
        """Raises WriteTooLargeError for documents of one write that memory cannot take at once."""
        if len(rows) > self.memory_documents or rows.total_bytes > self.memory_bytes:
            raise WriteTooLargeError(
                f"one write has {len(rows)} documents of {rows.total_bytes} bytes; the limits are "
                f"{self.memory_documents} documents and {self.memory_bytes} bytes: split it"
            )


class LiveObserver:
    """Is told what a live collection does; from its threads, so calls must be short. This one ignores it."""

    def wrote(self, stage: WriteStage, seconds: float) -> None:
        """A stage of a group of writes: `log` forces them to the disk, `apply` makes them searchable."""

    def flushed(self, documents: int, seconds: float) -> None:
        """A segment of so many documents was published."""

    def merged(self, documents: int, seconds: float) -> None:
        """Segments were joined into one of so many documents."""

    def failed(self, error: Exception) -> None:
        """A flush or merge in the background failed; it is tried again."""
