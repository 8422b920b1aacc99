"""Search with Qdrant's local mode, which scans: `pip install qdrant-client==1.20.0 numpy`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asked import PROPOSED, TOP, Search, Vectors, main
from qdrant_client import QdrantClient, models

NAME, BATCH = "peer", 1000


def build(documents: Vectors, folder: Path, queries: Vectors) -> dict[str, Search]:
    """In memory, so that building does not wait for the disk; its search is the same. Both sides are fused by
    rank, which costs it least.
    """
    client = QdrantClient(":memory:")
    client.create_collection(
        NAME,
        vectors_config={
            "dense": models.VectorParams(size=documents.dense.shape[1], distance=models.Distance.DOT)
        },
        sparse_vectors_config={"sparse": models.SparseVectorParams()},
    )
    for start in range(0, len(documents.dense), BATCH):
        client.upsert(
            NAME,
            [
                models.PointStruct(
                    id=number,
                    vector={
                        "dense": documents.dense[number].tolist(),
                        "sparse": models.SparseVector(
                            indices=documents.sparse[number][0], values=documents.sparse[number][1]
                        ),
                    },
                )
                for number in range(start, min(start + BATCH, len(documents.dense)))
            ],
        )
    dense = queries.dense.tolist()
    sparse = [models.SparseVector(indices=terms, values=weights) for terms, weights in queries.sparse]

    def dense_search(place: int) -> Sequence[int]:
        found = client.query_points(NAME, query=dense[place], using="dense", limit=TOP)
        return [int(point.id) for point in found.points]

    def hybrid_search(place: int) -> Sequence[int]:
        found = client.query_points(
            NAME,
            prefetch=[
                models.Prefetch(query=dense[place], using="dense", limit=PROPOSED),
                models.Prefetch(query=sparse[place], using="sparse", limit=PROPOSED),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=TOP,
        )
        return [int(point.id) for point in found.points]

    return {"dense": dense_search, "dense and lexical": hybrid_search}


if __name__ == "__main__":
    main(build)
