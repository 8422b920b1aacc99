"""Search by late interaction with fast-plaid: `pip install fast-plaid==1.7.0.2110 numpy`.

Takes a .npz with vectors float32[T, C] and offsets int64[N+1] of documents, and the same of queries
(query_vectors, query_offsets); a folder for the index; how often to repeat. Prints what each query finds,
best first, and its fastest run's milliseconds, with the defaults of the library but for the number of hits.
"""

import json
import sys
import time

import numpy as np
import torch
from fast_plaid import search

arrays = np.load(sys.argv[1])


def texts(vectors: str, offsets: str) -> list[torch.Tensor]:
    edges = arrays[offsets][1:-1].tolist()
    return [torch.from_numpy(each.copy()) for each in np.split(arrays[vectors], edges)]


index = search.FastPlaid(index=sys.argv[2], device="cpu")
index.create(documents_embeddings=texts("vectors", "offsets"))
times, found = [], []
for query in texts("query_vectors", "query_offsets"):
    runs = []
    for _ in range(int(sys.argv[3])):
        started = time.perf_counter()
        (hits,) = index.search(queries_embeddings=query[None], top_k=20, show_progress=False)
        runs.append(1000 * (time.perf_counter() - started))
    times.append(min(runs))
    found.append([number for number, _ in hits])
print(json.dumps({"times": times, "found": found}))
