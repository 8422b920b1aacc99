"""Adapters that tests train in whole runs, and what serves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tercet.models.loader import load_encoder
from tercet.models.representations import Representations

KINDS: dict[str, dict[str, Any]] = {
    "lora": {"kind": "lora", "lora": {"rank": 2, "targets": ["query", "value", "output"]}},
    "ia3": {"kind": "ia3"},
    "prefix": {"kind": "prefix", "prefix": {"length": 3}},
    "prompt": {"kind": "prompt", "prompt": {"length": 3}},
    "bias": {"kind": "bias"},
    "sparse": {"kind": "sparse", "sparse": {"count": 400}, "mask_batches": 3},
    "bottleneck": {"kind": "bottleneck", "bottleneck": {"width": 4, "placement": "houlsby"}},
    "parallel": {"kind": "bottleneck", "bottleneck": {"width": 4, "placement": "parallel", "scale": 4.0}},
    "unipelt": {"kind": "unipelt", "unipelt": {"rank": 2, "length": 3, "width": 4}},
    "mixed": {"kind": "mix_and_match", "mix_and_match": {"length": 3, "width": 4, "scale": 1.0}},
}
TEXTS = ["word1 word2 word3", "word7", "word39 word8 word8 word20 word5"]
Run = Callable[..., Any]


def served(base: Path, adapters: Path, name: str | None) -> Representations:
    encoder = load_encoder(str(base), "torch", adapters=adapters)
    batch = encoder.tokenizer.tokenize(TEXTS, "document")
    return encoder.encode_tokens(batch, adapters=[name] * len(TEXTS))


def dense_differs(first: Representations, second: Representations) -> bool:
    assert first.dense is not None
    assert second.dense is not None
    return float(np.abs(first.dense - second.dense).max()) > 1e-3


def assert_alike(first: Representations, second: Representations) -> None:
    assert first.dense is not None
    assert second.dense is not None
    assert first.sparse is not None
    assert second.sparse is not None
    assert first.colbert is not None
    assert second.colbert is not None
    np.testing.assert_allclose(first.dense, second.dense, atol=2e-6)
    np.testing.assert_array_equal(first.sparse.token_ids, second.sparse.token_ids)
    np.testing.assert_allclose(first.sparse.weights, second.sparse.weights, atol=2e-6)
    np.testing.assert_allclose(first.colbert.vectors, second.colbert.vectors, atol=2e-6)


class KilledError(Exception):
    """Stands for a kill: nothing of the run is left but its folder."""
