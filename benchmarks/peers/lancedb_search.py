"""Search with LanceDB, embedded: `pip install lancedb==0.40.0 pyarrow numpy`. Dense alone: it has no lexical
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from asked import TOP, Search, Vectors, main

EF, REFINE, PROBES = 200, 4, 20


def build(documents: Vectors, folder: Path, queries: Vectors) -> dict[str, Search]:
    """Graphs over 8-bit values in lists, whose best are scored again; and lists of full vectors."""
    count, dimension = documents.dense.shape
    values = pa.array(documents.dense.reshape(-1))
    rows = pa.table({"id": np.arange(count), "vector": pa.FixedSizeListArray.from_arrays(values, dimension)})
    database = lancedb.connect(folder)
    graphs, lists = database.create_table("graphs", rows), database.create_table("lists", rows)
    graphs.create_index(
        metric="dot", index_type="IVF_HNSW_SQ", vector_column_name="vector", m=32, ef_construction=200
    )
    lists.create_index(metric="dot", index_type="IVF_FLAT", vector_column_name="vector")

    def graph_search(place: int) -> Sequence[int]:
        query = graphs.search(queries.dense[place]).distance_type("dot").nprobes(PROBES).ef(EF)
        return query.refine_factor(REFINE).limit(TOP).select(["id"]).to_arrow()["id"].to_pylist()

    def list_search(place: int) -> Sequence[int]:
        query = lists.search(queries.dense[place]).distance_type("dot").nprobes(PROBES)
        return query.limit(TOP).select(["id"]).to_arrow()["id"].to_pylist()

    return {"dense": graph_search, "dense by lists": list_search}


if __name__ == "__main__":
    main(build)
