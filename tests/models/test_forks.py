"""A forked process encodes with what its parent has loaded."""

import os
import subprocess
import sys

import pytest

CHILD = """
import os, signal, sys
import numpy as np
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder

encoder = load_encoder("minilm-m3", sys.argv[1], device="cpu", threads=2)
texts = ["tea " * 100] * 8
expected = encode(encoder, texts).dense
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if np.allclose(encode(encoder, texts).dense, expected, atol=1e-5) else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_a_forked_process_encodes(engine: str) -> None:
    pytest.importorskip("torch" if engine == "torch" else "onnxruntime")
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", CHILD, engine]
    subprocess.run(command, check=True, timeout=120, env=environment)
