"""Does each peer of docs/benchmarks.md still install and run? Tiny work, each in an environment of its own.

Names are those of the lock files beside this script; without any, all of them. Environments are made below
.venv-peers from the lock files alone, and made anew where these have changed.

Run: PYTHONPATH=. python -m tests.endurance.peers.try_peers [NAME …]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.encoding.shapes import COLBERT, MINILM, Shape, write
from tercet.models.export_onnx import export
from tests.tiny.layouts import LAYOUTS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PEERS_FOLDER = ROOT / "benchmarks" / "peers"
ENVIRONMENTS = ROOT / ".venv-peers"
CHECKPOINT = ROOT / "tests" / "models" / "golden" / "checkpoint"
DOCUMENTS, QUERIES, WIDTH, TERMS = 60, 3, 16, 8
PATIENCE_SECONDS = 3600  # some packages are gigabytes

Arguments = Callable[[Path], list[str]]
"""From a folder with inputs to what a script is given."""


def _sparse(folder: Path) -> list[str]:
    return [str(folder), "5", "1"]


def _search(folder: Path) -> list[str]:
    return [str(folder / "documents.npz"), str(folder / "queries.npz"), str(folder)]


def _encode(key: str) -> Arguments:
    """key: of a tiny checkpoint."""

    def arguments(folder: Path) -> list[str]:
        checkpoint = next(layout for layout in LAYOUTS if layout.key == key).write(folder / key)
        return [str(checkpoint), str(folder / "texts.json"), str(folder / "vectors_of_texts.npz")]

    return arguments


def _timed(folder: Path) -> list[str]:
    return [str(CHECKPOINT), str(folder / "passages.jsonl"), "--runs", "1"]


def _exported(folder: Path) -> list[str]:
    """A small body's graph, as `export` writes it."""
    export(_small(MINILM, folder / "whole"), folder / "exported", int8=False)
    return [str(folder / "exported"), str(folder / "passages.jsonl"), "--runs", "1"]


def _late(folder: Path) -> list[str]:
    return [str(_small(COLBERT, folder / "late")), str(folder / "passages.jsonl"), "--runs", "1"]


def _small(shape: Shape, folder: Path) -> Path:
    write(replace(shape, layers=2), folder)
    return folder


PEERS: dict[str, dict[str, Arguments]] = {
    "flagembedding": {"flagembedding_encode.py": _timed},
    "openvino": {"openvino_encode.py": _exported},
    # It takes no other shape than BGE-M3's own, for which it needs 23 GB: here it is only opened.
    "bge_m3_lite": {"bge_m3_lite_encode.py": lambda _: ["--help"]},
    "multi_vector": {"multi_vector_encode.py": _late},
    "sentence_transformers": {"families_encode.py": _encode("bert")},
    "pylate": {"pylate_encode.py": _encode("pylate")},
    "colbert": {"colbert_encode.py": _encode("stanfords-colbert")},
    "model2vec": {"model2vec_encode.py": _encode("model2vec")},
    "bmp": {"sparse_bmp.py": _sparse},
    "kannolo": {"sparse_kannolo.py": _sparse},
    "maxsim": {"maxsim_scores.py": lambda folder: [str(folder / "vectors.npz"), "1"]},
    "plaid": {"plaid_search.py": lambda folder: [str(folder / "tokens.npz"), str(folder / "plaid"), "1"]},
    "milvus": {"milvus_search.py": _search},
    "qdrant": {"qdrant_search.py": _search},
    "lancedb": {"lancedb_search.py": _search},
}


def main() -> None:
    """Tries the peers; the exit code is 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names or list(PEERS)
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        parser.error(f"there is no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    failed = [name for name in names if not tried(name, PEERS[name])]
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


def tried(name: str, scripts: Mapping[str, Arguments]) -> bool:
    """Whether the peer installs and its scripts run; says so in one line."""
    try:
        python = environment(name)
        with tempfile.TemporaryDirectory() as folder:
            write_inputs(Path(folder))
            for script, arguments in scripts.items():
                run([python, str(script_of(script)), *arguments(Path(folder))])
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", None) or str(error)
        print(f"{name}: FAILED\n    " + "\n    ".join(said.strip().splitlines()[-8:]))
        return False
    print(f"{name}: installs from {lock_of(name).relative_to(ROOT)}, and {', '.join(scripts)} runs")
    return True


def environment(name: str) -> str:
    """The Python of the peer's environment, made where there is none of this lock file."""
    folder, lock = ENVIRONMENTS / name, lock_of(name)
    made_from = folder / "made-from.txt"
    if not made_from.exists() or made_from.read_text() != lock.read_text():
        print(f"{name}: installing", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        run(["python3", "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--requirement", str(lock)])
        shutil.copyfile(lock, made_from)
    return str(folder / "bin" / "python")


def lock_of(name: str) -> Path:
    """Every package of a peer's environment, with its version."""
    return PEERS_FOLDER / f"{name}.txt"


def script_of(name: str) -> Path:
    """A script of a benchmark, or of a test beside this file."""
    return PEERS_FOLDER / name if (PEERS_FOLDER / name).exists() else HERE / name


def run(command: list[str]) -> None:
    """Raises SubprocessError with what the command said where it fails."""
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def write_inputs(folder: Path) -> None:
    """Random documents and queries in the layouts that the scripts take."""
    random = np.random.default_rng(0)

    def sides(count: int) -> dict[str, np.ndarray]:
        dense = random.standard_normal((count, WIDTH)).astype(np.float32)
        terms = np.sort(random.permuted(np.tile(np.arange(4 * TERMS), (count, 1)), axis=1)[:, :TERMS], axis=1)
        return {
            "dense": dense / np.linalg.norm(dense, axis=1, keepdims=True),
            "indptr": np.arange(count + 1, dtype=np.int64) * TERMS,
            "token_ids": terms.ravel().astype(np.int32),
            "weights": random.uniform(0.1, 1, count * TERMS).astype(np.float32),
        }

    def tokens(count: int) -> np.ndarray:
        vectors = random.standard_normal((count, TERMS, WIDTH)).astype(np.float32)
        unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
        return unit

    np.savez(folder / "documents.npz", **sides(DOCUMENTS))
    np.savez(folder / "queries.npz", **sides(QUERIES))
    documents, queries = tokens(DOCUMENTS), tokens(QUERIES)
    np.savez(folder / "vectors.npz", documents=documents, queries=queries)
    np.savez(
        folder / "tokens.npz",
        vectors=documents.reshape(-1, WIDTH),
        offsets=np.arange(DOCUMENTS + 1) * TERMS,
        query_vectors=queries.reshape(-1, WIDTH),
        query_offsets=np.arange(QUERIES + 1) * TERMS,
    )
    texts = ["a wing in a flow", "hot water"]
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    (folder / "texts.jsonl").write_text(lines, encoding="utf-8")
    passages = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "passages.jsonl").write_text(passages, encoding="utf-8")


if __name__ == "__main__":
    main()
