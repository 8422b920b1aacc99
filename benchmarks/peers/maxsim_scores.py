"""Late interaction by maxsim-cpu: `pip install maxsim-cpu==0.1.0 numpy`. Prints milliseconds of the fastest.

Takes a .npz with queries float32[Q, N, C] and documents float32[K, L, C]; and how often to repeat.
"""

import json
import sys
import time

import maxsim_cpu
import numpy as np

arrays = np.load(sys.argv[1])
documents, times = arrays["documents"], []
for query in arrays["queries"]:
    runs = []
    for _ in range(int(sys.argv[2])):
        started = time.perf_counter()
        scores = maxsim_cpu.maxsim_scores(query, documents)
        runs.append(1000 * (time.perf_counter() - started))
    times.append(min(runs))
print(json.dumps({"median_ms": float(np.median(times)), "last": float(scores[-1])}))
