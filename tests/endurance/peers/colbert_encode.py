"""Token vectors of texts by Stanford's ColBERT, for tests/endurance/peers/families.py.

usage: colbert_encode.py CHECKPOINT TEXTS.json VECTORS.npz   (with the Python of the peer's environment)
"""

import json
import sys
from pathlib import Path

import numpy as np
from colbert.infra import ColBERTConfig
from colbert.modeling.checkpoint import Checkpoint


def main() -> None:
    folder, texts, output = sys.argv[1:]
    model, known = (
        Checkpoint(folder, ColBERTConfig.load_from_checkpoint(folder)),
        json.loads(Path(texts).read_text()),
    )
    encoded = {"query": model.queryFromText(known), "document": model.docFromText(known, keep_dims=False)}
    found = {}
    for kind, vectors in encoded.items():
        found[f"{kind}_colbert"] = np.concatenate([each.numpy() for each in vectors])
        found[f"{kind}_lengths"] = np.array([len(each) for each in vectors])
    np.savez(output, **found)


if __name__ == "__main__":
    main()
