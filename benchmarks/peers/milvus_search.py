"""Search with Milvus Lite, embedded: `pip install milvus-lite==3.2.2 pymilvus==3.0.2 numpy`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asked import PROPOSED, TOP, Search, Vectors, main
from pymilvus import AnnSearchRequest, DataType, MilvusClient, WeightedRanker

NAME, BATCH = "peer", 1000


def build(documents: Vectors, folder: Path, queries: Vectors) -> dict[str, Search]:
    """A graph of the size of ours, and an inverted index."""
    client = MilvusClient(str(folder / "peer.db"))
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=documents.dense.shape[1])
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    params = client.prepare_index_params()
    params.add_index("dense", index_type="HNSW", metric_type="IP", params={"M": 32, "efConstruction": 200})
    params.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    client.create_collection(NAME, schema=schema, index_params=params)
    rows = [
        {"id": number, "dense": dense, "sparse": dict(zip(*sparse, strict=True))}
        for number, (dense, sparse) in enumerate(zip(documents.dense, documents.sparse, strict=True))
    ]
    for start in range(0, len(rows), BATCH):
        client.insert(NAME, rows[start : start + BATCH])
    client.flush(NAME)
    client.load_collection(NAME)
    near = {"metric_type": "IP", "params": {"ef": 400}}
    sparse = [dict(zip(*each, strict=True)) for each in queries.sparse]

    def dense_search(place: int) -> Sequence[int]:
        (hits,) = client.search(
            NAME, [queries.dense[place]], anns_field="dense", limit=TOP, search_params=near
        )
        return [hit["id"] for hit in hits]

    def hybrid_search(place: int) -> Sequence[int]:
        sides = [
            AnnSearchRequest([queries.dense[place]], "dense", near, limit=PROPOSED),
            AnnSearchRequest([sparse[place]], "sparse", {"metric_type": "IP"}, limit=PROPOSED),
        ]
        (hits,) = client.hybrid_search(NAME, sides, WeightedRanker(1.0, 1.0), limit=TOP)
        return [hit["id"] for hit in hits]

    return {"dense": dense_search, "dense and lexical": hybrid_search}


if __name__ == "__main__":
    main(build)
