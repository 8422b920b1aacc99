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
from tercet.service.shard.pins import Pins
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
    StoredText,
)

MOST_EXAMPLE_TOKENS = 512


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
        wanted = decode_request(FacetsRequest, body)
        snapshot, _ = self.at(state, target)
        found = snapshot.field_counts(wanted.fields, wanted.filter)
        return encode(Facets(tuple(found[field] for field in wanted.fields)))

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
