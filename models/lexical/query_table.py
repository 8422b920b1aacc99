"""Queries without the model: each token of the text has the lexical weight that a table gives it.

As sentence-transformers' SparseStaticEmbedding, https://arxiv.org/abs/2411.04403: the model weighs documents
alone, so that a query costs no pass. Special tokens around the text have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.models.checkpoint import hidden_size, logits_size
from tercet.models.errors import CheckpointError
from tercet.models.files import is_file_name
from tercet.models.formats.sentence_transformers import object_in
from tercet.models.formats.sparse_modules import sparse_modules
from tercet.models.lexical.reduction import reduce_sparse, strongest
from tercet.models.representations import Float32, Output, Representations, SparseRows, TokenBatch
from tercet.models.soundness import LARGEST_WEIGHT
from tercet.models.tokenizer import TOKENIZER_FILES, Tokenizer
from tercet.models.weights.array_files import read_arrays
from tercet.models.weights.head_weights import HEADS_FILE, QUERIES, HeadWeights, read_heads

IDF_FILE = "idf.json"
WEIGHTS_FILE, WEIGHTS_NAME = "model.safetensors", "weight"
Floats = npt.NDArray[np.floating]
Encode = Callable[[TokenBatch, Sequence[Output]], Representations]


@dataclass(frozen=True, slots=True)
class QueryTable:
    """weights: float32[V]; before, after: special tokens around a text; max_terms: as in `SpladeSettings`."""

    weights: Float32
    before: int
    after: int
    max_terms: int | None

    @staticmethod
    def of(weights: Float32 | None, tokenizer: Tokenizer) -> QueryTable | None:
        """A table for texts of a tokenizer; None without weights."""
        splade = tokenizer.settings.splade
        if weights is None or splade is None:
            return None
        before, after = tokenizer.frame("query")
        return QueryTable(weights, len(before), len(after), splade.max_terms)

    def rows(self, batch: TokenBatch) -> SparseRows:
        """The weights of each text's own tokens, each once."""
        lengths = batch.lengths
        position = np.arange(len(batch.token_ids)) - np.repeat(batch.offsets[:-1], lengths)
        inside = (position >= self.before) & (position < np.repeat(lengths - self.after, lengths))
        weights = np.where(inside, self.weights[batch.token_ids], np.float32(0))
        return strongest(reduce_sparse(batch.token_ids, weights, batch.offsets, frozenset()), self.max_terms)


def encode_with_table(
    table: QueryTable | None, batch: TokenBatch, outputs: Sequence[Output], encode: Encode
) -> Representations:
    """Representations of texts in their order: what `encode` gives, but for queries' weights from a table."""
    is_query = batch.is_query
    if table is None or "sparse" not in outputs or not is_query.any():
        return encode(batch, outputs)
    queries, documents = np.flatnonzero(is_query), np.flatnonzero(~is_query)
    asking = batch.take(queries)
    others = [output for output in outputs if output != "sparse"]
    encoded = encode(asking, others) if others else Representations(asking.lengths, asking.truncated)
    encoded = replace(encoded, sparse=table.rows(asking))
    if len(documents) == 0:
        return encoded
    both = Representations.concatenate([encoded, encode(batch.take(documents), outputs)])
    return both.take(np.argsort(np.concatenate([queries, documents])))


def sparse_size(folder: Path, tokenizer: Tokenizer, heads: HeadWeights) -> int:
    """V, the terms that an encoder may give a lexical weight: its vocabulary, or as many as SPLADE weighs; 0
    where it has no lexical side.

    Raises CheckpointError where SPLADE weighs fewer than the vocabulary has.
    """
    if tokenizer.settings.splade is None:
        return 0 if heads.sparse is None else tokenizer.vocabulary_size
    size = logits_size(folder)
    if size < tokenizer.vocabulary_size:
        raise CheckpointError(
            f"{folder}: the model weighs {size} terms, but its tokenizer has {tokenizer.vocabulary_size}; "
            "take the tokenizer of this model"
        )
    return size


