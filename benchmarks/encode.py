"""How fast does a CPU, or a GPU, encode passages of mixed length, beside other programs?

usage: python -m benchmarks.encode [--shape minilm|bge-m3|colbert] [--device cpu|cuda] [--length TOKENS]
                                   [--passages N] [--rounds N] [--runs N] [--instructions avx2]
                                   [--peer NAME …]

All sides encode the same texts with the same checkpoint, tokenization included, in processes of their own
and by turns, so that a change of the machine's load meets all of them. The weights are random, as speed
does not depend on them: MiniLM's shape with mean pooling and token vectors of 384 values, BGE-M3's, or
MiniLM's with token vectors of 128 values alone. Peers are those of `make peers`, or NAME=PYTHON with an
environment made elsewhere. On a GPU ours are the torch engine in its default precision and, with
onnxruntime for GPUs, the onnx engine in float32; FlagEmbedding has float16 there, and beside them stands
the GPU's own bfloat16 product. --length: texts of so many tokens each. --instructions: as on a processor
that has no others, for our own kernels and torch, which can be told so.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.encoding.shapes import SHAPES, Shape
from benchmarks.encoding.shapes import write as write_checkpoint
from benchmarks.recording import DATA, ROOT, dated, write
from benchmarks.roofline import Work
from tercet.models.checkpoint import read_settings
from tercet.models.export_onnx import export
from tercet.models.representations import Int64
from tercet.models.tokenizer import Tokenizer

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = ROOT / ".venv-peers"
MAX_LENGTH = 512
PASSAGES = {"cpu": {"bge-m3": 48}, "cuda": {"bge-m3": 6_000}}
MOST_PASSAGES = {"cpu": 400, "cuda": 20_000}
LIMITS = {
    "avx2": {
        "TERCET_INSTRUCTIONS": "avx2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    }
}
"""Variables of the environment for --instructions: ours, then those of torch and of its two libraries."""
PACKAGES = ("onnxruntime", "onnxruntime-gpu", "torch", "transformers", "numpy", "tokenizers")


@dataclass(frozen=True)
class Side:
    """A program beside others: the Python that runs a script below `peers`, and what that is given."""

    name: str
    python: str
    script: str
    checkpoint: Path
    options: tuple[str, ...] = ()


@dataclass
class Measured:
    """seconds, and those of processors, of each run over all texts; peak_bytes: of the process."""

    seconds: list[float]
    processor_seconds: list[float]
    peak_bytes: int


def passages(count: int, seed: int = 0) -> list[str]:
    """English passages, five sixths of them short (documentation, papers), the rest whole abstracts."""
    chosen = random.Random(seed)
    if not DATA.is_dir():
        lengths = (int(chosen.lognormvariate(4.2, 0.8)) for _ in range(count))
        return [" ".join(chosen.choices(WORDS, k=max(1, length))) for length in lengths]
    short, long = _texts("scale-mix", '"lang": "en"'), _texts("scifact", "")
    texts = chosen.sample(short, count - count // 6) + chosen.sample(long, count // 6)
    chosen.shuffle(texts)
    return texts


WORDS = ("wing", "flow", "pressure", "layer", "heat", "transfer", "speed", "of", "the", "and", "in")


def texts_of(length: int, count: int) -> list[str]:
    """Texts that have as many tokens at least, to be cut there."""
    chosen = random.Random(0)
    return [" ".join(chosen.choices(WORDS, k=length)) for _ in range(count)]


def _texts(name: str, marker: str) -> list[str]:
    with gzip.open(DATA / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines if marker in line]


def ours(checkpoint: Path, exported: Path, device: str) -> list[Side]:
    """Our engines."""
    script, python = "tercet_encode.py", sys.executable
    if device == "cpu":
        in_its_own_process(export_both, checkpoint, exported)
        options = {
            "int8": ("--engine", "onnx", "--precision", "int8"),
            "int8, onnxruntime": ("--engine", "onnxruntime", "--precision", "int8"),
            "float32": ("--engine", "onnx", "--precision", "float32"),
        }
        return [Side(name, python, script, exported, given) for name, given in options.items()]
    sides = [Side("torch", python, script, checkpoint, ("--engine", "torch"))]
    if version("onnxruntime-gpu"):
        export(checkpoint, exported, int8=False)
        sides.append(
            Side("onnx float32", python, script, exported, ("--engine", "onnx", "--precision", "float32"))
        )
    return sides


def export_both(checkpoint: Path, exported: Path) -> None:
    """Our graphs in float32 and int8."""
    for int8 in (False, True):
        export(checkpoint, exported, int8=int8)


def in_its_own_process(work: Callable[..., None], *arguments: object) -> None:
    """So that the memory that it takes is free for the sides."""
    process = get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0, f"{work.__name__} failed"


def peer(named: str, checkpoint: Path, exported: Path) -> Side:
    """A peer by its name, or NAME=PYTHON. OpenVINO takes our graph."""
    name, _, python = named.partition("=")
    python = python or str(ENVIRONMENTS / name / "bin" / "python")
    return Side(name, python, f"{name}_encode.py", exported if name == "openvino" else checkpoint)


def measure(side: Side, texts: Path, shape: Shape, arguments: argparse.Namespace) -> Measured:
    """One process of a side. Raises CalledProcessError where it fails, after what it said."""
    command = [side.python, HERE / "peers" / side.script, side.checkpoint, texts, *side.options]
    command += ["--runs", arguments.runs, "--outputs", ",".join(shape.outputs), "--pooling", shape.pooling]
    command += ["--device", arguments.device, "--max-length", arguments.length or MAX_LENGTH]
    environment = {
        **os.environ,
        **LIMITS.get(arguments.instructions, {}),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment, check=True
    )
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


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


def version(package: str) -> str | None:
    """Of an installed package; None without it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="minilm")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--length", type=int)
    parser.add_argument("--passages", type=int)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--instructions", choices=LIMITS)
    parser.add_argument("--peer", nargs="*", default=[], dest="peers", metavar="NAME")
    arguments = parser.parse_args()
    device, shape = arguments.device, SHAPES[arguments.shape]
    if arguments.instructions and device != "cpu":
        parser.error(f"--instructions {arguments.instructions} is of a CPU: leave out --device {device}")
    count = arguments.passages or PASSAGES[device].get(shape.name, MOST_PASSAGES[device])
    texts = texts_of(arguments.length, count) if arguments.length else passages(count)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, exported = Path(folder) / "checkpoint", Path(folder) / "exported"
        in_its_own_process(write_checkpoint, shape, checkpoint)
        lines = Path(folder) / "texts.jsonl"
        lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        sides = ours(checkpoint, exported, device)
        if arguments.instructions:
            sides = [side for side in sides if side.name == "int8"]
        sides += [peer(name, checkpoint, exported) for name in arguments.peers]
        measured: dict[str, list[Measured]] = {side.name: [] for side in sides}
        for _ in range(arguments.rounds):
            for side in sides:
                measured[side.name].append(measure(side, lines, shape, arguments))
        tokenizer = Tokenizer.load(checkpoint, read_settings(checkpoint))
        lengths = tokenizer.tokenize(texts, max_length=arguments.length or MAX_LENGTH).lengths
    report(measured, lengths, shape, arguments)


