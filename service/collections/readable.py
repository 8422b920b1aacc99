"""What requests read of a collection, whether a server has it itself or shards do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from tercet.index.candidates import Document, Facet, SearchResult
from tercet.index.catalog.aliases import Meant
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.boosts import Boost
from tercet.index.documents.filters import Filter
from tercet.index.languages.sample import LanguageSample
from tercet.index.reading.ordered import Order, Place, PlacedDocument
from tercet.index.search.explanation import Explanation
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.segments.stored import StoredQuery, StoredRepresentations
from tercet.models.representations import Float32, Float64, Int32, Representations


class Idf(Protocol):
    """See `tercet.index.sparse.idf.CollectionIdf`."""

    def of_terms(self, token_ids: Int32) -> Float64: ...

    def weighted(self, token_ids: Int32, weights: Float32) -> Float32: ...


class ReadableSnapshot(Protocol):
    """The methods of `tercet.index.snapshot.Snapshot` that requests read by. They block, so they are for
    threads.
    """

    @property
    def settings(self) -> CollectionSettings: ...

    @property
    def idf(self) -> Idf | None: ...

    @property
    def version(self) -> str: ...

    @property
    def documents(self) -> int: ...

    @property
    def known_languages(self) -> LanguageSample | None:
        """None before `languages` was first called, which may take a while."""

    def languages(self) -> LanguageSample: ...

    @property
    def is_of_several(self) -> bool: ...

    def answer(self, query: SnapshotQuery) -> SearchResult: ...

    def facets(self, wanted: Mapping[str, int], filter: Filter | None = None) -> dict[str, Facet]: ...

    def explanations(
        self,
        query: Representations,
        document_ids: Sequence[str],
        text: str | None = None,
        collections: Sequence[str | None] | None = None,
    ) -> list[Explanation]: ...

    def boosts_of(
        self,
        document_ids: Sequence[str],
        boosts: Sequence[Boost],
        collections: Sequence[str | None] | None = None,
    ) -> Float64: ...

    def encodings_of(
        self, document_ids: Sequence[str], collections: Sequence[str | None] | None = None
    ) -> int: ...

    def stored_query(self, id: str, window: int = 0, collection: str | None = None) -> StoredQuery: ...

    def examples_query(self, like: Sequence[str], unlike: Sequence[str] = ()) -> StoredQuery: ...

    def get(self, id: str) -> Document | None: ...

    def get_all(self, ids: Sequence[str]) -> list[list[Document]]: ...

    def count(self, filter: Filter | None = None) -> int: ...

    def page(
        self, after: str | None, limit: int, filter: Filter | None = None, after_collection: str | None = None
    ) -> list[Document]: ...

    def ordered_page(
        self, order: Order, after: Place | None, limit: int, filter: Filter | None = None
    ) -> list[PlacedDocument]: ...

    def read(self, placed: PlacedDocument) -> Document: ...

    def stored(self, id: str) -> tuple[Document, StoredRepresentations] | None: ...


@runtime_checkable
class AwaitedSearches(Protocol):
    """What a snapshot has beside that other servers search: `answer` and `facets` that wait for them on the
    event loop, and take no thread meanwhile.
    """

    async def awaited_answer(self, query: SnapshotQuery) -> SearchResult: ...

    async def awaited_facets(
        self, wanted: Mapping[str, int], filter: Filter | None = None
    ) -> dict[str, Facet]: ...


class NamedAliases(Protocol):
    """The methods of `tercet.index.catalog.aliases.Aliases` that requests call."""

    def collection_of(self, name: str) -> str: ...

    def collections_of(self, name: str) -> Meant: ...

    def all(self) -> Mapping[str, Meant]: ...

    def get(self, alias: str) -> Meant: ...

    def put(self, alias: str, collection: str, *others: str) -> Meant: ...

    def remove(self, alias: str) -> None: ...


Searched = TypeVar("Searched", bound=ReadableSnapshot, covariant=True)


@dataclass(frozen=True, slots=True)
class CollectionDescription:
    """A collection's settings, stored defaults and state; `snapshot` is None before the first publication.

    collections: those that an alias of several means, which this describes as one.
    """

    settings: CollectionSettings
    defaults: SearchDefaults | None
    snapshot: str | None
    documents: int
    collections: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SearchTarget(Generic[Searched]):
    """What a search needs of a collection: its snapshot, and what is stored for one that does not say."""

    snapshot: Searched
    defaults: SearchDefaults | None = None
    effort: DenseEffort | None = None
