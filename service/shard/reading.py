"""What a shard answers of its documents beside searches: counts of values, explanations, documents as
queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.index.snapshot import Snapshot
from tercet.index.sparse.idf import GivenIdf
from tercet.service.collections.registry import SearchTarget
from tercet.service.shard.examples import example_arrays, stored_arrays
from tercet.service.shard.explained import explanation_arrays
from tercet.service.shard.messages import Array, Message, asked, message, request_of
from tercet.service.shard.pins import Pins, is_of_content
from tercet.service.shard.queries import boosts_of, filter_of, representations_of, texts, words_of

MOST_EXAMPLE_TOKENS = 512
VERSION_DIGITS = 12  # of a state, as people read it


@dataclass(frozen=True, slots=True)
class ShardReading:
    """The same snapshots as searches go by. Safe to use from several threads; all raise InvalidRequestError,
    InvalidQueryError and ShardStateGoneError.
    """

    pins: Pins

    def at(self, state: str | None, target: SearchTarget[Snapshot]) -> tuple[Snapshot, str]:
        """The snapshot of a state, by default the current one, and its state. Raises ShardStateGoneError."""
        if state is None:
            return target.snapshot, self.pins.pin(target.snapshot)
        return self.pins.snapshot(state), state

    def facets(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """All values of some fields, counted."""
        values = request_of(body).values
        with asked():
            fields = texts(values["fields"])
            filter = filter_of(values)
        snapshot, state = self.at(state, target)
        found = snapshot.field_counts(fields, filter)
        arrays: dict[str, Any] = {}
        for number, field in enumerate(fields):
            arrays |= {f"values{number}": found[field].values, f"counts{number}": found[field].counts}
        missing = [found[field].missing for field in fields]
        return message({**described(snapshot, state), "missing": missing}, arrays)

    def explanations(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """Why documents of this shard have their scores."""
        found = request_of(body)
        with asked():
            ids, collections = _named(found)
            query, words = representations_of(found), words_of(found)
            idf = None
            if "idf" in found.arrays:
                token_ids = found.array("token_ids", np.int32, None)
                idf = GivenIdf(token_ids, found.array("idf", np.float64, len(token_ids)))
        snapshot, state = self.at(state, target)
        explained = snapshot.shard_explanations(query, ids, collections, idf, words)
        return message(described(snapshot, state), explanation_arrays(explained))

    def boosts(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """What boosts add to documents of this shard, and how many encoded texts each document has."""
        found = request_of(body)
        with asked():
            ids, collections = _named(found)
            boosts = boosts_of(found.values)
        snapshot, state = self.at(state, target)
        return message(
            {**described(snapshot, state), "encodings": snapshot.encodings_of(ids, collections)},
            {"added": snapshot.boosts_of(ids, boosts, collections)},
        )

    def examples(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """Stored documents as examples of what a query wants, or one, or its window, as a query by itself."""
        found = request_of(body)
        with asked():
            ids, collections = _named(found)
            window, most_tokens = found.values["window"], int(found.values["most_tokens"])
        snapshot, state = self.at(state, target)
        arrays: dict[str, Array | Any | None]
        if window is None:
            arrays = example_arrays(snapshot.examples(ids, min(most_tokens, MOST_EXAMPLE_TOKENS)))
        else:
            with asked():
                (id,) = ids
                collection = None if collections is None else collections[0]
                window = int(window)
            arrays = stored_arrays(snapshot.stored_query(id, window, collection))
        return message(described(snapshot, state), arrays)


def described(snapshot: Snapshot, state: str) -> dict[str, Any]:
    """What each answer says of the snapshot that it is of. Its version is named alike wherever it is."""
    version = state[:VERSION_DIGITS] if is_of_content(state) else snapshot.version
    return {"state": state, "version": version, "documents": snapshot.documents}


def _named(found: Message) -> tuple[list[str], Sequence[str | None] | None]:
    """The ids of some documents, and their collections where these are several."""
    ids, collections = texts(found.values["ids"]), found.values["collections"]
    if collections is not None and len(collections) != len(ids):
        raise ValueError("each document is of a collection")
    return ids, collections
