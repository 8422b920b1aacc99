"""Arrays of safetensors files, which strangers may have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from tercet.models.errors import CheckpointError
from tercet.models.files import UNREADABLE_ARRAYS


def read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file, by name. Raises CheckpointError naming the file where it cannot be read."""
    try:
        return load_file(path)
    except UNREADABLE_ARRAYS as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