def report(
    measured: dict[str, list[Measured]], lengths: Int64, shape: Shape, arguments: argparse.Namespace
) -> None:
    """Prints the table and writes it with date, hardware and versions."""
    on_gpu = arguments.device == "cuda"
    peak, of = (bfloat16_peak(), "bfloat16") if on_gpu else (matrix_product_peak(), "float32")
    tokens = int(lengths.sum())
    flops = sum(Work.of(shape, length).flops * length for length in lengths.tolist())
    print(
        f"{len(lengths)} texts, {tokens} tokens, {shape.name}'s shape; {of} matrix product {peak:.0f} GFLOP/s"
    )
    rows = {}
    for name, rounds in measured.items():
        seconds = statistics.median(second for each in rounds for second in each.seconds)
        used = statistics.median(second for each in rounds for second in each.processor_seconds)
        rows[name] = {
            "tokens_per_second": round(tokens / seconds),
            "tokens_per_processor_second": round(tokens / used),
            "share_of_the_matrix_product": round(flops / seconds / peak / 1e9, 3),
            "peak_megabytes": round(max(each.peak_bytes for each in rounds) / 1e6),
            "seconds": [round(second, 3) for each in rounds for second in each.seconds],
        }
    first = next(iter(rows))
    print(f"{'':20s} tokens/s  a processor second  of the product  peak MB  speed of {first} over it")
    for name, row in rows.items():
        ratios = (rows[first][key] / row[key] for key in ("tokens_per_second", "tokens_per_processor_second"))
        by_clock, by_processor = ratios
        print(
            f"{name:20s} {row['tokens_per_second']:8d} {row['tokens_per_processor_second']:19d} "
            f"{row['share_of_the_matrix_product']:15.1%} {row['peak_megabytes']:8d}  "
            f"{by_clock:.2f}, by processor time {by_processor:.2f}"
        )
    record = {
        **({"gpu": gpu()} if on_gpu else {}),
        "versions": {name: found for name in PACKAGES if (found := version(name))}
        | {"python": sys.version.split()[0]},
        "shape": shape.name,
        "outputs": shape.outputs,
        "texts": len(lengths),
        "tokens": tokens,
        "matrix_product_gflops": round(peak, 1),
        "sides": rows,
    }
    parts = ["encode", shape.name]
    parts += [str(arguments.length)] * bool(arguments.length) + ["cuda"] * on_gpu
    parts += [arguments.instructions] * bool(arguments.instructions)
    write("-".join(parts), dated(record))


if __name__ == "__main__":
    main()
