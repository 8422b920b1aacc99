"""Dense search on a GPU."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tercet.index.candidates import DenseOptions
from tercet.index.dense.kinds import Device
from tercet.index.dense.library import Float16, faiss, float32_chunks
from tercet.index.errors import DeviceUnavailableError
from tercet.models.representations import Float32, Int64

LARGEST_K = 2_048  # limit of GPU FAISS


def require_device(device: Device) -> None:
    """Raises DeviceUnavailableError where dense search cannot run on the device."""
    if device == "gpu" and (not hasattr(faiss, "StandardGpuResources") or faiss.get_num_gpus() == 0):
        raise DeviceUnavailableError(
            "dense search on a GPU was asked for, but this FAISS sees none: "
            "pip install -c constraints.txt -e '.[gpu]' on a machine with a GPU, or use the device cpu"
        )


class GpuIndex:
    """A copy of a flat or IVF-PQ index on the first GPU. GPU FAISS allows one search at a time."""

    def __init__(self, vectors: Float16, lists: Any | None) -> None:
        require_device("gpu")
        self._searching = threading.Lock()
        self._resources = faiss.StandardGpuResources()
        self._has_lists = lists is not None
        if lists is not None:
            self._index = faiss.index_cpu_to_gpu(self._resources, 0, lists)
            return
        configuration = faiss.GpuIndexFlatConfig()
        configuration.useFloat16 = True
        self._index = faiss.GpuIndexFlatIP(self._resources, vectors.shape[1], configuration)
        for rows in float32_chunks(vectors):
            self._index.add(rows)

    def propose(self, query: Float32, wanted: int, options: DenseOptions) -> Int64:
        """So many rows to be scored again, -1 where missing; none for more than the GPU's limit."""
        wanted = min(wanted, self._index.ntotal)
        if wanted > LARGEST_K:
            return np.empty(0, np.int64)
        parameters = faiss.SearchParametersIVF(nprobe=max(1, options.nprobe)) if self._has_lists else None
        with self._searching:
            rows: Int64 = self._index.search(query, wanted, params=parameters)[1][0]
        return rows
