"""Which collection this is, whatever its name, and which of its positions were lost: `lineage.json`.

A copy goes on from another one where it has the same id, and every write that the other one has. A server
that lost its disk and made its collection anew has another id. A copy that was pulled in the place of a lost
one has the same id, and takes its next positions from far above: those in between were given to writes that
are lost, and are told as such for ever. The distance is random, so that of two recoveries of one snapshot
neither gives a position that the other one gave.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tercet.index.catalog.buckets import Ranges, buckets_of, hashes_of, owned_in, ranges_from
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.files.directory import write_json_atomically
from tercet.models.representations import Bool

LINEAGE_FILE = "lineage.json"
GAP = 2**32  # positions that are left out at least, more than were ever given since a snapshot
MOST_FORMER = 100  # a follower that is further behind takes its folder for another collection
_ID = re.compile(r"[0-9a-z-]{1,80}")
_KEYS = {"id", "former", "lost"}
_PART_KEYS = {"collection", "number", "of"}
TAG_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ShardPart:
    """Which part of a collection over shards this one is. collection: an id that all parts have; number: of
    the shard, from 0; of: how many there are; buckets: of which it has the documents, None in a collection of
    an older release, whose shards are chosen by their number.
    """

    collection: str
    number: int
    of: int
    buckets: Ranges | None = None

    @property
    def record(self) -> dict[str, Any]:
        """It in JSON."""
        record: dict[str, Any] = {"collection": self.collection, "number": self.number, "of": self.of}
        return (
            record if self.buckets is None else {**record, "buckets": [list(each) for each in self.buckets]}
        )

    @property
    def tag(self) -> str:
        """What tells it from other parts of its collection."""
        place = json.dumps([self.number, self.of, self.buckets])
        return sha256(place.encode()).hexdigest()[:TAG_DIGITS]

    def holds(self, keys: Sequence[bytes]) -> Bool:
        """Whether documents that are placed by these keys, in UTF-8, are of its buckets: bool[N]."""
        if self.buckets is None:
            held: Bool = hashes_of(keys) % np.uint64(self.of) == self.number
        else:
            held = owned_in(self.buckets)[buckets_of(keys)]
        return held

    @staticmethod
    def of_record(record: Record) -> ShardPart:
        """Raises DamagedIndexError."""
        has_buckets = "buckets" in record.values
        record.require_keys(_PART_KEYS | {"buckets"} if has_buckets else _PART_KEYS)
        of = record.count("of", 1)
        try:
            buckets = ranges_from(record.values["buckets"]) if has_buckets else None
        except ValueError as error:
            raise record.damaged(str(error)) from error
        return ShardPart(record.text("collection", _ID), record.count("number", 0, of - 1), of, buckets)


@dataclass(frozen=True, slots=True)
class Lineage:
    """former: ids of collections that this one takes the place of, on purpose; lost: ranges of positions,
    those above the first number and below the second, that no write has here; part: of a collection over
    shards.
    """

    id: str
    former: tuple[str, ...] = ()
    lost: tuple[tuple[int, int], ...] = ()
    part: ShardPart | None = None

    @staticmethod
    def new(former: Iterable[str] = (), part: ShardPart | None = None) -> Lineage:
        """Of a collection that is made just now."""
        return Lineage(secrets.token_hex(16), tuple(former), part=part)

    def is_lost(self, position: int) -> bool:
        """Whether the write that was given this position was lost."""
        return any(after < position < until for after, until in self.lost)

    def last_write(self, position: int) -> int:
        """The position of the last write of a copy that is at this one: a lower one where it was pulled, and
        nothing was written since.
        """
        return next((after for after, until in self.lost if until == position), position)

    def resumed(self, position: int, given: int) -> tuple[Lineage, int]:
        """The lineage of a copy that goes on after a position, and the position which it is at. given: the
        highest that is known to have been given.
        """
        until = max(position, given) + GAP + secrets.randbelow(GAP)
        return replace(self, lost=(*self.lost, (position, until))), until

    def in_place_of(self, other: Lineage) -> Lineage:
        """One that takes the place of another on purpose; where they have the same id, with a new one."""
        former = dict.fromkeys((*other.former, *self.former, other.id))
        id = Lineage.new().id if other.id == self.id else self.id
        return replace(self, id=id, former=tuple(former)[-MOST_FORMER:])

    @property
    def record(self) -> dict[str, Any]:
        """It in JSON."""
        part = {} if self.part is None else {"part": self.part.record}
        return {
            "id": self.id,
            "former": list(self.former),
            "lost": [list(each) for each in self.lost],
            **part,
        }

    @staticmethod
    def of_record(record: Record) -> Lineage:
        """The lineage of such a record. Raises DamagedIndexError, naming the file that it comes from."""
        has_part = "part" in record.values
        record.require_keys(_KEYS | {"part"} if has_part else _KEYS)
        former, lost = record.values["former"], record.values["lost"]
        if not isinstance(former, list) or not all(
            isinstance(id, str) and _ID.fullmatch(id) for id in former
        ):
            raise record.damaged("former holds no ids")
        if not isinstance(lost, list) or not all(_is_range(each) for each in lost):
            raise record.damaged("lost holds no ranges of positions")
        part = ShardPart.of_record(record.part("part")) if has_part else None
        return Lineage(
            record.text("id", _ID), tuple(former), tuple((after, until) for after, until in lost), part
        )

    def write(self, folder: Path) -> None:
        """Writes it into a collection's folder."""
        write_json_atomically(
            folder / LINEAGE_FILE,
            {"format_version": FORMAT_VERSION, "lineage": self.record, "sha256": self._digest},
        )

    @property
    def _digest(self) -> str:
        """Of the record: an id that was altered would be that of another collection."""
        return sha256(json.dumps(self.record, sort_keys=True).encode()).hexdigest()

    @staticmethod
    def read(folder: Path) -> Lineage | None:
        """That of a collection's folder, None in one of an older release. Raises DamagedIndexError."""
        try:
            record = Record.read(folder / LINEAGE_FILE)
        except FileNotFoundError:
            return None
        record.require_version()
        record.require_keys(("format_version", "lineage", "sha256"))
        lineage = Lineage.of_record(record.part("lineage"))
        if record.values["sha256"] != lineage._digest:
            raise record.damaged("its lineage does not have the checksum it was written with")
        return lineage


def goes_on(lineage: Lineage | None, position: int, former: Lineage | None, reached: int) -> bool:
    """Whether a copy at a position has all that another one has, which is at `reached`, or takes its place on
    purpose. None: of an older release, of which positions alone tell.
    """
    if former is None:
        return reached <= position
    if lineage is None:
        return False
    is_same = former.id == lineage.id and reached <= position and not lineage.is_lost(reached)
    return is_same or former.id in lineage.former


def _is_range(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(number) is int for number in value)
        and 0 <= value[0] < value[1]
    )
