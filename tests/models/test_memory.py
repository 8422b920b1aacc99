"""Batches for which memory does not suffice: real engines in processes with little of it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tercet.models.batching import Adapters, PaddedOutputs, encode_in_batches
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import EncoderInfo
from tercet.models.errors import EncoderMemoryError
from tercet.models.representations import Output, TokenBatch
from tercet.models.tokenizer import Tokenizer

pytestmark = pytest.mark.slow

INFO = EncoderInfo("", "", "", "", 1, 1, 9, 16, "cls")

# Encodes texts, once more after its address space was bounded, and says what came of it.
CHILD = """
import json, logging, resource, sys
import numpy as np
import psutil
from tercet.models.encoder import encode
from tercet.models.errors import EncoderMemoryError
from tercet.models.loader import load_encoder

engine, texts, words, spare_megabytes = sys.argv[1], *map(int, sys.argv[2:])
warnings = []
logging.getLogger("tercet").addFilter(lambda record: warnings.append(record.getMessage()))
encoder = load_encoder("minilm-m3", engine, device="cpu", threads=1, batch_tokens=1 << 20)
lines = ["tea " * (words - row) for row in range(texts)]
alone = encode(encoder, lines[-1:] if texts > 1 else ["tea"], outputs=["dense"])
encode(encoder, ["tea"])  # what an engine keeps for texts of this length is not to be allocated at the end
resource.setrlimit(resource.RLIMIT_AS, [psutil.Process().memory_info().vms + (spare_megabytes << 20)] * 2)
error = found = None
try:
    found = encode(encoder, lines, outputs=["dense"])
except EncoderMemoryError as failed:
    error = str(failed)
print(json.dumps({
    "error": error,
    "halved": len(warnings),
    "tokens": None if found is None else found.tokens.tolist(),
    "same": found is not None and bool(np.allclose(found.dense[-1], alone.dense[0], atol=1e-4)),
    "after": len(encode(encoder, ["tea"])),
}))
"""


# Encodes texts in one pass and says how large the process was at most meanwhile.
PEAK = """
import sys
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder

folder, engine, texts, tokens = *sys.argv[1:3], *map(int, sys.argv[3:])
encoder = load_encoder(folder, engine, device="cpu", threads=1, batch_tokens=8192)
encode(encoder, ["wing"])
open("/proc/self/clear_refs", "w").write("5")  # the peak from now on
found = encode(encoder, ["wing " * (tokens - 2)] * texts)
assert found.tokens.tolist() == [tokens] * texts
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]))
"""


def peak_kilobytes(folder: Path, engine: str, texts: int, tokens: int) -> int:
    """The most memory of a process while it encodes so many texts of so many tokens."""
    pytest.importorskip("torch" if engine == "torch" else "onnxruntime")
    command = [sys.executable, "-c", PEAK, str(folder), engine, str(texts), str(tokens)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout)


def encoded_with(engine: str, texts: int, words: int, spare_megabytes: int) -> dict[str, object]:
    """What a process with so much memory to spare made of texts of so many words and fewer."""
    pytest.importorskip("torch" if engine == "torch" else "onnxruntime")
    command = [sys.executable, "-c", CHILD, engine, str(texts), str(words), str(spare_megabytes)]
    one_arena = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # another would take of what there is to spare
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=400, env=one_arena
    ).stdout
    return dict(json.loads(answer.splitlines()[-1]))


@pytest.mark.parametrize(("engine", "spare"), [("native", 30), ("onnxruntime", 260), ("torch", 220)])
def test_a_batch_that_does_not_fit_is_encoded_in_halves(engine: str, spare: int) -> None:
    answer = encoded_with(engine, texts=96, words=240, spare_megabytes=spare)
    assert answer["error"] is None
    assert answer["halved"]
    assert answer["tokens"] == [242 - row for row in range(96)]
    assert answer["same"]
    assert answer["after"] == 1


def test_a_text_that_does_not_fit_by_itself_is_an_error() -> None:
    answer = encoded_with("onnx", texts=1, words=500, spare_megabytes=1)
    assert "a text of 502 tokens does not fit into the encoder's memory" in str(answer["error"])
    assert answer["halved"] == 0
    assert answer["after"] == 1


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a peak")
@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_a_long_text_takes_the_memory_of_as_many_tokens_of_short_ones(long_bert: Path, engine: str) -> None:
    """The scores of all its pairs of tokens would take a gigabyte."""
    long, short = (peak_kilobytes(long_bert, engine, *each) for each in ((1, 8192), (16, 512)))
    assert long < 1.5 * short


def test_halves_keep_the_order_and_one_that_fits_is_not_split(tokenizer_json: bytes) -> None:
    batch = TokenBatch(np.arange(5, 12, dtype=np.int32), np.arange(8), np.zeros(7, np.bool_))
    passes = []

    def forward(ids: np.ndarray, mask: np.ndarray, outputs: Sequence[Output], _: Adapters) -> PaddedOutputs:
        passes.append(len(ids))
        if len(ids) > 2:
            raise EncoderMemoryError("no room")
        return PaddedOutputs(ids.astype(np.float32), None, None)

    tokenizer = Tokenizer(tokenizer_json, EncodingSettings())
    found = encode_in_batches(batch, ["dense"], 100, tokenizer, INFO, forward)
    assert found.dense[:, 0].tolist() == list(range(5, 12))
    assert passes == [7, 4, 2, 2, 3, 2, 1]
