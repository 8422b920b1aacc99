"""What the router keeps of a collection between requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tercet.cluster.router.statistics import Statistics
from tercet.index.sparse.term_totals import TermTotals
from tercet.service.shard.description import ShardDescription


@dataclass(slots=True)
class KnownCollection:
    """A collection as its shards described it, and what they last told of its terms. tags: of each shard's
    description, None of one that was lost; described_by: the servers that gave them. is_stale: a shard has
    another description by now, or was lost; behind: servers that have another one than the shard.
    """

    name: str
    description: ShardDescription
    tags: Sequence[str | None]
    described_by: Sequence[str]
    is_stale: bool = False
    behind: set[str] = field(default_factory=set)
    statistics: Statistics = field(init=False)
    described: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        settings = self.description.settings
        totals = TermTotals([], settings.vocabulary_size) if settings.lexical == "idf" else None
        self.statistics = Statistics(len(self.tags), totals)

    @property
    def goes_by_terms(self) -> bool:
        """Whether scores depend on what all shards know of terms or words."""
        settings = self.description.settings
        return settings.bm25 or settings.lexical == "idf"

    @property
    def age_seconds(self) -> float:
        """How long ago shards described it."""
        return time.monotonic() - self.described

    def stays(self, later: KnownCollection, writers: Sequence[str]) -> bool:
        """Whether it counts on, beside a later one: it is the same, or where not, the later one comes from a
        replica and this from the writing server.
        """
        return not self.is_stale and all(
            tag == other or by == writer != later_by
            for tag, other, by, later_by, writer in zip(
                self.tags, later.tags, self.described_by, later.described_by, writers, strict=True
            )
        )

    def is_another(self, server: str, shard: int) -> None:
        """A server of a shard has another description. A replica is asked after all others then, until the
        collection is described again.
        """
        if server == self.described_by[shard]:
            self.is_stale = True
        else:
            self.behind.add(server)
