"""Token vectors of texts by PyLate, for tests/endurance/peers/families.py.

usage: pylate_encode.py CHECKPOINT TEXTS.json VECTORS.npz   (with the Python of the peer's environment)
"""

import json
import sys
from pathlib import Path

import numpy as np
from pylate.models import ColBERT


def main() -> None:
    folder, texts, output = sys.argv[1:]
    model, known, found = ColBERT(folder, device="cpu"), json.loads(Path(texts).read_text()), {}
    for kind in ("query", "document"):
        vectors = model.encode(known, is_query=kind == "query")
        found[f"{kind}_colbert"] = np.concatenate(vectors)
        found[f"{kind}_lengths"] = np.array([len(each) for each in vectors])
    np.savez(output, **found)


if __name__ == "__main__":
    main()
