"""A collection over shards, as the service reads one snapshot: all that one request asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tercet.cluster.router.documents import Newer, ShardedDocuments
from tercet.cluster.router.facets import facets
from tercet.cluster.router.search import query_words, search, weighed_by
from tercet.cluster.router.view import View
from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Facet, SearchResult
from tercet.index.documents.boosts import Boost, check_boosts
from tercet.index.documents.filters import Filter, check_filter
from tercet.index.languages.sample import LanguageSample
from tercet.index.reading.documents import ambiguous
from tercet.index.reading.examples import Example, examples_query
from tercet.index.search.explanation import Explanation
from tercet.index.search.query import check_facets, check_lexical
from tercet.index.search.snapshot_query import SnapshotQuery, check_snapshot_query
from tercet.index.segments.stored import StoredQuery
from tercet.models.representations import Float32, Float64, Int32, Int64, Representations, SparseRows
from tercet.service.exceptions import ShardUnavailableError
from tercet.service.load.deadlines import Deadline
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.conversions import bytes_text
from tercet.service.shard.records import (
    Boosts,
    BoostsRequest,
    DocumentNames,
    Examples,
    ExamplesRequest,
    Explanations,
    ExplanationsRequest,
    StoredText,
    TermFactors,
)

Answer = TypeVar("Answer")


class ShardedIdf:
    """The idf of all shards together, by which a view goes; see
    `tercet.index.sparse.idf.CollectionIdf`.
    """

    def __init__(self, view: View, loop: Loop) -> None:
        self._view = view
        self._run = loop.run

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors idf(t) / m float64[T] of some terms. Asks shards that were not heard yet."""
        view = self._view
        terms = view.terms or self._run(view.settled())
        return terms.factors(token_ids)

    def weighted(self, token_ids: Int32, weights: Float32) -> Float32:
        """A query's weights float32[T], times the factors of their terms."""
        return (weights * self.of_terms(token_ids)).astype(np.float32)


