"""Qdrant's local mode: `pip install qdrant-client==1.20.0 numpy`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands import DIMENSION, dense, main, sparse
from qdrant_client import QdrantClient, models

NAME = "peer"


class Qdrant:
    """A collection with dense and sparse vectors, which are scanned."""

    def __init__(self, folder: Path) -> None:
        self._client = QdrantClient(path=str(folder))
        if not self._client.collection_exists(NAME):
            self._client.create_collection(
                NAME,
                vectors_config={"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)},
                sparse_vectors_config={"sparse": models.SparseVectorParams()},
            )

    def put(self, numbers: Sequence[int]) -> None:
        points = []
        for number in numbers:
            terms, weights = sparse(number)
            values = models.SparseVector(indices=terms.tolist(), values=weights.tolist())
            points.append(
                models.PointStruct(id=number, vector={"dense": dense(number).tolist(), "sparse": values})
            )
        self._client.upsert(NAME, points, wait=True)

    def delete(self, number: int) -> None:
        self._client.delete(NAME, models.PointIdsList(points=[number]), wait=True)

    def nearest(self, number: int) -> int | None:
        found = self._client.query_points(NAME, query=dense(number).tolist(), using="dense", limit=1).points
        return int(found[0].id) if found else None


if __name__ == "__main__":
    main(Qdrant)
