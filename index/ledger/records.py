"""What goes into a ledger and comes out of it: entries, and the answers that repeated requests get again."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import shown

KEY_BYTES = 255
NOTHING = "nothing"  # the kind of an entry that takes a position alone
PAYLOAD_BYTES = 512 * 2**20  # SQLite's own limit of a row is 10⁹ bytes

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's name for one request, with the answer that a repeat of it gets.

    key: 1 to 255 bytes of UTF-8. request_sha256: of the request, as 64 hexadecimal digits, which tells a
    repeat from another request under the same key. answer: JSON; it need not hold the position, which is
    stored beside it. Raises InvalidDocumentError for another key, ValueError for another digest.
    """

    key: str
    request_sha256: str
    answer: str

    def __post_init__(self) -> None:
        size = len(self.key.encode("utf-8", "surrogatepass"))
        if not 1 <= size <= KEY_BYTES:
            raise InvalidDocumentError(
                f"the idempotency key has {size} bytes; use 1 to {KEY_BYTES} bytes of UTF-8"
            )
        if size != len(self.key.encode("utf-8", "ignore")):
            raise InvalidDocumentError("the idempotency key has a lone surrogate; use valid UTF-8")
        if not _SHA256.fullmatch(self.request_sha256):
            raise ValueError(f"request_sha256 is {shown(self.request_sha256)}; it has 64 hexadecimal digits")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One accepted operation. The ledger knows nothing of documents: the payload is any bytes.

    kind: a short word that tells the reader what the payload is. key: on the way in only; `entries` leaves it
    out, and `answer_of` finds what it stored. crc32: of both, taken where the entry is made, which
    may be in another thread than the one that writes the ledger. Raises InvalidDocumentError for a payload
    over 512 MiB.
    """

    kind: str
    payload: bytes
    key: IdempotencyKey | None = None
    crc32: int = -1

    def __post_init__(self) -> None:
        if len(self.payload) > PAYLOAD_BYTES:
            raise InvalidDocumentError(
                f"one write takes {len(self.payload)} bytes in the ledger; the limit is {PAYLOAD_BYTES}: "
                "write fewer documents at a time"
            )
        if self.crc32 < 0:
            object.__setattr__(self, "crc32", checksum_of(self.kind, self.payload))


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What was answered under an idempotency key, and the position of the entry that it came with."""

    request_sha256: str
    answer: str
    position: int


def checksum_of(kind: str, payload: bytes) -> int:
    """CRC-32 of an entry: SQLite's pages have none."""
    return zlib.crc32(payload, zlib.crc32(kind.encode()))
