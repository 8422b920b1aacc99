"""The stored documents of a collection over shards: found by id, in pages and in order, and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

import orjson

from tercet.cluster.router.pages import ShardedPages, value_key
from tercet.cluster.router.partitions import shards_allowed
from tercet.cluster.router.stored_json import document_from, stored_from
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.cluster.shards.positions import Positions
from tercet.cluster.shards.refusals import reading
from tercet.cluster.shards.servers import Ask
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.fields import field_values
from tercet.index.documents.filters import Filter, tree_of
from tercet.index.documents.metadata import value_at
from tercet.index.errors import AmbiguousDocumentError, CollectionMovedError, DocumentNotFoundError
from tercet.index.reading.documents import ambiguous
from tercet.index.reading.ordered import Order, Place, PlacedDocument, Value, check_order
from tercet.index.segments.stored import StoredRepresentations
from tercet.service.documents.ordering import encode_cursor
from tercet.service.documents.writer import is_id
from tercet.service.load.deadlines import NO_DEADLINE, Deadline

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Newer = Callable[[], tuple[Fleet, Placement] | None]
"""The shards of a newer map, and which documents each has, once they are known; None of none in time."""


@dataclass(frozen=True, slots=True)
class ReadDocument(PlacedDocument):
    """A document of a shard where it is in an order; segment and row have no meaning."""

    document: Document


def _at_newer_shards(
    read: Callable[Concatenate[ShardedDocuments, Arguments], Result],
) -> Callable[Concatenate[ShardedDocuments, Arguments], Result]:
    """A method that reads again where a shard has other documents by now than the map says that is known."""

    @wraps(read)
    def reading_on(
        documents: ShardedDocuments, /, *args: Arguments.args, **options: Arguments.kwargs
    ) -> Result:
        try:
            return read(documents, *args, **options)
        except CollectionMovedError:
            if not documents._go_on():
                raise
            return read(documents, *args, **options)

    return reading_on


class ShardedDocuments:
    """In the place of `tercet.index.reading.documents.StoredDocuments`, for one request. Its methods wait for
    shards, and are for threads other than that of the event loop.
    """

    def __init__(
        self,
        fleet: Fleet,
        placement: Placement,
        settings: CollectionSettings,
        deadline: Deadline = NO_DEADLINE,
        *,
        several: bool = False,
        newer: Newer = lambda: None,
        within: Filter | None = None,
    ) -> None:
        """settings: with the name that shards are asked for. deadline: for all answers. several: it is an
        alias of several collections. newer: waits for the shards of a newer map. within: a filter; what it
        does not allow need not be found by its id.
        """
        self._newer = newer
        self._within = within
        self.settings = settings
        self._fleet = fleet
        self._placement = placement
        self._deadline = deadline
        self._several = several
        self._path = f"/collections/{settings.name}/documents"
        self._pages = ShardedPages(fleet, self._path, deadline)

    @property
    def is_of_several(self) -> bool:
        """Whether it is of several collections."""
        return self._several

    @_at_newer_shards
    def get(self, id: str) -> Document | None:
        """The stored document of an id, or None."""
        found = self._one(id, {})
        if found is None:
            return None
        shard, record = found
        with reading(self._fleet.clients[shard].name):
            return document_from(record)

    @_at_newer_shards
    def get_all(self, ids: Sequence[str]) -> list[list[Document]]:
        """The stored documents of each id: one at most of each collection."""
        found: dict[str, list[Document]] = {}
        for documents in self._found(ids, self._within).values():
            for document in documents:
                found.setdefault(document.id, []).append(document)
        return [found.get(id, []) for id in ids]

    @_at_newer_shards
    def count(self, filter: Filter | None = None) -> int:
        """How many documents a filter over declared fields allows; all of them without one."""
        body = {} if filter is None else {"filter": tree_of(filter)}
        path = f"{self._path}/count"
        asks = dict.fromkeys(
            self._allowed(filter), lambda shard: shard.json("POST", path, body, deadline=self._deadline)
        )
        total = 0
        for shard, answer in self._fleet.require(asks).items():
            with reading(self._fleet.clients[shard].name):
                total += int(answer["count"])
        return total

    @_at_newer_shards
    def page(
        self, after: str | None, limit: int, filter: Filter | None = None, after_collection: str | None = None
    ) -> list[Document]:
        """Up to `limit` documents in order of their ids' UTF-8 bytes: see `StoredDocuments.page`."""
        begin = after if after_collection is None else orjson.dumps([after, after_collection]).decode()
        return self._pages.merged(self._query(filter), begin, limit, _id_of, self._allowed(filter))

    @_at_newer_shards
    def ordered_page(
        self, order: Order, after: Place | None, limit: int, filter: Filter | None = None
    ) -> list[PlacedDocument]:
        """Up to `limit` documents in the order of a declared field: see `StoredDocuments.ordered_page`."""
        check_order(order, self.settings.fields)
        query = {
            **self._query(filter),
            "order_by": order.field,
            "order": "desc" if order.descending else "asc",
        }
        begin = None if after is None else encode_cursor(after)

        def key(document: Document) -> tuple[Any, ...]:
            return *value_key(self._value(document, order), descending=order.descending), _id_of(document)

        found = self._pages.merged(query, begin, limit, key, self._allowed(filter))
        return [
            ReadDocument(
                Place(self._value(document, order), _id_of(document), document.collection), 0, 0, document
            )
            for document in found
        ]

    def read(self, placed: PlacedDocument) -> Document:
        """The document of a place, which came with it."""
        assert isinstance(placed, ReadDocument)  # noqa: S101 - of `ordered_page`
        return placed.document

    @_at_newer_shards
    def stored(self, id: str) -> tuple[Document, StoredRepresentations] | None:
        """The document and its representations together; None where it is not there.

        Its position has the number of the document's shard, and 0 for the others.
        """
        found = self._one(id, {"representations": "true", "encoding": "base64"})
        if found is None:
            return None
        shard, record = found
        with reading(self._fleet.clients[shard].name):
            document, stored = document_from(record), stored_from(record, self.settings)
            position = Positions.alone(shard, int(stored.position), len(self._fleet))
        return document, replace(stored, position=str(position))

    def _go_on(self) -> bool:
        """Reads from the shards of a newer map from now on; whether there is one."""
        found = self._newer()
        if found is None:
            return False
        self._fleet, self._placement = found
        self._pages = ShardedPages(self._fleet, self._path, self._deadline)
        return True

    def _one(self, id: str, query: Mapping[str, str]) -> tuple[int, Any] | None:
        """The shard that has the document of an id, and what it answers of it; None where none has it. Raises
        AmbiguousDocumentError where several collections that it is of have one.
        """
        path, failures = f"{self._path}/{quote(id, safe='')}", list[Exception]()
        asks = dict.fromkeys(
            self._by_shard([id], self._within),
            lambda shard: shard.json("GET", path, query=query, deadline=self._deadline),
        )
        having: dict[int, Any] = {}
        for shard, found in self._fleet.outcomes(asks).items():
            if isinstance(found, AmbiguousDocumentError):
                raise found
            if not isinstance(found, Exception):
                having[shard] = found
            elif not isinstance(found, DocumentNotFoundError):
                failures.append(found)
        if self._several and len(having) > 1:
            raise ambiguous(id, sorted(each["collection"] for each in having.values()), self.settings.name)
        if failures and not having:
            raise failures[0]
        return next(iter(having.items()), None)

    def _found(self, ids: Sequence[str], within: Filter | None = None) -> dict[int, list[Document]]:
        """The stored documents of some ids that each shard has, at least those that a filter allows."""
        asked = self._by_shard(ids, within)
        answers = self._fleet.require({shard: self._getting(own) for shard, own in asked.items()})
        found: dict[int, list[Document]] = {}
        for shard, answer in answers.items():
            with reading(self._fleet.clients[shard].name):
                found[shard] = list(map(document_from, answer["documents"]))
        return found

    def _by_shard(self, ids: Sequence[str], within: Filter | None) -> dict[int, list[str]]:
        """The ids of which each shard may have documents that a filter allows: of a partitioned collection
        any of them.
        """
        possible = [id for id in ids if is_id(id)]
        if self.settings.partitioned:
            return dict.fromkeys(self._allowed(within), possible) if possible else {}
        own: dict[int, list[str]] = {}
        for id, shard in zip(possible, self._placement.shards_of(possible).tolist(), strict=True):
            own.setdefault(shard, []).append(id)
        return own

    def _allowed(self, filter: Filter | None) -> Sequence[int]:
        """The shards that may have documents which a filter allows."""
        return shards_allowed(filter, self.settings, self._placement)

    def _getting(self, ids: Sequence[str]) -> Ask[Any]:
        async def ask(shard: ShardClient) -> Any:
            return await shard.json("POST", f"{self._path}/get", {"ids": ids}, deadline=self._deadline)

        return ask

    def _query(self, filter: Filter | None) -> dict[str, str]:
        """That of a list of the documents that a filter allows; shards hold it against their fields."""
        return {} if filter is None else {"filter": orjson.dumps(tree_of(filter)).decode()}

    def _value(self, document: Document, order: Order) -> Value | None:
        """By which a document is in its place: the least of several values, or the greatest in descending
        order.
        """
        kind = self.settings.fields[order.field]
        values = field_values(order.field, kind, value_at(document.metadata, order.field), rounded=True)
        if not values:
            return None
        value: Value = max(values) if order.descending else min(values)
        return int(value) if isinstance(value, bool) else value


def _id_of(document: Document) -> bytes:
    return document.id.encode()
