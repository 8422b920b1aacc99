"""What is asked of an engine that holds collections, whichever it is.

It holds some that an export wrote, which are read, and others that Tercet writes through it. Beside these it
keeps records: JSON by group and key, of which collections there are and how far each is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition
from tercet.index.documents.metadata import FieldType
from tercet.index.search.query import CheckedQuery
from tercet.index.segments.rows import DocumentRows
from tercet.models.representations import Float32, SparseRows

Side = Literal["dense", "sparse", "words"]
"""What proposes; `words` are those of BM25."""
Terms = Mapping[int, float]
"""A sparse vector: weights by term."""
Records = Mapping[str, Mapping[str, Any]]
"""JSON objects of a group by their keys."""
RECORDS = "TercetRecords"  # the collection that holds them, of a name that none of ours can have
RECORDS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ProposingQuery:
    """What proposes: dense, float32[D]; the lexical terms, times the idf; and the words of BM25. A side
    without a vector or terms proposes nothing.
    """

    dense: Float32 | None
    sparse: Terms
    words: Terms


@dataclass(frozen=True, slots=True)
class EngineDocument:
    """What an engine keeps of a document that Tercet writes.

    fields: `id`, `title`, `text` and `metadata`, the `position` that it was written at, and `rows`, all that
    is scored, as strings of which none is longer than Milvus takes. dense: float32[W, D], of each encoding;
    sparse, words: what its lexical and BM25 sides are proposed by.
    """

    fields: Mapping[str, Any]
    dense: Float32
    sparse: Terms
    words: Terms


@dataclass(frozen=True, slots=True)
class Replication:
    """How an engine is to divide and copy collections that it makes; None is the engine's own default.

    consistency: of reads, in the engine's words.
    """

    shards: int | None = None
    replicas: int | None = None
    consistency: str | None = None


ENGINES_OWN = Replication()


@dataclass(frozen=True, slots=True)
class Proposed:
    """A document that a side proposes. key: the engine's own name of it; score: as the engine has it, in
    float32; metadata: where these were asked for.
    """

    key: str
    score: float
    metadata: Mapping[str, Any] | None = None


class EngineCollection(Protocol):
    """One collection of an engine. Safe to use from several threads; what is asked of it raises BackendError.

    Conditions are given to the engine in its own language. Where it cannot say all of one, it takes a wider
    one: what it answers has all documents that the condition allows, and maybe others.
    """

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def settings(self) -> CollectionSettings:
        """That documents are read and scored by."""
        ...

    def expresses(self, condition: Condition) -> bool:
        """Whether the engine allows just the documents that the condition does."""
        ...

    def propose(
        self, side: Side, query: ProposingQuery, limit: int, condition: Condition | None, *, metadata: bool
    ) -> list[Proposed]:
        """The documents of highest score of a side, best first. metadata: whether these are told."""
        ...

    def rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        """The documents of these keys that are there, with all that is stored of them."""
        ...

    def keys_of(self, ids: Sequence[str]) -> list[str]:
        """The keys that documents of these ids have."""
        ...

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """The documents of these ids that are there, in any order."""
        ...

    def page(self, after: str | None, limit: int, condition: Condition | None) -> list[Document]:
        """The next documents behind an id, in an order of the engine's own; fewer than the limit are the
        last.
        """
        ...

    def count(self, condition: Condition | None) -> int: ...

    def lexical(self) -> Iterator[SparseRows]:
        """The lexical weights of all documents, in parts of bounded size."""
        ...


class ExportedEngineCollection(EngineCollection, Protocol):
    """One that an export wrote."""

    @property
    def exported_as(self) -> str:
        """The name of the snapshot that was exported."""
        ...


@runtime_checkable
class LateInteraction(Protocol):
    """A collection of an engine that computes late interaction, too."""

    def late(self, query: CheckedQuery, keys: Sequence[str]) -> dict[str, float]:
        """The late interaction of these documents in float32, or more; of those that have token vectors."""
        ...

    def light_rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        """As `EngineCollection.rows`, without token vectors."""
        ...


@runtime_checkable
class ValueCounts(Protocol):
    """A collection of an engine that counts values of fields, too."""

    def values(self, field: str, condition: Condition | None) -> Mapping[str | bool, int]:
        """How many documents that the engine allows have each value of a declared keyword or boolean."""
        ...

    def missing(self, field: str, condition: Condition | None) -> int:
        """How many of them have none."""
        ...


class WrittenEngineCollection(EngineCollection, Protocol):
    """One that Tercet writes. A method returns once the engine has the change, on as many replicas as the
    settings ask for.
    """

    def prepared(self, documents: Sequence[EngineDocument]) -> Sequence[Any]:
        """Documents as `put` takes them. Raises InvalidDocumentError for one that the engine cannot hold."""
        ...

    def put(self, prepared: Sequence[Any]) -> None:
        """Adds documents, or replaces those of the same ids, by one request."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Removes documents by one request; an id that is not there is no error."""
        ...

    def every_row(self) -> Iterator[list[DocumentRows]]:
        """All documents, in parts of bounded size."""
        ...

    def declare(self, fields: Mapping[str, FieldType]) -> None:
        """Has the engine index fields of metadata, where it does so."""
        ...


class Engine(Protocol):
    """A running engine. What is asked of it raises BackendError."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """What one request takes at most; 0 where there are none, as of a file."""
        ...

    def names(self) -> list[str]:
        """Of the collections there that an export made."""
        ...

    def open(self, name: str) -> ExportedEngineCollection | None:
        """A collection that an export made; None where there is none of the name."""
        ...

    def exists(self, name: str) -> bool:
        """Whether it has a collection of the name, whoever made it."""
        ...

    def create(self, settings: CollectionSettings) -> None:
        """Makes an empty collection to be written. Raises InvalidNameError or NotInBackendError for what it
        cannot hold.
        """
        ...

    def drop(self, name: str) -> None:
        """Removes a collection; one that is not there is no error."""
        ...

    def written(self, settings: CollectionSettings) -> WrittenEngineCollection:
        """One that `create` made; the settings may have more fields by now."""
        ...

    def records(self, group: str, key: str | None = None) -> Records:
        """The records of a group, or the one of a key, where it is there; none before any was put."""
        ...

    def put_records(self, records: Mapping[str, Records]) -> None:
        """Puts records, by group. A `position` of theirs takes the place of no later one, where the engine
        compares before it writes.
        """
        ...

    def remove_records(self, group: str, keys: Sequence[str]) -> None:
        """Removes records."""
        ...

    def close(self) -> None: ...
