"""Do torch and ONNX float32 give what FlagEmbedding gives, on 200 texts of 1 to 512 tokens in many scripts?
And which comes nearer to float32 in int8, our kernels or onnxruntime?

usage: python -m benchmarks.parity PEER_PYTHON [--peers FOLDER] [--texts N]
       python -m benchmarks.parity --int8 [--checkpoint multi-m3] [--texts 1000]

A random XLM-RoBERTa checkpoint with the real 250,002-token vocabulary is written by `random_xlmr.py` of
the peers' folder; the texts are parts of ../shared/data cut to varied lengths. Fails where a bar is missed:
1e-4 for every value of each output, and the same token ids.

With `--int8` a checkpoint's int8 graph is run by both, on texts of ten languages, and its weights once by
torch with nothing rounded between them (`turned_back.py`). Cosines are those of each text with the latter; of
token vectors the mean, and of lexical weights that of the vector over the vocabulary.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recording import DATA, ROOT, dated, write
from benchmarks.turned_back import turn_back
from tercet.models.encoder import encode
from tercet.models.export_onnx import export
from tercet.models.export_verification import largest_differences
from tercet.models.loader import load_encoder
from tercet.models.representations import (
    Float32,
    Float64,
    Representations,
    SparseRows,
    TokenVectors,
)

PEERS = ROOT.parent / "shared" / "peers"
SETS = ("xquad-en", "xquad-de", "xquad-el", "xquad-hi", "xquad-ru", "xquad-vi", "xquad-zh", "arcd")
EAST_ASIAN_SETS = ("korquad1-dev", "jaquad-dev")
LANGUAGES = ("en", "de", "el", "es", "hi", "ro", "ru", "tr", "vi", "zh")
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


def texts_of(name: str) -> list[str]:
    """All documents of a set."""
    with gzip.open(DATA / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def mixed_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of one word to more than 512 tokens, each of one script or of several joined."""
    chosen = random.Random(seed)
    pool = [texts_of(name) for name in (*SETS, *EAST_ASIAN_SETS)]
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


def cosines(ours: Representations, exact: Representations) -> dict[str, Float64]:
    """Of each text and output, float64[B]."""
    assert ours.dense is not None
    assert exact.dense is not None
    assert ours.sparse is not None
    assert exact.sparse is not None
    assert ours.colbert is not None
    assert exact.colbert is not None
    tokens = _row_cosines(ours.colbert.vectors, exact.colbert.vectors)
    offsets = exact.colbert.offsets
    terms = 1 + int(max(ours.sparse.token_ids.max(), exact.sparse.token_ids.max()))
    return {
        "dense": _row_cosines(ours.dense, exact.dense),
        "sparse": _row_cosines(_over_terms(ours.sparse, terms), _over_terms(exact.sparse, terms)),
        "colbert": np.add.reduceat(tokens, offsets[:-1]) / np.diff(offsets),
    }


def _row_cosines(ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Float64:
    lengths = np.linalg.norm(ones, axis=1) * np.linalg.norm(others, axis=1)
    found: Float64 = (ones.astype(np.float64) * others).sum(axis=1) / np.maximum(lengths, 1e-12)
    return found


def _over_terms(sparse: SparseRows, terms: int) -> Float32:
    rows = np.zeros((len(sparse.indptr) - 1, terms), np.float32)
    rows[np.repeat(np.arange(len(rows)), np.diff(sparse.indptr)), sparse.token_ids] = sparse.weights
    return rows


def compare_int8(checkpoint: str, count: int) -> None:
    """Prints and writes how near both engines come to float32, by language."""
    chosen = random.Random(0)
    languages: dict[str, list[str]] = {"odd": list(ODD_TEXTS)}
    for language in LANGUAGES:
        pool = texts_of(f"xquad-{language}")
        languages[language] = [
            chosen.choice(pool)[: int(2 ** chosen.uniform(2, 10))] for _ in range(count // len(LANGUAGES))
        ]
    engines = {
        name: load_encoder(checkpoint, name, device="cpu", threads=1) for name in ("native", "onnxruntime")
    }
    with tempfile.TemporaryDirectory() as folder:
        unrounded = Path(folder) / "unrounded"
        turn_back(checkpoint, unrounded)
        reference = load_encoder(str(unrounded), "torch", device="cpu")
    by_language: dict[str, dict[str, Any]] = {}
    everything: dict[str, dict[str, list[Float64]]] = {}
    for language, texts in languages.items():
        exact = encode(reference, texts, max_length=MAX_LENGTH)
        found = {
            name: cosines(encode(engine, texts, max_length=MAX_LENGTH), exact)
            for name, engine in engines.items()
        }
        by_language[language] = summary(found)
        for name, outputs in found.items():
            for output, values in outputs.items():
                everything.setdefault(name, {}).setdefault(output, []).append(values)
        print(language, by_language[language], flush=True)
    joined = {
        name: {output: np.concatenate(values) for output, values in outputs.items()}
        for name, outputs in everything.items()
    }
    record = {
        "checkpoint": Path(checkpoint).name,
        "texts": sum(map(len, languages.values())),
        "all": summary(joined),
        "languages": by_language,
    }
    print(json.dumps(record["all"], indent=2))
    write("parity-int8", dated(record))


def summary(found: dict[str, dict[str, Float64]]) -> dict[str, Any]:
    """Of each output the mean and the least cosine by engine, and the share of texts where ours is nearer."""
    return {
        output: {
            **{
                name: {
                    "mean": round(float(each[output].mean()), 6),
                    "least": round(float(each[output].min()), 6),
                }
                for name, each in found.items()
            },
            "native_is_nearer": round(float((values > found["onnxruntime"][output]).mean()), 3),
        }
        for output, values in found["native"].items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peer_python", nargs="?")
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--texts", type=int)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--checkpoint", default=str(ROOT / "checkpoints" / "multi-m3"))
    arguments = parser.parse_args()
    if arguments.int8:
        compare_int8(arguments.checkpoint, arguments.texts or 1_000)
        return
    if arguments.peer_python is None:
        sys.exit("name the Python of an environment with FlagEmbedding, or give --int8")
    texts = mixed_texts(arguments.texts or 200)
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
