"""Milvus as an engine: a server, or a file of Milvus Lite."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pymilvus import DataType

from tercet.cluster.backends.engine import ENGINES_OWN, RECORDS, RECORDS_AT_ONCE, Records, Replication
from tercet.cluster.backends.milvus.collection import IN_ORDER, ExportedMilvusCollection
from tercet.cluster.backends.milvus.filters import literal
from tercet.cluster.backends.milvus.written import WrittenMilvusCollection
from tercet.cluster.backends.records import answering, exported_of
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import InvalidNameError
from tercet.transfer.milvus.connection import MilvusPlace, milvus_errors
from tercet.transfer.milvus.rows import ARRAY_ITEMS, ID_BYTES, STRING_BYTES

NAME = re.compile(r"[a-z][a-z0-9_]*")
STRONG = "Strong"
NO_VECTOR = [0.0, 0.0]  # Milvus takes no row without a vector


class MilvusEngine:
    """See `tercet.cluster.backends.engine.Engine`."""

    def __init__(self, place: MilvusPlace, replication: Replication = ENGINES_OWN) -> None:
        """Raises BackendError."""
        self.name = f"Milvus at {place.uri}"
        self.timeout_seconds = (place.timeout_seconds or 0) if place.remote else 0
        self._place = place
        self._replication = replication
        self._records_loaded = False
        with answering(milvus_errors(self.name)):
            self._client = place.open()

    def names(self) -> list[str]:
        with answering(milvus_errors(self.name)):
            found = self._client.list_collections()
            return sorted(name for name in found if self._place.described(self._client, name) is not None)

    def open(self, name: str) -> ExportedMilvusCollection | None:
        shown = self._shown(name)
        with answering(milvus_errors(shown)):
            if not self._client.has_collection(name):
                return None
            record = self._place.described(self._client, name)
            if record is None:
                return None
            self._client.load_collection(name)
        timeout = self._place.timeout_seconds
        return ExportedMilvusCollection(self._client, name, shown, exported_of(record, shown), timeout)

    def exists(self, name: str) -> bool:
        with answering(milvus_errors(self._shown(name))):
            return bool(self._client.has_collection(name))

    def create(self, settings: CollectionSettings) -> None:
        if not NAME.fullmatch(settings.name):
            raise InvalidNameError(
                f"collection name {settings.name!r} is none for Milvus, which takes letters, digits and "
                "underscores, the first a letter; choose another"
            )
        sides = {
            "dense": settings.dense_dimension,
            "sparse": settings.vocabulary_size,
            "words": settings.bm25,
        }
        schema, indexes = self._client.create_schema(auto_id=False), self._client.prepare_index_params()
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=ID_BYTES)
        schema.add_field("title", DataType.VARCHAR, max_length=STRING_BYTES, nullable=True)
        schema.add_field("text", DataType.VARCHAR, max_length=STRING_BYTES)
        schema.add_field("metadata", DataType.JSON)
        schema.add_field("position", DataType.INT64)
        schema.add_field(
            "rows",
            DataType.ARRAY,
            element_type=DataType.VARCHAR,
            max_capacity=ARRAY_ITEMS,
            max_length=STRING_BYTES,
        )
        for side in (name for name, there in sides.items() if there):
            if side == "dense":
                schema.add_field(side, DataType.FLOAT_VECTOR, dim=settings.dense_dimension)
                kind = "AUTOINDEX" if self._place.remote else "FLAT"
            else:
                schema.add_field(side, DataType.SPARSE_FLOAT_VECTOR)
                kind = "SPARSE_INVERTED_INDEX"
            indexes.add_index(side, index_type=kind, metric_type="IP")
        self._create(settings.name, schema, indexes, self._replication.consistency)

    def drop(self, name: str) -> None:
        with answering(milvus_errors(self._shown(name))):
            self._client.drop_collection(name)

    def written(self, settings: CollectionSettings) -> WrittenMilvusCollection:
        name, shown = settings.name, self._shown(settings.name)
        self._load(name)
        timeout, flushes = self._place.timeout_seconds, not self._place.remote
        return WrittenMilvusCollection(self._client, name, shown, settings, timeout, flushes=flushes)

    def records(self, group: str, key: str | None = None) -> Records:
        with answering(milvus_errors(self.name)):
            if not self._has_records():
                return {}
            options: dict[str, Any] = {
                "timeout": self._place.timeout_seconds,
                "output_fields": ["key", "record"],
                "consistency_level": STRONG,
            }
            if key is not None:
                found = self._client.get(RECORDS, ids=[_record_id(group, key)], **options)
                return {row["key"]: row["record"] for row in found}
            records, after = dict[str, Mapping[str, Any]](), ""
            while True:
                some = self._client.query(
                    RECORDS,
                    filter=f'group == {literal(group)} and id > "{after}"',
                    limit=RECORDS_AT_ONCE,
                    **options,
                    **IN_ORDER,
                )
                records |= {row["key"]: row["record"] for row in some}
                if len(some) < RECORDS_AT_ONCE:
                    return records
                after = some[-1]["id"]

    def put_records(self, records: Mapping[str, Records]) -> None:
        rows = [
            {"id": _record_id(group, key), "group": group, "key": key, "record": record, "vector": NO_VECTOR}
            for group, own in records.items()
            for key, record in own.items()
        ]
        with answering(milvus_errors(self.name)):
            if not self._has_records():
                schema, indexes = (
                    self._client.create_schema(auto_id=False),
                    self._client.prepare_index_params(),
                )
                schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=ID_BYTES)
                for name in ("group", "key"):
                    schema.add_field(name, DataType.VARCHAR, max_length=ID_BYTES)
                schema.add_field("record", DataType.JSON)
                schema.add_field("vector", DataType.FLOAT_VECTOR, dim=len(NO_VECTOR))
                indexes.add_index("vector", index_type="FLAT", metric_type="IP")
                self._create(RECORDS, schema, indexes, STRONG)
            self._client.upsert(RECORDS, rows, timeout=self._place.timeout_seconds)

    def remove_records(self, group: str, keys: Sequence[str]) -> None:
        ids = [_record_id(group, key) for key in keys]
        if ids:
            with answering(milvus_errors(self.name)):
                self._client.delete(RECORDS, ids=ids, timeout=self._place.timeout_seconds)

    def close(self) -> None:
        """Lets go of the client."""
        self._client.close()

    def _has_records(self) -> bool:
        if not self._records_loaded and self._client.has_collection(RECORDS):
            self._load(RECORDS)
            self._records_loaded = True
        return self._records_loaded

    def _create(self, name: str, schema: Any, indexes: Any, consistency: str | None) -> None:
        shards = self._replication.shards
        with answering(milvus_errors(self._shown(name))):
            self._client.create_collection(
                name,
                schema=schema,
                index_params=indexes,
                consistency_level=consistency or STRONG,
                timeout=self._place.timeout_seconds,
                **({} if shards is None else {"num_shards": shards}),
            )

    def _load(self, name: str) -> None:
        replicas = self._replication.replicas
        with answering(milvus_errors(self._shown(name))):
            self._client.load_collection(
                name,
                timeout=self._place.timeout_seconds,
                **({} if replicas is None else {"replica_number": replicas}),
            )

    def _shown(self, name: str) -> str:
        return f"collection {name!r} of {self.name}"


def _record_id(group: str, key: str) -> str:
    return hashlib.sha256(f"{group}\0{key}".encode()).hexdigest()
