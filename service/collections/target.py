"""What documents are written to: a live collection of this server, or one that is divided over shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType
from tercet.index.live.records import WriteKey
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations
from tercet.service.collections.positions import Position
from tercet.service.load.deadlines import NO_DEADLINE, Deadline


class Acknowledged(Protocol):
    """What a write did: see `tercet.index.live.records.Written`."""

    @property
    def position(self) -> Position: ...

    @property
    def documents(self) -> int: ...

    @property
    def tokens(self) -> int: ...


class WritableCollection(Protocol):
    """The methods of `tercet.index.live.collection.LiveCollection` that requests write by; each waits
    until what it
    wrote is on the disk.

    if_position: what `WritableCollections.position_of` made of a request's.
    """

    @property
    def settings(self) -> CollectionSettings: ...

    def put(
        self,
        documents: Sequence[Document],
        representations: Representations,
        windows: DocumentWindows | None = None,
        *,
        if_position: Any = None,
        key: WriteKey | None = None,
        tokens: int = 0,
    ) -> Acknowledged: ...

    def delete(
        self, ids: Sequence[str], *, partition: str | None = None, key: WriteKey | None = None
    ) -> Acknowledged: ...

    def delete_matching(self, filter: Filter, *, key: WriteKey | None = None) -> Acknowledged: ...

    def patch(
        self,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        if_position: Any = None,
        key: WriteKey | None = None,
    ) -> Acknowledged: ...

    def update(
        self,
        which: Sequence[str] | Filter,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        partition: str | None = None,
        key: WriteKey | None = None,
    ) -> Acknowledged: ...

    def written_under(self, key: WriteKey) -> Acknowledged | None: ...

    def declare(self, fields: Mapping[str, FieldType]) -> CollectionSettings: ...

    def begin_merge(self) -> None: ...


class WritableCollections(Protocol):
    """The collections that a server writes."""

    async def open_to_write(self, name: str, deadline: Deadline = NO_DEADLINE) -> CollectionSettings:
        """The settings of a collection that can be written, with its own name.

        name: this, or an alias of it. deadline: as of `writing`.
        """
        ...

    def writing(
        self, name: str, deadline: Deadline = NO_DEADLINE
    ) -> AbstractContextManager[WritableCollection]:
        """The collection of this name, its own, not closed meanwhile.

        deadline: of whoever waits for the write.
        """
        ...

    def position_of(self, given: Position, param: str) -> Any:
        """What a request names as a position. Raises InvalidRequestError naming the field."""
        ...
