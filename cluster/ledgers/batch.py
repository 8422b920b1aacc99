"""One object of a ledger on a store: operations that were committed together, or a step of its writers.

A line of JSON that says what follows, the entries' payloads one after the other, and the SHA-256 of all that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from tercet.cluster.objects.errors import DamagedObjectError
from tercet.index.ledger.records import IdempotencyKey, LedgerEntry

FORMAT = 1
DIGEST_BYTES = 32

Kind = Literal["entries", "claim", "void", "deleted"]
"""Operations; a server became the writer; an append that failed has no effect; the collection was deleted."""


@dataclass(frozen=True, slots=True)
class Batch:
    """number: its place in the ledger, from 1; epoch: how many servers became the writer up to now; writer:
    the id of this one; first: the position of the first entry, or of the next operation where it has none.
    """

    number: int
    epoch: int
    writer: str
    kind: Kind
    first: int
    entries: Sequence[LedgerEntry] = ()

    @property
    def last(self) -> int:
        """The position of the last operation so far."""
        return self.first + len(self.entries) - 1

    @property
    def content(self) -> bytes:
        """The bytes of its object."""
        header = {
            "format": FORMAT,
            "number": self.number,
            "epoch": self.epoch,
            "writer": self.writer,
            "kind": self.kind,
            "first": self.first,
            "entries": [_described(entry) for entry in self.entries],
        }
        said = json.dumps(header, ensure_ascii=False).encode() + b"\n"
        content = b"".join([said, *(entry.payload for entry in self.entries)])
        return content + sha256(content).digest()

    @staticmethod
    def of_content(content: bytes, number: int, where: str) -> Batch:
        """That of an object's bytes. Raises DamagedObjectError, which says where it is."""
        said, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
        if sha256(said).digest() != digest:
            raise DamagedObjectError(
                f"{where} does not have the checksum that it was written with, and may have held "
                "acknowledged writes: restore that object (an older version of it, or a copy of the store)"
            )
        start = said.index(b"\n") + 1
        header = json.loads(said[:start])
        if header["format"] != FORMAT or header["number"] != number:
            raise DamagedObjectError(
                f"{where} is batch {header['number']} in format {header['format']}, and not batch {number} "
                f"in format {FORMAT}; use the release that wrote it, or restore that object"
            )
        entries = []
        for described in header["entries"]:
            end = start + described["bytes"]
            entries.append(_entry(described, said[start:end]))
            start = end
        named = {name: header[name] for name in ("epoch", "writer", "kind", "first")}
        return Batch(number, **named, entries=tuple(entries))


def _described(entry: LedgerEntry) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": entry.kind, "bytes": len(entry.payload), "crc32": entry.crc32}
    if entry.key is not None:
        said["key"] = [entry.key.key, entry.key.request_sha256, entry.key.answer]
    return said


def _entry(described: dict[str, Any], payload: bytes) -> LedgerEntry:
    key = IdempotencyKey(*described["key"]) if "key" in described else None
    return LedgerEntry(described["kind"], payload, key, described["crc32"])


def entries_after(batches: Sequence[Batch], position: int, where: str) -> list[LedgerEntry]:
    """The operations after a position, in order. Raises DamagedObjectError where some are missing."""
    following, entries = position + 1, []
    for batch in batches:
        for number, entry in enumerate(batch.entries, batch.first):
            if number > following:
                raise DamagedObjectError(
                    f"{where}: operations {following} to {number - 1} are missing; restore these objects, or "
                    "begin with a newer snapshot"
                )
            if number == following:
                entries.append(entry)
                following += 1
    return entries
