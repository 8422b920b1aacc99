"""A collection over shards as what documents are written to: each shard gets its part of a write.

A part is there whole or not at all, as a write of that shard. A write over several is no transaction: where
one shard fails, those that took their parts keep them, and the error says so. With an idempotency key a
repeat completes it, since each shard knows the key, and one of them is asked first, whatever the write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from tercet.cluster.router.bodies import body_of, require_fitting
from tercet.cluster.router.claims import claimed
from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.held_writes import HeldWrites
from tercet.cluster.router.partial_writes import FencedPartsError, Part, ShardedWritten, failure_of_parts
from tercet.cluster.router.partitions import shards_allowed
from tercet.cluster.router.positions import require_numbers
from tercet.cluster.router.shard_set import ShardSet
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
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
from tercet.service.exceptions import OverloadedError, ShardError
from tercet.service.load.deadlines import NO_DEADLINE, Deadline, within
from tercet.service.remote.transport import JSON, NO_HEADERS, Headers
from tercet.service.shard.messages import COLLECTIONS

DECLARING_SECONDS = 3600.0  # every document's metadata is read


class ShardedWriter:
    """In the place of `tercet.index.live.collection.LiveCollection`, for one request. Its methods wait for
    shards and are for threads other than that of the event loop.

    Where some shards took their parts and others did not, each raises ShardWriteError. What shards refuse
    because the collection moves waits for those that it moves to.
    """

    def __init__(
        self,
        newest: Callable[[], tuple[ShardSet, KnownCollection]],
        deadline: Deadline = NO_DEADLINE,
        look: Callable[[], None] | None = None,
    ) -> None:
        """newest: gives the shards of then, and what is known of the collection. deadline: for all answers.
        look: has a newer map looked for; None where none can name other shards.
        """
        self._newest = newest
        self._deadline = deadline
        self._look = look
        self._held = HeldWrites(None if look is None else self._go_on, deadline)
        self._shards, self._collection = newest()

    @property
    def settings(self) -> CollectionSettings:
        """What was fixed when the collection was created, with the fields declared since."""
        return self._collection.description.settings

    def put(
        self,
        documents: Sequence[Document],
        representations: Representations,
        windows: DocumentWindows | None = None,
        *,
        if_position: Positions | None = None,
        key: WriteKey | None = None,
        tokens: int = 0,
    ) -> ShardedWritten:
        """Adds or replaces documents. if_position: each document is held against the number of its shard.

        Raises RequestTooLargeError where a shard's part is larger than it takes, PartitionConflictError where
        an id is in another partition; then nothing is written.
        """
        partitioned = self.settings.partitioned
        keys = [placed_by(document, partitioned=partitioned) for document in documents]

        def attempt(rows: Int64) -> ShardedWritten:
            self._require_numbers(if_position)
            placed, bodies = self._places(keys)[rows], dict[int, bytes]()
            for shard in np.unique(placed).tolist():
                metadata = {"fingerprint": self.settings.fingerprint}
                if key is not None:
                    metadata["idempotency_key"] = key.key
                if if_position is not None:
                    metadata["if_position"] = str(if_position.numbers[shard])
                bodies[shard] = body_of(documents, representations, windows, rows[placed == shard], metadata)
            require_fitting(self._fleet, bodies, self._deadline)
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
            named = [(documents[row].id, keys[row]) for row in rows.tolist()] if partitioned else []
            with claimed(self._fleet, self.settings.name, named, placed, self._deadline):
                return self._written(asks, key, tokens)

        return self._held.of_keys(keys, self._places, attempt, holds=if_position is None)

    def delete(
        self, ids: Sequence[str], *, partition: str | None = None, key: WriteKey | None = None
    ) -> ShardedWritten:
        """Removes documents; ids that are not there, or are in another partition, count nothing."""
        return self._by_ids(ids, partition, lambda chosen: self._changed("delete", chosen, key), adds=True)

    def delete_matching(self, filter: Filter, *, key: WriteKey | None = None) -> ShardedWritten:
        """Removes the documents that a filter over declared fields allows."""
        return self._held.whole(lambda: self._changed("delete", self._of_filter(filter), key), adds=True)

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

        def attempt(chosen: Mapping[int, dict[str, Any]]) -> ShardedWritten:
            change = {"metadata": metadata, "merge": merge}
            return self._changed("update", {shard: {**body, **change} for shard, body in chosen.items()}, key)

        if isinstance(which, Filter):
            return self._held.whole(lambda: attempt(self._of_filter(which)))
        return self._by_ids(which, partition, attempt)

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
        path = f"/documents/{quote(id, safe='')}"

        def attempt() -> ShardedWritten:
            self._require_numbers(if_position)
            shard = self._shard_of(id)
            body: dict[str, Any] = {"metadata": metadata, "merge": merge}
            if if_position is not None:
                body["if_position"] = if_position.numbers[shard]
            return self._written({shard: self._json_part("PATCH", path, body, None, key, shard)}, key)

        return self._held.whole(attempt, holds=if_position is None)

    def written_under(self, key: WriteKey) -> None:
        """Always None: each shard knows its keys, and is asked by the write itself."""

    def declare(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """Declares metadata fields in every shard, once all say that they can: first in the first one, so
        that of several routers that declare a field with different types one does, and the others change no
        shard. They are there once all shards have them: where one is lost meanwhile, or has got a document of
        another type, a repeat that it accepts declares them wherever they are not declared yet.
        """
        body, deadline = {"fields": dict(fields)}, within(DECLARING_SECONDS)
        check, path = f"{COLLECTIONS}/{self.settings.name}/fields/check", f"{self._path}/fields"
        try:
            self._fleet.all(lambda shard: shard.json("POST", check, body, deadline=deadline))
            for some in (range(1), range(1, len(self._fleet))):
                self._fleet.require(
                    dict.fromkeys(some, lambda shard: shard.json("POST", path, body, deadline=deadline))
                )
        finally:
            self._collection.is_stale = True
        return self.settings.with_fields(fields)

    def begin_merge(self) -> None:
        """Has every shard flush and merge."""
        self._fleet.all(lambda shard: shard.json("POST", f"{self._path}/merge", deadline=self._deadline))

    @property
    def _fleet(self) -> Fleet:
        return self._shards.fleet

    @property
    def _path(self) -> str:
        return f"/collections/{self.settings.name}"

    def _go_on(self) -> None:
        """Writes to the shards of then from now on."""
        if self._look is not None:
            self._look()
        self._shards, self._collection = self._newest()

    def _places(self, keys: Sequence[str]) -> Int64:
        """The shard of each key that a document is placed by, int64[N]."""
        return self._shards.placement.shards_of(keys)

    def _shard_of(self, id: str) -> int:
        """The shard of a document: of a partitioned collection the one that has it, if any does."""
        if not self.settings.partitioned:
            return self._shards.placement.shard_of(id)
        path, body = f"{self._path}/documents/get", {"ids": [id]}
        answers = self._fleet.outcomes(
            dict.fromkeys(
                range(len(self._fleet)),
                lambda shard: shard.json("POST", path, body, deadline=self._deadline),
            )
        )
        failures = [answer for answer in answers.values() if isinstance(answer, Exception)]
        for shard, answer in answers.items():
            if not isinstance(answer, Exception) and answer["documents"]:
                return shard
        if failures:
            if all(isinstance(failure, CollectionFencedError) for failure in failures):
                raise FencedPartsError(failures[0], 0, frozenset(answers))
            raise failures[0]
        return self._shards.placement.shard_of(id)

    def _by_ids(
        self,
        ids: Sequence[str],
        partition: str | None,
        attempt: Callable[[Mapping[int, dict[str, Any]]], ShardedWritten],
        *,
        adds: bool = False,
    ) -> ShardedWritten:
        """What is done to documents by their ids. attempt: is given what each shard is sent to choose them
        by: its own ids, or of a partitioned collection all, where it may have some. adds: as for what is
        whole.
        """
        allowed = {} if partition is None else {"partition": partition}
        if self.settings.partitioned:

            def everywhere() -> ShardedWritten:
                shards = self._allowed(within_partition(None, partition)) if ids else ()
                return attempt({shard: {"ids": list(ids), **allowed} for shard in shards})

            return self._held.whole(everywhere, adds=adds)

        def own(rows: Int64) -> ShardedWritten:
            chosen: dict[int, dict[str, Any]] = {}
            for row, shard in zip(rows.tolist(), self._places(ids)[rows].tolist(), strict=True):
                chosen.setdefault(shard, {"ids": [], **allowed})["ids"].append(ids[row])
            return attempt(chosen)

        return self._held.of_keys(ids, self._places, own)

    def _of_filter(self, filter: Filter) -> dict[int, dict[str, Any]]:
        """What shards are sent to choose documents by a filter: all that may have some, which hold it against
        the fields that are declared by now.
        """
        tree = tree_of(filter)
        return {shard: {"filter": tree} for shard in self._allowed(filter)}

    def _allowed(self, filter: Filter | None) -> Sequence[int]:
        return shards_allowed(filter, self.settings, self._shards.placement)

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
        position = self._shards.positions.note(
            self.settings.name, {shard: part.position for shard, part in taken.items()}
        )
        if failed:
            if not all(isinstance(error, ShardError | OverloadedError) for error in failed.values()):
                self._collection.is_stale = True  # perhaps it was refused for what that is by now
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
        home = self._shards.placement.shard_of(key.key)
        first = self._fleet.outcomes({home: asks[home] if home in asks else self._note_key(key, home)})
        if isinstance(first[home], Exception):
            return first
        return first | self._fleet.outcomes({shard: ask for shard, ask in asks.items() if shard != home})

    def _note_key(self, key: WriteKey, home: int) -> Ask[Part]:
        """Has a shard without a part note the key: it is sent a delete of an id that none can have."""
        claim = self._json_part("POST", "/documents/delete", {"ids": [""]}, "deleted", key, home)

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
        return lost_here(self.settings.name, self._fleet.clients[shard].name)

    def _require_numbers(self, position: Positions | None) -> None:
        if position is not None:
            require_numbers(position, len(self._fleet), "if_position")
