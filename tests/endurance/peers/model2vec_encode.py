"""Dense vectors of texts by Model2Vec, for tests/endurance/peers/families.py.

usage: model2vec_encode.py CHECKPOINT TEXTS.json VECTORS.npz   (with the Python of the peer's environment)
"""

import json
import sys
from pathlib import Path

import numpy as np
from model2vec import StaticModel


def main() -> None:
    folder, texts, output = sys.argv[1:]
    vectors = StaticModel.from_pretrained(folder).encode(json.loads(Path(texts).read_text()))
    np.savez(output, query_dense=vectors, document_dense=vectors)


if __name__ == "__main__":
    main()
