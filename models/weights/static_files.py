"""Folders of static embeddings: one vector for each token, whatever stands beside it.

Of Model2Vec, whose `config.json` has the `model_type` "model2vec", https://github.com/MinishLab/model2vec; or
of sentence-transformers, whose `modules.json` has a StaticEmbedding. Both keep them in `model.safetensors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.models.checkpoint import CONFIG_FILE, SETTINGS_FILE, EncodingSettings, read_json
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import file_digest, json_digest
from tercet.models.formats.sentence_transformers import MODULES_FILE, modules_in, object_in, prompts_in
from tercet.models.representations import Float32, Int64
from tercet.models.tokenizer import Tokenizer
from tercet.models.tokens.json_vocabulary import TOKENIZER_JSON
from tercet.models.weights.array_files import read_arrays
from tercet.models.weights.dense_layers import require_finite

WEIGHTS_FILE = "model.safetensors"
EMBEDDING = "StaticEmbedding"
# The vectors, as sentence-transformers and as Model2Vec name them.
VECTORS = ("embedding.weight", "embeddings")
MODEL2VEC = "model2vec"
MODEL2VEC_LENGTH = 512  # where its configuration names none
# Longer texts are cut: neither library has a limit, but memory has, and a mean over so much says little.
LONGEST = 8192


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """What such a folder holds.

    vectors: [R, D] of any precision; rows: int64[V], that of each token, None where it is its id; weights:
    float32[V], None where all are 1; unknown: id of the token that is left out of means, as Model2Vec does.
    """

    tokenizer: Tokenizer
    vectors: npt.NDArray[Any]
    rows: Int64 | None
    weights: Float32 | None
    unknown: int | None
    digest: str


def is_static(folder: Path) -> bool:
    """Whether a folder holds static embeddings. Raises CheckpointError where its files cannot be read."""
    return _is_model2vec(folder) or EMBEDDING in [module.kind for module in modules_in(folder)]


def read_static(folder: Path) -> StaticFiles:
    """The files of such a folder. Raises CheckpointError naming the one that is missing or wrong."""
    vectors_folder = _vectors_folder(folder)
    tokenizer_path = vectors_folder / TOKENIZER_JSON
    if not tokenizer_path.is_file():
        raise CheckpointError(
            f"{tokenizer_path} is missing; static embeddings need the tokenizer of their tokens"
        )
    content = tokenizer_path.read_bytes()
    tokenizer = Tokenizer(content, _settings(folder, tokenizer_path))
    path = vectors_folder / WEIGHTS_FILE
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; it has the vectors of static embeddings")
    arrays = read_arrays(path)
    vectors = next((arrays[name] for name in VECTORS if name in arrays), None)
    if vectors is None:
        raise CheckpointError(f"{path} has neither {' nor '.join(VECTORS)}, the vectors of tokens")
    rows, weights = arrays.get("mapping"), arrays.get("weights")
    _require_fitting(path, vectors, rows, weights, tokenizer.vocabulary_size)
    unknown = _unknown(content) if _is_model2vec(folder) else None
    return StaticFiles(
        tokenizer,
        vectors,
        None if rows is None else rows.astype(np.int64),
        None if weights is None else weights.astype(np.float32),
        unknown,
        json_digest({"file": file_digest(path), "unknown": unknown}),
    )


def _is_model2vec(folder: Path) -> bool:
    return object_in(folder / CONFIG_FILE).get("model_type") == MODEL2VEC


def _vectors_folder(folder: Path) -> Path:
    """Where the files of the vectors are. Raises CheckpointError for other modules beside them."""
    modules = modules_in(folder)
    kinds = [module.kind for module in modules]
    if kinds not in ([], [EMBEDDING], [EMBEDDING, "Normalize"]):
        raise CheckpointError(
            f"{folder / MODULES_FILE}: {' and '.join(kinds)} is not read here, but a {EMBEDDING} and "
            "perhaps a Normalize of sentence-transformers; take another checkpoint"
        )
    return modules[0].folder if modules else folder


def _settings(folder: Path, tokenizer: Path) -> EncodingSettings:
    """tokenizer: whose own limit sentence-transformers keeps to, and Model2Vec does not."""
    own = read_json(folder / SETTINGS_FILE) if (folder / SETTINGS_FILE).is_file() else {}
    if _is_model2vec(folder):
        longest = object_in(folder / CONFIG_FILE).get("max_length", MODEL2VEC_LENGTH)
    else:
        longest = (object_in(tokenizer).get("truncation") or {}).get("max_length")
    fixed: dict[str, Any] = {"pooling": "mean", "special_tokens": False}
    for name, value in fixed.items():
        if own.get(name, value) != value:
            raise CheckpointError(
                f"{folder / SETTINGS_FILE}: {name} is {own[name]!r}, but of static embeddings it is {value!r}"
            )
    return EncodingSettings.from_json(
        {"max_length": longest or LONGEST, **prompts_in(folder), **own, **fixed}
    )


def _require_fitting(
    path: Path,
    vectors: npt.NDArray[Any],
    rows: npt.NDArray[Any] | None,
    weights: npt.NDArray[Any] | None,
    tokens: int,
) -> None:
    """Raises CheckpointError where a token of the vocabulary would have no vector."""
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise CheckpointError(f"{path}: the vectors have shape {vectors.shape}; a table of rows is expected")
    lengths = {"vectors": len(vectors)} if rows is None else {"mapping": rows.size}
    lengths |= {} if weights is None else {"weights": weights.size}
    for name, length in lengths.items():
        if length < tokens:
            raise CheckpointError(
                f"{path} is of another vocabulary: it has {length} {name}, but {TOKENIZER_JSON} has {tokens} "
                "tokens; take the files of one model"
            )
    if rows is not None and (
        rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= len(vectors)
    ):
        raise CheckpointError(
            f"{path}: mapping must name rows from 0 to {len(vectors) - 1}, one for each token"
        )
    if weights is not None and weights.ndim != 1:
        raise CheckpointError(f"{path}: weights have shape {weights.shape}; one for each token is expected")
    for name, array in (("vectors", vectors), ("weights", weights)):
        if array is not None:
            require_finite(array, f"{path}: {name}")


def _unknown(content: bytes) -> int | None:
    """Id of the token for what a vocabulary does not have."""
    described: Mapping[str, Any] = json.loads(content)
    model = described["model"]
    name = model.get("unk_token")
    if name is None:
        unknown: int | None = model.get("unk_id")
        return unknown
    if not isinstance(model["vocab"], Mapping):  # of pieces with their scores, which names none
        return None
    added = {token["content"]: token["id"] for token in described.get("added_tokens") or ()}
    id: int | None = added.get(name, model["vocab"].get(name))
    return id
