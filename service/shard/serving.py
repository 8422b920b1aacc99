"""What a shard answers to a router: bodies to bodies, in threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Int64
from tercet.service.collections.registry import SearchTarget
from tercet.service.shard.counts import CountChange, ToldCounts
from tercet.service.shard.description import description_message, tag_of
from tercet.service.shard.found import hit_arrays, hit_values, part_arrays, proposal_arrays
from tercet.service.shard.messages import Array, asked, message, request_of
from tercet.service.shard.pins import BegunSearch, Pins
from tercet.service.shard.queries import query_of, texts
from tercet.service.shard.reading import ShardReading, described

MOST_WANTED = 2**31
CONTENT_BYTES = 16 << 20  # of one answer


class ShardServing:
    """A server as a shard: what it keeps for routers, and its answers. Safe to use from several threads."""

    def __init__(self) -> None:
        self._pins = Pins()
        self.reading = ShardReading(self._pins)
        self._told = ToldCounts()
        self._tags: dict[str, _Tagged] = {}

    def description(self, target: SearchTarget[Snapshot]) -> bytes:
        """A collection's settings, and what is stored for searches."""
        return description_message(target.snapshot.settings, target.defaults, target.effort)

    def candidates(
        self,
        name: str,
        target: SearchTarget[Snapshot],
        body: bytes,
        tag: str | None,
        state: str | None,
        known: str | None,
        *,
        pinned: bool,
    ) -> bytes:
        """What this shard proposes for a query; or what the router does not know yet: that settings changed,
        or what documents did.

        tag: of the description that the router knows; state: by which the query was made, None where it does
        not matter; known: the last one that this server told it; pinned: another will not do.
        Raises InvalidRequestError, InvalidQueryError, or ShardStateGoneError for a state that is asked for.
        """
        found = request_of(body)
        with asked():
            query = query_of(found)
        if tag not in (None, self._tag(name, target)):
            return message({"changed": True}, {})
        if pinned and state is not None:
            snapshot = self._pins.snapshot(state)
        else:
            snapshot = target.snapshot
            current = self._pins.pin(snapshot)
            if state not in (None, current):
                return self._statistics(name, snapshot, current, known, None)
            state = current
        search = snapshot.shard_search(query)
        proposals = search.propose()
        begun = self._pins.begin(BegunSearch(name, search))
        return message(
            {
                **described(snapshot, state),
                "search": begun,
                "count": len(proposals),
                "everything": proposals.is_everything,
            },
            proposal_arrays(proposals),
        )

    def hits(self, name: str, body: bytes) -> bytes:
        """The exact scores of what is left of a search's candidates. Raises as `candidates`."""
        found = request_of(body)
        values = found.values
        with asked():
            search_name = _text(values["search"]) or ""
            wanted, least, group_by = values["wanted"], values["least"], _text(values["group_by"])
            content_bytes = min(int(values["content_bytes"]), CONTENT_BYTES)
            if wanted is not None and not (isinstance(wanted, int) and 0 < wanted < MOST_WANTED):
                raise ValueError(f"wanted is {wanted!r:.40}")
            least = None if least is None else float(least)
        search = self._pins.search(search_name, name)
        with asked():
            numbers = None
            if "numbers" in found.arrays:
                numbers = _ascending(found.numbers("numbers", search.candidates))
        if wanted is not None:
            hits = search.best(numbers, wanted, least, content_bytes)
        else:
            hits = search.all(numbers, group_by)
        return message(hit_values(hits), hit_arrays(hits))

    def parts(self, name: str, body: bytes) -> bytes:
        """What hits alone are told of. Raises as `candidates`."""
        found = request_of(body)
        with asked():
            search_name = _text(found.values["search"]) or ""
            content_bytes = min(int(found.values["content_bytes"]), CONTENT_BYTES)
        search = self._pins.search(search_name, name)
        with asked():
            numbers = _ascending(found.numbers("numbers", search.candidates))
        return message({}, part_arrays(search.parts(numbers, content_bytes)))

    def statistics(
        self,
        name: str,
        target: SearchTarget[Snapshot],
        body: bytes,
        state: str | None,
        known: str | None = None,
    ) -> bytes:
        """How many documents have each term, as far as the router does not know; and the same of some words.

        state: that is asked for, by default the current one; known: of which the router knows. Raises as
        `candidates`.
        """
        found = request_of(body)
        with asked():
            words = None if found.values["words"] is None else texts(found.values["words"])
        snapshot, state = self.reading.at(state, target)
        return self._statistics(name, snapshot, state, known, words)

    def _statistics(
        self, name: str, snapshot: Snapshot, state: str, known: str | None, words: Sequence[str] | None
    ) -> bytes:
        values: dict[str, Any] = {**described(snapshot, state), "moved": True, "since": None}
        arrays: dict[str, Array | None] = {}
        if snapshot.idf is not None and known != state:
            change: CountChange = self._told.change(name, state, snapshot.idf, known)
            values["since"] = change.since
            arrays |= {"terms": change.terms, "frequencies": change.frequencies, "masses": change.masses}
        if words is not None:
            counts = snapshot.word_counts(words)
            values |= {"bm25_documents": counts.documents, "total_length": counts.total_length}
            arrays["word_frequencies"] = counts.frequencies
        return message(values, arrays)

    def _tag(self, name: str, target: SearchTarget[Snapshot]) -> str:
        """The tag of what a search goes by; made anew only where that is another than the last time."""
        known = self._tags.get(name)
        if known is None or not known.is_of(target):
            described = target.snapshot.settings, target.defaults, target.effort
            known = self._tags[name] = _Tagged(*described, tag_of(*described))
        return known.tag


@dataclass(frozen=True, slots=True)
class _Tagged:
    settings: CollectionSettings
    defaults: SearchDefaults | None
    effort: DenseEffort | None
    tag: str

    def is_of(self, target: SearchTarget[Snapshot]) -> bool:
        """Whether it is of these very settings, defaults and effort."""
        return (
            self.settings is target.snapshot.settings
            and self.defaults is target.defaults
            and self.effort is target.effort
        )


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _ascending(numbers: Int64) -> Int64:
    if (numbers[1:] <= numbers[:-1]).any():
        raise ValueError("numbers of candidates ascend, each once")
    return numbers
