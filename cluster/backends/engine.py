"""What is asked of an engine that holds exported collections, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition
from tercet.index.search.query import CheckedQuery
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.ready import ReadyBatch
from tercet.models.representations import SparseRows

Side = Literal["dense", "sparse"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export said of its collection.

    settings: that the stored values go by; window: the collection's, also where no document has several;
    snapshot: its name.
    """

    settings: CollectionSettings
    window: WindowSettings | None
    snapshot: str


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
    def exported(self) -> Exported: ...

    def expresses(self, condition: Condition) -> bool:
        """Whether the engine allows just the documents that the condition does."""
        ...

    def propose(
        self, side: Side, query: CheckedQuery, limit: int, condition: Condition | None, *, metadata: bool
    ) -> list[Proposed]:
        """The documents of highest score of a side, best first. metadata: whether these are told."""
        ...

    def rows(self, keys: Sequence[str]) -> Iterator[ReadyBatch]:
        """The documents of these keys that are there, with all that is stored of them, some at a time."""
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


@runtime_checkable
class LateInteraction(Protocol):
    """A collection of an engine that computes late interaction, too."""

    def late(self, query: CheckedQuery, keys: Sequence[str]) -> dict[str, float]:
        """The late interaction of these documents in float32, or more; of those that have token vectors."""
        ...

    def light_rows(self, keys: Sequence[str]) -> Iterator[ReadyBatch]:
        """As `EngineCollection.rows`, without token vectors."""
        ...


class Engine(Protocol):
    """A running engine. What is asked of it raises BackendError."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    def names(self) -> list[str]:
        """Of the collections there that an export made."""
        ...

    def open(self, name: str) -> EngineCollection | None:
        """A collection that an export made; None where there is none of the name."""
        ...

    def close(self) -> None: ...
