"""Qdrant as an engine: a server, or a folder of the local mode."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from qdrant_client import models

from tercet.cluster.backends.engine import ENGINES_OWN, RECORDS, RECORDS_AT_ONCE, Records, Replication
from tercet.cluster.backends.qdrant.collection import (
    ExportedQdrantCollection,
    LateQdrantCollection,
)
from tercet.cluster.backends.qdrant.written import READ_BY, STRONG, WrittenQdrantCollection
from tercet.cluster.backends.records import answering, exported_of
from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.description import KEY
from tercet.transfer.qdrant.connection import QdrantPlace, qdrant_errors
from tercet.transfer.qdrant.points import NAMESPACE, vector_parameters


class QdrantEngine:
    """See `tercet.cluster.backends.engine.Engine`."""

    def __init__(
        self, place: QdrantPlace, replication: Replication = ENGINES_OWN, *, late: bool | None = None
    ) -> None:
        """late: whether the engine computes late interaction, by default where it is a server: its local mode
        does so of all documents, whichever are asked for. Raises BackendError.
        """
        self.name = place.shown
        self._remote = place.path is None  # the local mode has no indexes
        self.timeout_seconds = place.timeout_seconds if self._remote else 0
        self._late = self._remote if late is None else late
        self._replication = replication
        consistency = replication.consistency
        self._consistency: Any = int(consistency) if consistency and consistency.isdecimal() else consistency
        with answering(qdrant_errors(self.name)):
            self._client = place.open()

    def names(self) -> list[str]:
        with answering(qdrant_errors(self.name)):
            found = [each.name for each in self._client.get_collections().collections]
            return sorted(name for name in found if self._record(name) is not None)

    def open(self, name: str) -> ExportedQdrantCollection | None:
        shown = self._shown(name)
        with answering(qdrant_errors(shown)):
            if not self._client.collection_exists(name):
                return None
            record = self._record(name)
        if record is None:
            return None
        exported = exported_of(record, shown)
        late = self._late and exported.settings.stores_token_vectors
        kind = LateQdrantCollection if late else ExportedQdrantCollection
        return kind(self._client, name, shown, exported)

    def exists(self, name: str) -> bool:
        with answering(qdrant_errors(self._shown(name))):
            return self._client.collection_exists(name)

    def create(self, settings: CollectionSettings) -> None:
        vectors = vector_parameters(settings)
        vectors.pop("colbert", None)  # codes lie in the payload
        if settings.dense_dimension == 0:
            vectors.pop("dense")
        sides = [*(["sparse"] if settings.vocabulary_size else []), *(["words"] if settings.bm25 else [])]
        self._create(settings.name, vectors, sides)
        self.written(settings).declare(settings.fields)

    def drop(self, name: str) -> None:
        with answering(qdrant_errors(self._shown(name))):
            self._client.delete_collection(name)

    def written(self, settings: CollectionSettings) -> WrittenQdrantCollection:
        shown = self._shown(settings.name)
        several = settings.window is not None
        return WrittenQdrantCollection(
            self._client,
            settings.name,
            shown,
            settings,
            several=several,
            consistency=self._consistency or READ_BY,
            has_indexes=self._remote,
        )

    def records(self, group: str, key: str | None = None) -> Records:
        with answering(qdrant_errors(self.name)):
            if not self._client.collection_exists(RECORDS):
                return {}
            if key is not None:
                found = self._client.retrieve(RECORDS, [_record_id(group, key)], consistency=READ_BY)
                payloads = [each.payload or {} for each in found]
                return {payload["key"]: orjson.loads(payload["record"]) for payload in payloads}
            records, offset = dict[str, Mapping[str, Any]](), None
            while True:
                some, offset = self._client.scroll(
                    RECORDS,
                    models.Filter(
                        must=[models.FieldCondition(key="group", match=models.MatchValue(value=group))]
                    ),
                    limit=RECORDS_AT_ONCE,
                    offset=offset,
                    consistency=READ_BY,
                )
                for payload in (each.payload or {} for each in some):
                    records[payload["key"]] = orjson.loads(payload["record"])
                if offset is None:
                    return records

    def put_records(self, records: Mapping[str, Records]) -> None:
        points: dict[int | None, list[models.PointStruct]] = {}
        for group, own in records.items():
            for key, record in own.items():
                position = record.get("position")
                payload = {"group": group, "key": key, "record": orjson.dumps(record).decode()}
                payload |= {} if position is None else {"position": position}
                point = models.PointStruct(id=_record_id(group, key), vector={}, payload=payload)
                points.setdefault(position, []).append(point)
        with answering(qdrant_errors(self.name)):
            if not self._client.collection_exists(RECORDS):
                self._create(RECORDS, {}, [])
                if self._remote:
                    self._client.create_payload_index(RECORDS, "group", models.PayloadSchemaType.KEYWORD)
            for position, some in points.items():
                self._client.upsert(RECORDS, some, ordering=STRONG, update_filter=_none_later(position))

    def remove_records(self, group: str, keys: Sequence[str]) -> None:
        ids: list[Any] = [_record_id(group, key) for key in keys]
        if not ids:  # which Qdrant refuses
            return
        with answering(qdrant_errors(self.name)):
            self._client.delete(RECORDS, models.PointIdsList(points=ids), ordering=STRONG)

    def close(self) -> None:
        """Lets go of the client."""
        self._client.close()

    def _create(self, name: str, vectors: Mapping[str, models.VectorParams], sparse: Sequence[str]) -> None:
        replicas = self._replication.replicas
        with answering(qdrant_errors(self._shown(name))):
            self._client.create_collection(
                name,
                vectors_config=vectors,
                sparse_vectors_config={side: models.SparseVectorParams() for side in sparse} or None,
                shard_number=self._replication.shards,
                replication_factor=replicas,
                # With reads by a majority, each sees the last write.
                write_consistency_factor=None if replicas is None else replicas // 2 + 1,
            )

    def _shown(self, name: str) -> str:
        return f"collection {name!r} of {self.name}"

    def _record(self, name: str) -> Any:
        return (self._client.get_collection(name).config.metadata or {}).get(KEY)


def _none_later(position: int | None) -> models.Filter | None:
    """Allows a point to be replaced that has no later position; one that is not there is always put."""
    if position is None:
        return None
    return models.Filter(must_not=[models.FieldCondition(key="position", range=models.Range(gt=position))])


def _record_id(group: str, key: str) -> str:
    return str(uuid.uuid5(NAMESPACE, f"{group}\0{key}"))
