"""What makes two encoders the same: a hash over weights, heads, tokenizer and encoding settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tercet.models.checkpoint import EncodingSettings, read_json
from tercet.models.errors import CheckpointError
from tercet.models.files import is_file_name
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.representations import Float32, Int32

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
WEIGHT_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, hexadecimal. Raises CheckpointError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def weight_files(folder: Path) -> list[Path]:
    """The files holding a model's weights, shards in order of their names.

    Raises CheckpointError where there are none, or where the index of shards does not name them.
    """
    folder = transformer_folder(folder)
    for name in WEIGHT_FILES:
        if (folder / name).is_file():
            return [folder / name]
    for name in WEIGHT_INDEXES:
        if (folder / name).is_file():
            return [folder / shard for shard in _shards(folder / name)]
    raise CheckpointError(
        f"{folder / WEIGHT_FILES[0]} is missing, and so is {WEIGHT_FILES[1]}: this folder has no weights; "
        "the onnx engine needs none where onnx/ holds an exported graph"
    )


def _shards(index: Path) -> list[str]:
    named = read_json(index).get("weight_map")
    if not isinstance(named, dict) or not all(map(is_file_name, named.values())):
        raise CheckpointError(f"{index}: weight_map must name the file of each tensor, all beside it")
    return sorted(set(named.values()))


def has_weights(folder: Path) -> bool:
    """Whether a checkpoint folder holds a model's weights."""
    folder = transformer_folder(folder)
    return any((folder / name).is_file() for name in (*WEIGHT_FILES, *WEIGHT_INDEXES))


def weights_digest(folder: Path) -> str:
    """sha256 over a model's weight files."""
    digests = [file_digest(file) for file in weight_files(folder)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def arrays_digest(arrays: Mapping[str, Float32 | Int32]) -> str:
    """sha256 over names, shapes and values of float32 or int32, whichever file format they came in."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {list(arrays[name].shape)}\n".encode())
        stored = "<i4" if arrays[name].dtype == np.int32 else "<f4"
        digest.update(np.ascontiguousarray(arrays[name], dtype=stored).tobytes())
    return digest.hexdigest()


def heads_digest(heads: Mapping[str, Float32]) -> str:
    """sha256 over the heads' arrays."""
    return arrays_digest(heads)


def fingerprint(
    weights: str,
    heads: str,
    tokenizer: str,
    settings: EncodingSettings,
    quantized_graph: str | None = None,
    adapter: str | None = None,
) -> str:
    """sha256, hexadecimal, over the digests of an encoder's parts and its settings.

    weights, heads: those of the checkpoint, also with an adapter. quantized_graph: digest of an int8 graph,
    whose weights differ from their source; None in float32. adapter: digest of an adapter, heads of its own
    included. Engines and float precisions of one checkpoint share a fingerprint.
    """
    parts: dict[str, Any] = {
        "weights": weights,
        "heads": heads,
        "tokenizer": tokenizer,
        "settings": settings.of_representations,
    }
    if quantized_graph is not None:
        parts["quantized_graph"] = quantized_graph
    if adapter is not None:
        parts["adapter"] = adapter
    return json_digest(parts)


def json_digest(values: Mapping[str, Any]) -> str:
    """sha256 over a JSON object, whatever the order of its keys."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
