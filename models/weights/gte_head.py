"""The head of lexical weights that GTE's multilingual checkpoints keep among the weights of the body.

It is a classifier of tokens with one label, whose rectified logit is the weight (Zhang et al. 2024, mGTE,
section 3.2): what `sparse_linear.pt` is to BGE-M3.
"""

from __future__ import annotations

from pathlib import Path

from tercet.models.checkpoint import CONFIG_FILE, read_json
from tercet.models.fingerprint import has_weights
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.representations import Float32
from tercet.models.weights.head_weights import SPARSE
from tercet.models.weights.tensor_files import read_body

MODEL_TYPES = ("new", "gte")
CLASSIFIER = ("classifier.weight", "classifier.bias")


def token_weight_head(folder: Path) -> dict[str, Float32]:
    """The arrays of the lexical head, under the names of heads.safetensors.

    There are none where the checkpoint has no such head.

    Raises CheckpointError where the weights cannot be read.
    """
    path = transformer_folder(folder) / CONFIG_FILE
    config = read_json(path) if path.is_file() else {}  # heads alone may be lent, without a body
    named = config.get("architectures")
    classifies = isinstance(named, list) and any(
        str(kind).endswith("ForTokenClassification") for kind in named
    )
    if config.get("model_type") not in MODEL_TYPES or not classifies or not has_weights(folder):
        return {}
    arrays = read_body(folder, CLASSIFIER)
    weight = arrays.get(CLASSIFIER[0])
    if weight is None or len(weight) != 1:
        return {}
    return {ours: arrays[name] for name, ours in zip(CLASSIFIER, SPARSE, strict=True) if name in arrays}