def read_query_weights(folder: Path, tokenizer: Tokenizer) -> Float32 | None:
    """The weights float32[V] of the tokens of queries; None where they come from the model.

    Raises CheckpointError naming the file that is missing, damaged, or of another vocabulary.
    """
    splade = tokenizer.settings.splade
    if splade is None or splade.queries != "table":
        return None
    modules = sparse_modules(folder)
    of_heads = read_heads(folder, hidden_size(folder)).queries
    if of_heads is not None:
        weights, source = of_heads, f"{folder / HEADS_FILE}: {QUERIES}"
    elif modules is not None and modules.table is not None:
        _require_same_pieces(modules.table, modules.transformer)
        weights, source = _of_module(modules.table, folder, tokenizer)
    else:
        weights, source = _of_json(folder / IDF_FILE, tokenizer)
    return _fitting(weights, tokenizer.vocabulary_size, logits_size(folder), source)


def _of_module(folder: Path, root: Path, tokenizer: Tokenizer) -> tuple[Floats, str]:
    named = object_in(folder / "config.json").get("path")
    path = folder / WEIGHTS_FILE
    if named is None and path.is_file():
        arrays = read_arrays(path)
        if WEIGHTS_NAME not in arrays:
            raise CheckpointError(f"{path} lacks {WEIGHTS_NAME!r}, the weight of each token of a query")
        return arrays[WEIGHTS_NAME], f"{path}: {WEIGHTS_NAME}"
    name = Path(str(named)).name if str(named).endswith(".json") else IDF_FILE
    if not is_file_name(name):
        raise CheckpointError(f"{folder / 'config.json'}: {name!r:.80} is no name of a file")
    beside = [parent / name for parent in (folder, root)]
    return _of_json(next((parent for parent in beside if parent.is_file()), beside[0]), tokenizer)


def _of_json(path: Path, tokenizer: Tokenizer) -> tuple[Floats, str]:
    """Of an object of weights by token; tokens that it leaves out have none."""
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing, and so is {WEIGHTS_FILE} beside it: queries have their weights from a "
            "table, which gives that of each token"
        )
    named = object_in(path)
    pieces = tokenizer.token_strings(np.arange(tokenizer.vocabulary_size, dtype=np.int32))
    ids = {piece: token_id for token_id, piece in enumerate(pieces)}
    strange = next((token for token in named if token not in ids), None)
    if strange is not None:
        raise CheckpointError(
            f"{path} is of another vocabulary: it has token {strange!r}, which the tokenizer has not; take "
            "the table of this model, or leave the token out"
        )
    wrong = next((token for token, weight in named.items() if type(weight) not in (int, float)), None)
    if wrong is not None:
        raise CheckpointError(f"{path}: the weight of {wrong!r} is {named[wrong]!r}; it must be a number")
    weights = np.zeros(tokenizer.vocabulary_size)
    weights[[ids[token] for token in named]] = list(named.values())
    return weights, str(path)


def _fitting(weights: Floats, tokens: int, size: int, source: str) -> Float32:
    """weights: of the model's vocabulary, or of the tokenizer's, which may be smaller by unused places."""
    if weights.shape not in ((tokens,), (size,)):
        raise CheckpointError(f"{source} has shape {weights.shape}; the model needs {(size,)}")
    if not (np.abs(weights) <= LARGEST_WEIGHT).all():  # a NaN is not
        raise CheckpointError(f"{source} has a weight beyond {LARGEST_WEIGHT:g}, or one that is no number")
    fitting = np.zeros(size, np.float32)
    fitting[: len(weights)] = weights[:size]
    return fitting


def _require_same_pieces(table: Path, transformer: Path) -> None:
    """Raises CheckpointError where queries would be cut by another vocabulary than documents."""
    paths = [folder / TOKENIZER_FILES[0] for folder in (table, transformer)]
    if not all(path.is_file() for path in paths):
        return
    of_table, of_transformer = (
        json.dumps(object_in(path).get("model", {}).get("vocab"), sort_keys=True) for path in paths
    )
    if of_table != of_transformer:
        raise CheckpointError(
            f"{paths[0]} has another vocabulary than {paths[1]}: queries and documents would share no terms; "
            "take a checkpoint with one vocabulary"
        )
