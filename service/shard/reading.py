"""What a shard answers of its documents beside searches: counts of values, explanations, documents as
queries.
"""

from __future__ import annotations

from dataclasses import dataclass

from tercet.index.snapshot import Snapshot
from tercet.index.sparse.idf import GivenIdf
from tercet.service.collections.readable import SearchTarget
from tercet.service.exceptions import InvalidRequestError
from tercet.service.shard.codec import decode_request, encode
from tercet.service.shard.conversions import text_bytes
from tercet.service.shard.pins import Pins, is_of_content
from tercet.service.shard.records import (
    Boosts,
    BoostsRequest,
    Examples,
    ExamplesRequest,
    ExampleText,
    Explanations,
    ExplanationsRequest,
    Facets,
    FacetsRequest,
    ShardState,
    StoredText,
)

MOST_EXAMPLE_TOKENS = 512
VERSION_DIGITS = 12  # of a state, as people read it


@dataclass(frozen=True, slots=True)
class ShardReading:
    """The same snapshots as searches go by. Safe to use from several threads; all raise InvalidRequestError,
    InvalidQueryError and ShardStateGoneError.
    """

    pins: Pins

    def at(self, state: str | None, target: SearchTarget[Snapshot]) -> tuple[Snapshot, ShardState]:
        """The snapshot of a state, by default the current one. Raises ShardStateGoneError."""
        snapshot = target.snapshot if state is None else self.pins.snapshot(state)
        state = self.pins.pin(snapshot) if state is None else state
        version = state[:VERSION_DIGITS] if is_of_content(state) else snapshot.version
        return snapshot, ShardState(state, version, snapshot.documents)

    def facets(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """The commonest values of some fields, and values by name, counted."""
        wanted = decode_request(FacetsRequest, body)
        snapshot, at = self.at(state, target)
        return encode(Facets(at, tuple(snapshot.field_counts(wanted.fields, wanted.filter))))

    def explanations(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """Why documents of this shard have their scores."""
        wanted = decode_request(ExplanationsRequest, body)
        documents, factors = wanted.documents, wanted.idf
        idf = None if factors is None else GivenIdf(factors.token_ids, factors.idf)
        snapshot, _ = self.at(state, target)
        return encode(
            Explanations(
                tuple(
                    snapshot.shard_explanations(
                        wanted.query, documents.ids, documents.collections, idf, wanted.words
                    )
                )
            )
        )

    def boosts(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """What boosts add to documents of this shard, and how many encoded texts each document has."""
        wanted = decode_request(BoostsRequest, body)
        ids, collections = wanted.documents.ids, wanted.documents.collections
        snapshot, _ = self.at(state, target)
        added = snapshot.boosts_of(ids, wanted.boosts, collections)
        return encode(Boosts(added, snapshot.encodings_of(ids, collections)))

    def examples(self, target: SearchTarget[Snapshot], body: bytes, state: str | None) -> bytes:
        """Stored documents as examples of what a query wants, or one, or its window, as a query by itself."""
        wanted = decode_request(ExamplesRequest, body)
        ids, collections = wanted.documents.ids, wanted.documents.collections
        snapshot, _ = self.at(state, target)
        if wanted.window is None:
            found = snapshot.examples(ids, min(wanted.most_tokens, MOST_EXAMPLE_TOKENS))
            return encode(
                Examples(
                    tuple(
                        None if each is None else ExampleText(each[0], text_bytes(each[1])) for each in found
                    )
                )
            )
        if len(ids) != 1:
            raise InvalidRequestError("a message to a shard: a window is of one document")
        stored = snapshot.stored_query(ids[0], wanted.window, None if collections is None else collections[0])
        return encode(StoredText(stored.representations, text_bytes(stored.text)))
