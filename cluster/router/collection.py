"""What the router keeps of a collection between requests, and how one request sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cluster.router.asking import Asking, given
from cluster.router.terms import KnownTerms, Told
from index.bm25.query import WordCounts
from index.sparse.term_totals import TermTotals
from service.exceptions import ShardFailedError
from service.shard.description import ShardDescription
from service.shard.messages import Message, message

Answer = TypeVar("Answer")


@dataclass(slots=True)
class KnownCollection:
    """A collection as its shards described it, and what they last told of its terms. tags: of each shard's
    description, None of one that was lost. is_stale: a shard has another description by now, or was lost.
    """

    name: str
    description: ShardDescription
    tags: Sequence[str | None]
    is_stale: bool = False
    terms: KnownTerms = field(init=False)
    described: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.terms = self.nothing()

    @property
    def age_seconds(self) -> float:
        """How long ago shards described it."""
        return time.monotonic() - self.described

    def nothing(self) -> KnownTerms:
        """What is known of terms before any shard was heard."""
        settings = self.description.settings
        totals = TermTotals([], settings.vocabulary_size) if settings.lexical == "idf" else None
        return KnownTerms.nothing(len(self.tags), totals)


class View:
    """A collection as one request sees it: all that it asks is of the same states of the shards, once those
    are fixed. Safe to use from several threads.
    """

    def __init__(self, known: KnownCollection, asking: Asking) -> None:
        self.known = known
        self.asking = asking
        self._fixing = threading.Lock()
        self._fixed: KnownTerms | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the states are fixed."""
        return self._fixed is not None

    @property
    def terms(self) -> KnownTerms:
        """What is known at the states, or where they are not fixed yet, what was told last."""
        return self._fixed or self.known.terms

    def is_pinned(self, terms: KnownTerms) -> bool:
        """Whether the states of these are the fixed ones."""
        return terms is self._fixed

    def has_heard(self, terms: KnownTerms) -> bool:
        """Whether these tell of every shard that is not lost."""
        return all(
            state is not None or self.asking.is_lost(shard) for shard, state in enumerate(terms.states)
        )

    def fix(self, told: Sequence[Told | None], began: KnownTerms) -> KnownTerms:
        """Fixes the states at what shards told of themselves, where they are not fixed yet.

        began: what was known when they were asked.
        """
        with self._fixing:
            if self._fixed is None:
                later = began.after(told) or self._anew(
                    [None if each is None else each.state for each in told]
                )
                self._fixed = self.known.terms = later
            return self._fixed

    def tell(self, words: Sequence[str] | None = None) -> tuple[KnownTerms, WordCounts | None]:
        """What is known once all shards were asked for what is not, and what they know of some words; fixes
        the states.
        """
        began = self.terms
        told = self._told(began.states if self.is_pinned(began) else None, began.states, words)
        terms = self.fix(told, began)
        heard = [each for each in told if each is not None]
        if any(terms.states[shard] != each.state for shard, each in enumerate(told) if each is not None):
            return self.tell(words)  # others fixed them meanwhile
        counts = [each.words for each in heard if each.words is not None]
        if words is None or not counts:
            return terms, None
        together = WordCounts.together(counts)
        if len(counts) == len(self.asking):
            terms.words.keep(words, together)
        return terms, together

    def read(
        self,
        operation: str,
        bodies: Sequence[bytes | None],
        read: Callable[[int, Message], Answer],
    ) -> list[Answer | None]:
        """What shards answer that have a body, all at the states that are fixed, or that are by this."""
        if not self.is_fixed:
            self.tell()
        queries = [given({"state": state}) for state in self.terms.states]
        return self.asking.ask(operation, bodies, read, queries)

    def _anew(self, states: Sequence[str | None]) -> KnownTerms:
        """What is known once all shards have told everything, those that have a state here at that."""
        nothing = self.known.nothing()
        later = nothing.after(self._told(states, nothing.states, None))
        if later is None:
            raise ShardFailedError(
                f"a shard of {self.known.name!r} tells what changed, and was asked for everything",
                self.known.name,
            )
        return later

    def _told(
        self,
        states: Sequence[str | None] | None,
        known: Sequence[str | None],
        words: Sequence[str] | None,
    ) -> list[Told | None]:
        size, count = self.known.description.settings.vocabulary_size, len(words or ())

        def read(_shard: int, found: Message) -> Told:
            return Told.read(found, size, count)

        return self.asking.ask(
            "statistics",
            [message({"known": state, "words": words}, {}) for state in known],
            read,
            None if states is None else [given({"state": state}) for state in states],
        )
