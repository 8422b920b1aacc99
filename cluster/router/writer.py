"""A collection over shards as what documents are written to: each shard gets its part of a write.

A part is there whole or not at all, as a write of that shard. A write over several is no transaction: where
one shard fails, those that took their parts keep them, and the error says so. With an idempotency key a
repeat completes it, since each shard knows the key, and one of them is asked first, whatever the write.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from tercet.cluster.router.bodies import body_of
from tercet.cluster.router.partial_writes import Part, failure_of_parts
from tercet.cluster.router.partitions import shards_allowed
from tercet.cluster.router.position_waits import require_numbers
from tercet.cluster.router.positions import KnownPositions
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.cluster.shards.positions import Positions
from tercet.cluster.shards.refusals import lost_here, reading
from tercet.cluster.shards.servers import Ask
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.filters import Filter, tree_of
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.partitions import placed_by, within_partition
from tercet.index.errors import CollectionFencedError, CollectionNotFoundError
from tercet.index.live.records import WriteKey
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Int64, Representations
from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.exceptions import (
    OverloadedError,
    RequestTooLargeError,
    ServiceError,
    ShardError,
    ShardWriteError,
)
from tercet.service.load.deadlines import NO_DEADLINE, Deadline, within
from tercet.service.remote.transport import JSON, NO_HEADERS, Headers
from tercet.service.shard.messages import COLLECTIONS

DECLARING_SECONDS = 3600.0  # every document's metadata is read
SMALL_BYTES = 2**20  # of a body that any shard takes
NO_ID = ""  # of which no document can be


@dataclass(frozen=True, slots=True)
class ShardedWritten:
    """What was acknowledged: see `tercet.index.live.records.Written`. position: as text, one number a
    shard.
    """

    position: str
    documents: int
    tokens: int = 0


class FencedPartsError(ServiceError):
    """A write of which some shards refused their parts, as the collection moves to others, and no part is in
    doubt.

    failure: what to answer where it is not repeated; documents: that the others took; shards: the numbers of
    those that refused.
    """

    def __init__(self, failure: Exception, documents: int, shards: frozenset[int]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.documents = documents
        self.shards = shards


class ShardedWriter:
    """In the place of `tercet.index.live.collection.LiveCollection`, for one request. Its methods wait for
    shards
    and are for threads other than that of the event loop.

    Where some shards took their parts and others did not, each raises ShardWriteError; FencedPartsError where
    all that did not refused because the collection moves.
    """

    def __init__(
        self,
        fleet: Fleet,
        placement: Placement,
        settings: CollectionSettings,
        known: KnownPositions,
        deadline: Deadline = NO_DEADLINE,
        outdated: Callable[[], None] = lambda: None,
    ) -> None:
        """settings: of the collection, with its own name. deadline: for all answers. outdated: is told when
        the settings may be others by now.
        """
        self._fleet = fleet
        self._placement = placement
        self._settings = settings
        self._known = known
        self._deadline = deadline
        self._outdated = outdated
        self._path = f"/collections/{settings.name}"

    @property
    def settings(self) -> CollectionSettings:
        """What was fixed when the collection was created, with the fields declared since."""
        return self._settings

    def keys(self, documents: Sequence[Document]) -> list[str]:
        """What documents are placed by."""
        partitioned = self._settings.partitioned
        return [placed_by(document, partitioned=partitioned) for document in documents]

    def places(self, keys: Sequence[str]) -> Int64:
        """The shard of each key, int64[N]."""
        return self._placement.shards_of(keys)

    def put(
        self,
        documents: Sequence[Document],
        representations: Representations,
        windows: DocumentWindows | None = None,
        *,
        rows: Int64 | None = None,
        if_position: Positions | None = None,
        key: WriteKey | None = None,
        tokens: int = 0,
    ) -> ShardedWritten:
        """Adds or replaces documents. rows: which of them, by default all. if_position: each document is held
        against the number of its shard.

        Raises RequestTooLargeError where a shard's part is larger than it takes, PartitionConflictError where
        an id is in another partition; then nothing is written.
        """
        self._require_numbers(if_position)
        placed = self.places(self.keys(documents))
        if rows is not None:
            left = np.ones(len(placed), np.bool_)
            left[rows] = False
            placed[left] = -1
        bodies: dict[int, bytes] = {}
        for shard in np.unique(placed[placed >= 0]).tolist():
            metadata = {"fingerprint": self._settings.fingerprint}
            if key is not None:
                metadata["idempotency_key"] = key.key
            if if_position is not None:
                metadata["if_position"] = str(if_position.numbers[shard])
            places = np.flatnonzero(placed == shard)
            bodies[shard] = body_of(documents, representations, windows, places, metadata)
        self._require_fitting(bodies)
        asks = {
            shard: self._part(
                "PUT",
                "/documents",
                body,
                key,
                shard,
                counted="upserted",
                content_type=MEDIA_TYPE,
                # Without a key a repeat does the same again, unless it depends on what was there.
                repeatable=key is not None or if_position is None,
            )
            for shard, body in bodies.items()
        }
        with self._claimed_elsewhere(documents, placed):
            return self._written(asks, key, tokens)

    def delete(
        self, ids: Sequence[str], *, partition: str | None = None, key: WriteKey | None = None
    ) -> ShardedWritten:
        """Removes documents; ids that are not there, or are in another partition, count nothing."""
        return self._changed("delete", self._of_ids(ids, partition), key)

    def delete_matching(self, filter: Filter, *, key: WriteKey | None = None) -> ShardedWritten:
        """Removes the documents that a filter over declared fields allows."""
        return self._changed("delete", self._of_filter(filter), key)

    def update(
        self,
        which: Sequence[str] | Filter,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        partition: str | None = None,
        key: WriteKey | None = None,
    ) -> ShardedWritten:
        """Changes the metadata of documents of these ids, as far as they are in a partition where one is
        given, or of those that a filter over declared fields allows.
        """
        chosen = self._of_filter(which) if isinstance(which, Filter) else self._of_ids(which, partition)
        change = {"metadata": metadata, "merge": merge}
        return self._changed("update", {shard: {**body, **change} for shard, body in chosen.items()}, key)

    def patch(
        self,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        if_position: Positions | None = None,
        key: WriteKey | None = None,
    ) -> ShardedWritten:
        """Replaces a document's metadata, or merges this into it."""
        self._require_numbers(if_position)
        shard = self._shard_of(id)
        body: dict[str, Any] = {"metadata": metadata, "merge": merge}
        if if_position is not None:
            body["if_position"] = if_position.numbers[shard]
        path = f"/documents/{quote(id, safe='')}"
        return self._written({shard: self._json_part("PATCH", path, body, None, key, shard)}, key)

    def written_under(self, key: WriteKey) -> None:
        """Always None: each shard knows its keys, and is asked by the write itself."""

    def declare(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """Declares metadata fields in every shard, once all say that they can: first in the first one, so
        that of several routers that declare a field with different types one does, and the others change no
        shard. They are there once all shards have them: where one is lost meanwhile, or has got a document of
        another type, a repeat that it accepts declares them wherever they are not declared yet.
        """
        body, deadline = {"fields": dict(fields)}, within(DECLARING_SECONDS)
        check, path = f"{COLLECTIONS}/{self._settings.name}/fields/check", f"{self._path}/fields"
        try:
            self._fleet.all(lambda shard: shard.json("POST", check, body, deadline=deadline))
            for some in (range(1), range(1, len(self._fleet))):
                self._fleet.require(
                    dict.fromkeys(some, lambda shard: shard.json("POST", path, body, deadline=deadline))
                )
        finally:
            self._outdated()
        return self._settings.with_fields(fields)

    def begin_merge(self) -> None:
        """Has every shard flush and merge."""
        path = f"{self._path}/merge"
        self._fleet.all(lambda shard: shard.json("POST", path, deadline=self._deadline))

    def _shard_of(self, id: str) -> int:
        """The shard of a document: of a partitioned collection the one that has it, if any does."""
        if not self._settings.partitioned:
            return self._placement.shard_of(id)
        path, body = f"{self._path}/documents/get", {"ids": [id]}
        every = range(len(self._fleet))
        answers = self._fleet.outcomes(
            dict.fromkeys(every, lambda shard: shard.json("POST", path, body, deadline=self._deadline))
        )
        failures = [answer for answer in answers.values() if isinstance(answer, Exception)]
        for shard, answer in answers.items():
            if not isinstance(answer, Exception) and answer["documents"]:
                return shard
        if failures:
            raise failures[0]
        return self._placement.shard_of(id)

    @contextmanager
    def _claimed_elsewhere(self, documents: Sequence[Document], placed: Int64) -> Iterator[None]:
        """Within it, shards of a partitioned collection put no documents of the ids that others get. placed:
        int64[N], the shard of each, -1 of those that are not put. Raises PartitionConflictError where a shard
        has such an id, FencedPartsError as a put.
        """
        elsewhere = {
            shard: [documents[row].id for row in np.flatnonzero((placed >= 0) & (placed != shard)).tolist()]
            for shard in range(len(self._fleet) if self._settings.partitioned else 0)
        }
        path, owner = f"{COLLECTIONS}/{self._settings.name}/claims", secrets.token_hex(8)

        def claiming(ids: list[str], *, ends: bool) -> Ask[None]:
            async def ask(shard: ShardClient) -> None:
                body = {"ids": ids, "owner": owner, "ends": ends}
                await shard.json("POST", path, body, deadline=self._deadline)

            return ask

        def failures(*, ends: bool) -> list[Exception]:
            asks = {shard: claiming(ids, ends=ends) for shard, ids in elsewhere.items() if ids}
            outcomes = self._fleet.outcomes(asks).values()
            return [outcome for outcome in outcomes if isinstance(outcome, Exception)]

        is_unknown = False
        try:
            if failed := failures(ends=False):
                fenced = [each for each in failed if isinstance(each, CollectionFencedError)]
                if len(fenced) == len(failed):
                    raise FencedPartsError(failed[0], 0, frozenset(placed[placed >= 0].tolist()))
                raise next(each for each in failed if each not in fenced)
            yield
        except ShardWriteError:  # a part may be made later, so the claims end by themselves
            is_unknown = True
            raise
        finally:
            if not is_unknown:
                failures(ends=True)

    def _of_ids(self, ids: Sequence[str], partition: str | None) -> dict[int, dict[str, Any]]:
        """What shards are sent to choose documents by: of each its own ids, of a partitioned collection all
        that any shard of the partition may have.
        """
        own: dict[int, list[str]] = {}
        if self._settings.partitioned:
            within = within_partition(None, partition)
            shards = shards_allowed(within, self._settings, self._placement)
            own = {shard: list(ids) for shard in shards}
        else:
            for id, shard in zip(ids, self.places(ids).tolist(), strict=True):
                own.setdefault(shard, []).append(id)
        allowed = {} if partition is None else {"partition": partition}
        return {shard: {"ids": some, **allowed} for shard, some in own.items()}

    def _of_filter(self, filter: Filter) -> dict[int, dict[str, Any]]:
        """The same of a filter, which all are sent that may have such documents, and hold against the fields
        that are declared by now.
        """
        tree = tree_of(filter)
        return {shard: {"filter": tree} for shard in shards_allowed(filter, self._settings, self._placement)}

    def _changed(
        self, verb: str, bodies: Mapping[int, dict[str, Any]], key: WriteKey | None
    ) -> ShardedWritten:
        """What `POST …/documents/delete` or `…/update` did with these bodies."""
        asks = {
            shard: self._json_part("POST", f"/documents/{verb}", body, f"{verb}d", key, shard)
            for shard, body in bodies.items()
        }
        return self._written(asks, key)

    def _json_part(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        counted: str | None,
        key: WriteKey | None,
        shard: int,
    ) -> Ask[Part]:
        given = body if key is None else {**body, "idempotency_key": key.key}
        return self._part(
            method, path, orjson.dumps(given), key, shard, counted=counted, repeatable=key is not None
        )

    def _part(
        self,
        method: str,
        path: str,
        body: bytes,
        key: WriteKey | None,
        shard: int,
        *,
        counted: str | None,
        content_type: str = JSON,
        repeatable: bool,
    ) -> Ask[Part]:
        """Has a shard take its part. counted: the field of its answer that counts documents, None for one."""

        async def ask(client: ShardClient) -> Part:
            answer = await client.send(
                method,
                self._path + path,
                body,
                content_type,
                headers=self._digest(key, shard),
                deadline=self._deadline,
                repeatable=repeatable,
            )
            with reading(client.name):
                found = orjson.loads(answer.body)
                return Part(int(found["position"]), 1 if counted is None else int(found[counted]))

        return ask

    def _digest(self, key: WriteKey | None, shard: int) -> Headers:
        """What tells a repeat of a part from another write: the digest of the whole, and whose part it is."""
        if key is None:
            return NO_HEADERS
        part = f"{key.request_sha256} {shard} of {len(self._fleet)}"
        return {"Idempotency-Digest": hashlib.sha256(part.encode()).hexdigest()}

    def _written(
        self, asks: Mapping[int, Ask[Part]], key: WriteKey | None, tokens: int = 0
    ) -> ShardedWritten:
        """What all parts together did."""
        taken: dict[int, Part] = {}
        failed: dict[str, Exception] = {}
        for shard, found in self._outcomes(asks, key).items():
            if isinstance(found, Exception):
                failed[self._fleet.clients[shard].name] = self._seen(shard, found)
            else:
                taken[shard] = found
        position = self._known.note(
            self._settings.name, {shard: part.position for shard, part in taken.items()}
        )
        if failed:
            if not all(isinstance(error, ShardError | OverloadedError) for error in failed.values()):
                self._outdated()  # perhaps it was refused for what the collection is by now
            named = {self._fleet.clients[shard].name: part for shard, part in taken.items()}
            failure = failure_of_parts(named, failed, position, keyed=key is not None)
            if all(isinstance(error, CollectionFencedError) for error in failed.values()):
                done = sum(part.documents for part in taken.values())
                raise FencedPartsError(failure, done, frozenset(asks) - frozenset(taken))
            raise failure
        return ShardedWritten(str(position), sum(part.documents for part in taken.values()), tokens)

    def _outcomes(self, asks: Mapping[int, Ask[Part]], key: WriteKey | None) -> dict[int, Part | Exception]:
        """What shards do, by their numbers. The one that the key's hash names is the first: where it refuses
        the key, as that of another write, no other is asked. So two writes under one key never both begin.
        """
        if key is None:
            return self._fleet.outcomes(asks)
        home = self._placement.shard_of(key.key)
        first = self._fleet.outcomes({home: asks[home] if home in asks else self._claim(key, home)})
        if isinstance(first[home], Exception):
            return first
        return first | self._fleet.outcomes({shard: ask for shard, ask in asks.items() if shard != home})

    def _claim(self, key: WriteKey, home: int) -> Ask[Part]:
        """Has a shard without a part note the key: it is sent a delete that finds nothing."""
        claim = self._json_part("POST", "/documents/delete", {"ids": [NO_ID]}, "deleted", key, home)

        async def ask(client: ShardClient) -> Part:
            return Part((await claim(client)).position, 0)

        return ask

    def _seen(self, shard: int, failure: Exception) -> Exception:
        """A failure of a shard; where its writing server has not got the collection, and did not delete it,
        as what that is: a client that made it anew there would hide what the replicas have.
        """
        lost = isinstance(failure, CollectionNotFoundError) and not failure.was_deleted
        if not lost or len(self._fleet.servers[shard]) == 1:
            return failure
        return lost_here(self._settings.name, self._fleet.clients[shard].name)

    def _require_numbers(self, position: Positions | None) -> None:
        if position is not None:
            require_numbers(position, len(self._fleet), "if_position")

    def _require_fitting(self, bodies: Mapping[int, bytes]) -> None:
        """Raises RequestTooLargeError where a shard would refuse its body for its size."""
        large = {shard: body for shard, body in bodies.items() if len(body) > SMALL_BYTES}
        if not large:
            return
        limits = self._fleet.require(
            dict.fromkeys(large, lambda shard: shard.largest_body_bytes(self._deadline))
        )
        for shard, limit in limits.items():
            if len(large[shard]) > limit:
                raise RequestTooLargeError(
                    f"the documents for shard {self._fleet.clients[shard].name} have {len(large[shard])} "
                    f"bytes with their representations; it takes {limit} (its setting max_body_bytes): write "
                    "fewer at a time, or raise that"
                )
