"""What encode.py gives each side of a comparison, and what it wants back. For an environment without Tercet.

Run as `python SCRIPT CHECKPOINT TEXTS.jsonl --runs N [--outputs dense,sparse,colbert] [--device cpu|cuda]
[--max-length N]`. Prints one JSON object last: seconds and processor_seconds of each run over all texts,
after one that does not count, and peak_bytes of the process.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[list[str]], object]
"""Encodes all texts."""


@dataclass(frozen=True)
class Asked:
    """outputs: sides asked for; pooling: of the dense vector, cls or mean; max_length: tokens of a text."""

    checkpoint: Path
    outputs: tuple[str, ...]
    pooling: str
    device: str
    max_length: int


def main(
    prepare: Callable[[Asked, argparse.Namespace], Run], parser: argparse.ArgumentParser | None = None
) -> None:
    """Times what `prepare` makes; parser: with options of the script's own."""
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--outputs", default="dense,sparse,colbert")
    parser.add_argument("--pooling", default="cls")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--max-length", type=int, default=512)
    options = parser.parse_args()
    with options.texts.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    outputs = tuple(options.outputs.split(","))
    run = prepare(
        Asked(options.checkpoint, outputs, options.pooling, options.device, options.max_length), options
    )
    seconds, processor_seconds = [], []
    for _ in range(options.runs + 1):
        start, used = time.perf_counter(), time.process_time()
        run(texts)
        seconds.append(time.perf_counter() - start)
        processor_seconds.append(time.process_time() - used)
    found = {"seconds": seconds[1:], "processor_seconds": processor_seconds[1:], "peak_bytes": peak_bytes()}
    print(json.dumps(found))


def peak_bytes() -> int:
    """Of memory that the process held; what `resource` says starts at that of the process that began it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) * 1024
