"""Which shard holds a document: its bucket says, and who owns that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tercet.index.catalog.buckets import BUCKETS, Ranges, buckets_of, hashes_of, owned_in, ranges_of
from tercet.index.catalog.lineage import ShardPart
from tercet.models.representations import Int64


@dataclass(frozen=True)
class Placement:
    """The documents of so many shards, by the keys that they are placed by, which are ids or partitions.
    owners: the shard of each bucket, BUCKETS of them; None in a map of an older release, where the hash of a
    key modulo the number of shards is its shard.
    """

    shards: int
    owners: tuple[int, ...] | None

    @staticmethod
    def evenly(shards: int) -> Placement:
        """The one that a collection begins with: each shard has as many buckets that follow each other, as
        far as that goes.
        """
        return Placement(shards, tuple(bucket * shards // BUCKETS for bucket in range(BUCKETS)))

    @staticmethod
    def of_ranges(buckets: Sequence[Ranges]) -> Placement:
        """With these of each shard. Raises ValueError where a bucket has no owner, or several."""
        owned = np.stack([owned_in(ranges) for ranges in buckets])
        if not (owned.sum(axis=0) == 1).all():
            raise ValueError(f"each of {BUCKETS} buckets is of one shard")
        return Placement(len(buckets), tuple(owned.argmax(axis=0).tolist()))

    def shard_of(self, key: str) -> int:
        """The shard of a key: 0 up to `shards` - 1."""
        return int(self.shards_of([key])[0])

    def shards_of(self, keys: Sequence[str]) -> Int64:
        """The shard of each of many keys: int64[N]."""
        encoded = (key.encode(errors="surrogatepass") for key in keys)
        if self.owners is None:
            return (hashes_of(encoded) % np.uint64(self.shards)).astype(np.int64)
        return self._owners[buckets_of(encoded)]

    def part(self, collection: str, number: int) -> ShardPart:
        """What a shard is told that it is. collection: the id that all parts have."""
        return ShardPart(collection, number, self.shards, self.buckets(number))

    def buckets(self, number: int) -> Ranges | None:
        """Those of a shard; None where there are no buckets."""
        return None if self.owners is None else ranges_of(self._owners == number)

    def moved_to(self, goes_on: Sequence[int | None]) -> Placement:
        """Over other shards, each of which goes on as one of these, or is new, None.

        Each gets as many buckets, as far as that goes, and no bucket moves that need not: what is too much is
        taken from each shard's last ones, and given out in order.
        """
        shards = len(goes_on)
        if self.owners is None or not any(each is not None for each in goes_on):
            return Placement.evenly(shards)
        kept = [np.flatnonzero(self._owners == (-1 if each is None else each)) for each in goes_on]
        sizes = np.full(shards, BUCKETS // shards)
        larger = sorted(range(shards), key=lambda number: (-len(kept[number]), number))
        sizes[larger[: BUCKETS % shards]] += 1
        owners = np.full(BUCKETS, -1, np.int64)
        for number, (buckets, size) in enumerate(zip(kept, sizes, strict=True)):
            owners[buckets[:size]] = number
        lacking = [size - min(size, len(buckets)) for buckets, size in zip(kept, sizes, strict=True)]
        owners[owners < 0] = np.repeat(np.arange(shards), lacking)
        return Placement(shards, tuple(owners.tolist()))

    @cached_property
    def _owners(self) -> Int64:
        return np.array(self.owners, np.int64)
