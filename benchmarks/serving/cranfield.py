"""Collections of the abstracts of Cranfield: as they are, and many times with noise."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from benchmarks.recording import DATA
from tercet.index.candidates import Document
from tercet.ingest.target import open_or_create
from tercet.models.encoder import Encoder, encode
from tercet.models.representations import Representations, SparseRows, TokenVectors

CRANFIELD = DATA / "cranfield"
LARGE_VECTORS = 40  # token vectors of a document of the larger collection
NOISE = 0.1


def texts_of(part: str) -> list[str]:
    """The texts of its documents, part `corpus`, or of its queries."""
    with gzip.open(CRANFIELD / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [str(json.loads(line)["text"]) for line in lines]


def build(root: Path, encoder: Encoder, texts: list[str], size: int) -> tuple[str, str]:
    """Writes the collection of these texts, and one of so many documents like them; their names."""
    parts = [encode(encoder, texts[start : start + 256]) for start in range(0, len(texts), 256)]
    encoded = Representations.concatenate(parts)
    names = (f"documents-{len(texts)}", f"documents-{size}")
    with open_or_create(root, names[0], encoder.info, {})[0].writer() as writer:
        writer.add([Document(str(row), text) for row, text in enumerate(texts)], encoded)
        writer.publish()
    random = np.random.default_rng(0)
    with open_or_create(root, names[1], encoder.info, {})[0].writer() as writer:
        for copy, start in enumerate(range(0, size, len(texts))):
            rows = np.arange(min(len(texts), size - start), dtype=np.int64)
            documents = [Document(f"{copy}-{row}", texts[row]) for row in rows.tolist()]
            writer.add(documents, with_noise(encoded.take(rows), random))
        writer.publish()
    return names


def with_noise(texts: Representations, random: np.random.Generator) -> Representations:
    """Other documents of the same kind: turned dense vectors, changed weights, fewer token vectors."""
    assert texts.dense is not None
    assert texts.sparse is not None
    assert texts.colbert is not None
    dense = texts.dense + NOISE * random.standard_normal(texts.dense.shape, np.float32)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    weights = texts.sparse.weights * random.uniform(1 - NOISE, 1 + NOISE, len(texts.sparse.weights))
    sparse = SparseRows(texts.sparse.indptr, texts.sparse.token_ids, weights.astype(np.float32))
    starts, lengths = texts.colbert.offsets[:-1], np.diff(texts.colbert.offsets)
    kept = np.minimum(lengths, LARGE_VECTORS)
    position = np.concatenate([np.arange(start, start + n) for start, n in zip(starts, kept, strict=True)])
    colbert = TokenVectors(texts.colbert.vectors[position], np.append(0, np.cumsum(kept)))
    return Representations(texts.tokens, texts.truncated, dense, sparse, colbert)
