"""Checkpoints as the ColBERT repository of Stanford writes them: one folder with the projection in the body's
weight file, and `artifact.metadata`. https://github.com/stanford-futuredata/ColBERT
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tercet.models.formats.late_interaction import KEY
from tercet.models.formats.sentence_transformers import object_in

ARCHITECTURE = "HF_ColBERT"
METADATA_FILE = "artifact.metadata"
PROJECTION = "linear.weight"
# What its own code takes where the file does not say.
DEFAULTS = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 32, "doc_maxlen": 220}


def is_stanford(config: Mapping[str, Any]) -> bool:
    """Whether a model's configuration is that of such a checkpoint."""
    named = config.get("architectures")
    return isinstance(named, list) and ARCHITECTURE in named


def settings_of_stanford(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of `tercet.json` that follow from `artifact.metadata`; none for another kind of checkpoint.

    Raises CheckpointError that names the file.
    """
    if not is_stanford(config):
        return {}
    path = folder / METADATA_FILE
    given = {**DEFAULTS, **{name: value for name, value in object_in(path).items() if value is not None}}
    queries = given["query_maxlen"]
    return {
        "pooling": "none",
        "max_length": given["doc_maxlen"],
        KEY: {
            "query_marker": given["query_token_id"],
            "document_marker": given["doc_token_id"],
            "query_length": queries,
            "expansion_length": queries,
            "attend_to_expansion": bool(given.get("attend_to_mask_tokens")),
            "skiplist": list(string.punctuation) if given.get("mask_punctuation", True) else [],
        },
    }
