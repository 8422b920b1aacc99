"""Do torch and ONNX float32 give what FlagEmbedding gives, on 200 texts of 1 to 512 tokens in many scripts?

usage: python -m benchmarks.parity PEER_PYTHON [--peers FOLDER] [--texts N]

A random XLM-RoBERTa checkpoint with the real 250,002-token vocabulary is written by `random_xlmr.py` of
the peers' folder; the texts are parts of ../shared/data cut to varied lengths. Fails where a bar is missed:
1e-4 for every value of each output, and the same token ids.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import ROOT, dated, write
from tercet.models.encoder import encode
from tercet.models.export_onnx import export
from tercet.models.export_verification import largest_differences
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations, SparseRows, TokenVectors

DATA = ROOT.parent / "shared" / "data"
PEERS = ROOT.parent / "shared" / "peers"
SETS = ("xquad-en", "xquad-de", "xquad-el", "xquad-hi", "xquad-ru", "xquad-vi", "xquad-zh", "arcd")
EAST_ASIAN_SETS = ("korquad1-dev", "jaquad-dev")
ODD_TEXTS = (
    "a",
    "!",
    "🙂🙃 emoji",
    "한",
    "１２３ ｆｕｌｌ",
    "tab\tand\nnewline",
    "é é",
    "ﬁ ligature",
    "مرحبا hello 你好",
)
MAX_LENGTH = 512
BAR = 1e-4


def mixed_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of one word to more than 512 tokens, each of one script or of several joined."""
    chosen = random.Random(seed)
    pool: list[list[str]] = []
    for name in (*SETS, *EAST_ASIAN_SETS):
        with gzip.open(DATA / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            pool.append([json.loads(line)["text"] for line in lines])
    texts = list(ODD_TEXTS)
    while len(texts) < count:
        parts = [chosen.choice(chosen.choice(pool)) for _ in range(chosen.randint(1, 4))]
        texts.append(" ".join(parts)[: int(2 ** chosen.uniform(2, 11.3))])
    return texts


def peer_outputs(
    python: str, script: Path, checkpoint: Path, texts: Path, like: Representations
) -> Representations:
    """The peer's three outputs in our records."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        command = [python, script, checkpoint, texts, out, "--max-length", str(MAX_LENGTH), "--runs", "1"]
        subprocess.run(
            list(map(str, command)),
            check=True,
            capture_output=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
        with np.load(out) as arrays:
            return Representations(
                like.tokens,
                like.truncated,
                arrays["dense"],
                SparseRows(arrays["sparse_indptr"], arrays["sparse_token_ids"], arrays["sparse_weights"]),
                TokenVectors(arrays["colbert"], arrays["colbert_offsets"]),
            )


def same_ids(one: Representations, other: Representations) -> bool:
    """Whether both keep the same lexical ids, and as many token vectors, for every text."""
    assert one.sparse is not None
    assert one.colbert is not None
    assert other.sparse is not None
    assert other.colbert is not None
    return (
        np.array_equal(one.sparse.indptr, other.sparse.indptr)
        and np.array_equal(one.sparse.token_ids, other.sparse.token_ids)
        and np.array_equal(one.colbert.offsets, other.colbert.offsets)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peer_python")
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--texts", type=int, default=200)
    arguments = parser.parse_args()
    texts = mixed_texts(arguments.texts)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, exported = Path(folder) / "checkpoint", Path(folder) / "exported"
        subprocess.run([arguments.peer_python, arguments.peers / "random_xlmr.py", checkpoint], check=True)
        lines = Path(folder) / "texts.jsonl"
        lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        export(checkpoint, exported, int8=False)
        engines = {
            "torch": load_encoder(str(checkpoint), "torch", device="cpu"),
            "onnx float32": load_encoder(str(exported), "onnx", device="cpu"),
        }
        found = {name: encode(encoder, texts, max_length=MAX_LENGTH) for name, encoder in engines.items()}
        script = arguments.peers / "flagembedding_encode.py"
        peer = peer_outputs(arguments.peer_python, script, checkpoint, lines, found["torch"])
    report(found, peer)


def report(found: dict[str, Representations], peer: Representations) -> None:
    """Prints and writes the largest differences, then fails where one is past its bar."""
    engines: dict[str, dict[str, Any]] = {
        name: {"largest_difference": largest_differences(ours, peer), "same_token_ids": same_ids(ours, peer)}
        for name, ours in found.items()
    }
    lengths = next(iter(found.values())).tokens
    versions = {
        name: importlib.metadata.version(name) for name in ("torch", "transformers", "onnxruntime", "numpy")
    }
    record = {
        "peer": "FlagEmbedding 1.4.2, float32 on a CPU",
        "versions": versions,
        "texts": len(lengths),
        "tokens": {
            "least": int(lengths.min()),
            "median": int(np.median(lengths)),
            "most": int(lengths.max()),
        },
        "lexical_weights": len(peer.sparse.weights) if peer.sparse else 0,
        "bar": BAR,
        "engines": engines,
    }
    print(json.dumps(record, indent=2))
    write("parity", dated(record))
    for name, result in engines.items():
        assert result["same_token_ids"], f"{name}: token ids differ"
        assert max(result["largest_difference"].values()) <= BAR, f"{name}: {result['largest_difference']}"


if __name__ == "__main__":
    main()
