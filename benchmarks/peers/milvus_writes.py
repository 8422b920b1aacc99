"""Milvus Lite, embedded: `pip install milvus-lite==3.2.2 pymilvus==3.0.2 numpy`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands import DIMENSION, dense, main, sparse
from pymilvus import DataType, MilvusClient

NAME = "peer"


class Milvus:
    """A collection with a flat dense index and an inverted one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._client = MilvusClient(str(folder / "peer.db"))
        if not self._client.has_collection(NAME):
            schema = self._client.create_schema(auto_id=False)
            schema.add_field("id", DataType.INT64, is_primary=True)
            schema.add_field("dense", DataType.FLOAT_VECTOR, dim=DIMENSION)
            schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
            params = self._client.prepare_index_params()
            params.add_index("dense", index_type="FLAT", metric_type="IP")
            params.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
            self._client.create_collection(NAME, schema=schema, index_params=params)
        self._client.load_collection(NAME)

    def put(self, numbers: Sequence[int]) -> None:
        rows = []
        for number in numbers:
            terms, weights = sparse(number)
            values = dict(zip(terms.tolist(), weights.tolist(), strict=True))
            rows.append({"id": number, "dense": dense(number), "sparse": values})
        self._client.upsert(NAME, rows)

    def delete(self, number: int) -> None:
        self._client.delete(NAME, ids=[number])

    def nearest(self, number: int) -> int | None:
        (hits,) = self._client.search(NAME, [dense(number)], anns_field="dense", limit=1)
        return int(hits[0]["id"]) if hits else None


if __name__ == "__main__":
    main(Milvus)
