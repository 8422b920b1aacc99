"""Settings of a run over the tiny base checkpoint."""

from __future__ import annotations

import pytest


@pytest.fixture
def tiny_settings(base_values: dict[str, object]) -> dict[str, object]:
    """Settings of a run that takes about a second; its data lie in `tmp_path / "data"`."""
    return {
        "name": "tiny",
        "seed": 5,
        "base": base_values,
        "encoder": {"pooling": "mean", "colbert_dimension": 8, "max_length": 32},
        "data": {
            "query_tokens": 8,
            "passage_tokens": 16,
            "sources": [
                {"path": "pairs.jsonl", "title": "Made pairs", "licence": "CC0 1.0", "development_pairs": 8}
            ],
        },
        "initial": {"idf_scale": 0.1, "ridge_penalty": 1.0, "whitening": 0.3, "tokens_each": 1000},
        "losses": {
            "temperature": 0.05,
            "sparse": 1.0,
            "colbert": 1.0,
            "sum": 1.0,
            "distill_sparse": 1.0,
            "distill_colbert": 1.0,
        },
        "optimization": {
            "epochs": 4,
            "batch_pairs": 8,
            "learning_rate": 0.01,
            "weight_decay": 0.0,
            "warmup": 0.1,
        },
    }