class ShardedSnapshot(ShardedDocuments):
    """One request's view of a collection over shards, in the place of `tercet.index.snapshot.Snapshot`.

    What it asks first fixes the state of each shard, and all else is of the same states. Its methods wait for
    shards, so they are for threads other than the event loop's, but for those that are awaited there.
    """

    def __init__(
        self,
        view: View,
        fleet: Fleet,
        placement: Placement,
        deadline: Deadline,
        *,
        several: bool,
        newer: Newer = lambda: None,
        within: Filter | None = None,
    ) -> None:
        """several: it is an alias of several collections. newer, within: as of `ShardedDocuments`."""
        settings = view.known.description.settings
        super().__init__(fleet, placement, settings, deadline, several=several, newer=newer, within=within)
        self._view = view
        self.idf = ShardedIdf(view, fleet.loop) if self.settings.lexical == "idf" else None

    @property
    def known_languages(self) -> LanguageSample:
        """In which languages the documents were when the shards last described the collection."""
        return self._view.known.description.languages

    def languages(self) -> LanguageSample:
        """The same."""
        return self.known_languages

    @property
    def version(self) -> str:
        """Of all shards, at the states that it is fixed at."""
        return self._fixed().version

    @property
    def documents(self) -> int:
        """How many there are in all shards."""
        return self._fixed().documents

    @property
    def lost(self) -> tuple[str, ...]:
        """The shards that gave no answer, where that was allowed."""
        return self._view.fan_out.lost

    def answer(self, asked: SnapshotQuery) -> SearchResult:
        """As `Snapshot.answer`; raises what asking shards raises, too."""
        return self._fleet.loop.run(self.awaited_answer(asked))

    async def awaited_answer(self, asked: SnapshotQuery) -> SearchResult:
        """`answer`, from the event loop."""
        check_snapshot_query(asked, self.settings)
        return await search(self._view, asked)

    def facets(self, wanted: Mapping[str, int], filter: Filter | None = None) -> dict[str, Facet]:
        """As `Snapshot.facets`, but for fields of very many values: see `tercet.cluster.router.facets`."""
        return self._fleet.loop.run(self.awaited_facets(wanted, filter))

    async def awaited_facets(
        self, wanted: Mapping[str, int], filter: Filter | None = None
    ) -> dict[str, Facet]:
        """`facets`, from the event loop."""
        check_facets(wanted, self.settings.fields)
        if filter is not None:
            check_filter(filter, self.settings.fields)
        return await facets(self._view, wanted, filter)

    def explanations(
        self,
        query: Representations,
        document_ids: Sequence[str],
        text: str | None = None,
        collections: Sequence[str | None] | None = None,
    ) -> list[Explanation]:
        """As `Snapshot.explanations`, by what is known of terms and words over all shards."""
        words = query_words(self.settings, text)
        if self._view.known.goes_by_terms and self._view.terms is None:
            self._fleet.loop.run(self._view.settled())
        terms, weighed = self._fleet.loop.run(weighed_by(self._view, words))
        factors = None
        if query.sparse is not None:
            token_ids, weights = check_lexical(*query.sparse.row(0), self.settings.vocabulary_size)
            query = replace(query, sparse=SparseRows(np.array([0, len(token_ids)]), token_ids, weights))
            if terms.totals is not None:
                factors = TermFactors(token_ids, terms.factors(token_ids))
        found = self._of_documents(
            "explanations",
            DocumentNames.of(document_ids, collections),
            lambda names: ExplanationsRequest(names, query, factors, weighed),
            lambda body, count: decode(Explanations, body, R=count).documents,
        )
        return [found[number] for number in range(len(document_ids))]

    def boosts_of(
        self,
        document_ids: Sequence[str],
        boosts: Sequence[Boost],
        collections: Sequence[str | None] | None = None,
    ) -> Float64:
        """As `Snapshot.boosts_of`."""
        check_boosts(boosts, self.settings.fields)

        found = self._of_documents(
            "boosts",
            DocumentNames.of(document_ids, collections),
            lambda names: BoostsRequest(names, tuple(boosts)),
            lambda body, count: list(decode(Boosts, body, B=len(boosts), N=count).added.T),
        )
        added: Float64 = np.array([found[number] for number in range(len(document_ids))], np.float64)
        return added.reshape(-1, len(boosts)).T

    def encodings_of(
        self, document_ids: Sequence[str], collections: Sequence[str | None] | None = None
    ) -> int:
        """As `Snapshot.encodings_of`."""
        if self.settings.window is None:
            return len(document_ids)

        def read(body: bytes, count: int) -> list[int]:
            return [decode(Boosts, body).encodings, *[0] * (count - 1)]

        names = DocumentNames.of(document_ids, collections)
        return sum(self._of_documents("boosts", names, lambda own: BoostsRequest(own, ()), read).values())

    def stored_query(self, id: str, window: int = 0, collection: str | None = None) -> StoredQuery:
        """As `Snapshot.stored_query`."""

        def read(body: bytes, _count: int) -> list[StoredQuery]:
            found = decode(StoredText, body)
            return [StoredQuery(found.query, bytes_text(found.text))]

        names = DocumentNames((id,), (collection,))
        return self._of_documents("examples", names, lambda own: ExamplesRequest(own, window, 0), read)[0]

    def examples_query(self, like: Sequence[str], unlike: Sequence[str] = ()) -> StoredQuery:
        """As `Snapshot.examples_query`."""
        return examples_query(self.settings.name, like, unlike, self._examples)

    def _examples(self, ids: Sequence[str], most_tokens: int) -> list[tuple[Example, str] | None]:
        def read(body: bytes, count: int) -> list[tuple[Example, str] | None]:
            found = decode(Examples, body, D=self.settings.dense_dimension, R=count)
            return [
                None if each is None else (each.example, bytes_text(each.text)) for each in found.documents
            ]

        names = DocumentNames(tuple(ids), None)
        found = self._of_documents(
            "examples", names, lambda own: ExamplesRequest(own, None, most_tokens), read
        )
        return [found[number] for number in range(len(ids))]

    def _of_documents(
        self,
        operation: str,
        names: DocumentNames,
        asked: Callable[[DocumentNames], object],
        read: Callable[[bytes, int], Sequence[Answer]],
    ) -> dict[int, Answer]:
        """What the shards of documents answer of each, by its number among these.

        asked: the request for some of them; read: takes those of so many documents from an answer.
        """
        count = len(self._fleet)
        places = self._places(names)
        numbers = [np.flatnonzero(places == shard).tolist() for shard in range(count)]
        bodies = [encode(asked(names.take(own))) if own else None for own in numbers]
        told = self._fleet.loop.run(
            self._view.read(operation, bodies, lambda shard, body: read(body, len(numbers[shard])))
        )
        answers: dict[int, Answer] = {}
        for shard, (own, found) in enumerate(zip(numbers, told, strict=True)):
            if own and found is None:
                name = self._view.fan_out.server_of(shard)
                raise ShardUnavailableError(
                    f"shard {name} gave no answer, and has documents that are asked for", name, sent=False
                )
            if found is not None:
                answers |= zip(own, found, strict=True)
        return answers

    def _places(self, names: DocumentNames) -> Int64:
        """The shard of each document, int64[N]; the first of one that is nowhere, which says so. Raises
        AmbiguousDocumentError where several collections have one, and which is not said.
        """
        if not self.settings.partitioned:
            return self._placement.shards_of(names.ids)
        known, collections = self._view.places, names.collections or [None] * len(names.ids)
        named = list(zip(names.ids, collections, strict=True))
        found = self._found([id for id, collection in named if (id, collection) not in known])
        there: dict[str, dict[str | None, int]] = {}  # the shards by collection, of each id
        for shard, documents in found.items():
            for document in documents:
                there.setdefault(document.id, {})[document.collection] = shard

        def shard_of(id: str, collection: str | None) -> int:
            shards = there.get(id, {})
            if collection is None and len(shards) > 1:
                raise ambiguous(id, sorted(map(str, shards)), self.settings.name)
            return shards.get(collection, next(iter(shards.values()), 0))

        return np.array([known[name] if name in known else shard_of(*name) for name in named], np.int64)

    def _fixed(self) -> View:
        if not self._view.is_fixed:
            self._fleet.loop.run(self._view.told())
        return self._view
