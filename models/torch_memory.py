"""What torch says where memory does not suffice, and giving back what it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tercet.models.errors import EncoderMemoryError

# What messages of plain RuntimeErrors say where memory was not to be had: on a CPU from torch or oneDNN
# (which names no reason), on a GPU outside torch's own allocator, which has a class for it.
OUT_OF_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "could not create a primitive",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turns torch's errors of memory into EncoderMemoryError; others pass."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in OUT_OF_MEMORY):
            raise EncoderMemoryError(str(error)) from None
        raise


def release_memory(device: torch.device) -> None:
    """Gives blocks of a GPU that torch keeps for later back to it: in other sizes they may suffice."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
