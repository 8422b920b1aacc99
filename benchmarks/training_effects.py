"""Which published effects of pre-training and fine-tuning appear at a scale of two CPUs?

usage: python -m benchmarks.training_effects [GROUP …] [--quick] [--seeds N] [--work FOLDER] [--table]

Each group has a control. Its variants are trained from the same start on the same data with the same seeds,
and measured on judged collections that no run has seen. Each cell of the table has the difference from the
control and its standard error, paired over the queries. A run that has figures is passed over, so the
benchmark can be stopped and started again. --quick runs everything with a few steps on one collection, to see
that it works; its figures mean nothing and go to the work folder alone. Groups, the control first:

pretraining   MLM alone, Condenser, coCondenser, RetroMAE with basic and with enhanced decoding, for equal
              steps, of a small body that MLM has trained and no pair has. What predicts warms up on the
              frozen body, at a rate of its own. Measured by the CLS as it is, and after the same fine-tuning
distillation  fine-tuning of all-MiniLM-L6-v2 without and with self-knowledge distillation: heads at random,
              three mined negatives a query, the mean of the sides at a temperature of .05 as the teacher
negatives     random negatives, as many mined ones, and in-batch ones alone
adapters      the whole body, the heads alone, and LoRA, (IA)³, prefix and bottleneck in the body's place
mcls          texts longer than those trained on, with one CLS and with a CLS every 128 tokens
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.effects.figures import CLS, SIDES, Figures, long_texts, mean, measured, paired, zero_shot
from benchmarks.effects.variants import (
    DISTILLATION,
    FINETUNING,
    FULL,
    GROUPS,
    LONG_COLLECTION,
    PRETRAINED_LENGTH,
    PRETRAINING,
    QUICK,
    Scale,
    Values,
    after_pretraining,
    as_base,
    distillation,
    finetuning,
    heads_fitted,
    minilm_by_cls,
    pretraining,
    small_body,
)

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
RESULTS = Path(__file__).resolve().parent / "results" / "training_effects.json"
MCLS_EVERY = 128


def trained(values: Values, output: Path) -> Values:
    """Runs the training; returns the parameters that it trains, CPU seconds of its steps, and tokens."""
    from safetensors.numpy import load_file

    from tercet.training.run import run_training
    from tercet.training.settings.reading import settings_from

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


def once(values: Values, output: Path) -> Path:
    """The folder of a run that others start from, trained where it is not there."""
    if not (output / "README.md").exists():  # which is written last
        trained(values, output)
    return output


class Effects:
    """Runs variants of a scale below a work folder, and keeps there what each gave by query."""

    def __init__(self, scale: Scale, work: Path) -> None:
        self._scale = scale
        self._work = work

    def figures(self, variant: str, seed: int) -> Figures:
        """nDCG@10 by query; trains and measures the variant where that was not done."""
        found: Figures = self._record(variant, seed)["ndcg@10"]
        return found

    def cost(self, variant: str, seed: int) -> Values:
        """Parameters that train, CPU seconds of the steps, tokens; nothing where nothing is trained."""
        found: Values = self._record(variant, seed)["cost"]
        return found

    def _record(self, variant: str, seed: int) -> Values:
        path = self._folder(variant, seed).with_suffix(".json")
        if not path.exists():
            print(f"{variant}, seed {seed}", flush=True)
            record = self._run(variant, seed)
            path.write_text(json.dumps(record))
        found: Values = json.loads(path.read_text())
        return found

    def _folder(self, variant: str, seed: int) -> Path:
        self._work.mkdir(parents=True, exist_ok=True)
        return self._work / f"{variant.replace(' ', '-').lower()}-{seed}"

    def _run(self, variant: str, seed: int) -> Values:
        """Trains a variant and measures it."""
        scale, output = self._scale, self._folder(variant, seed)
        if variant in GROUPS["mcls"]:
            base = once(minilm_by_cls(seed, scale), self._folder("minilm by cls", seed))
            every = MCLS_EVERY if variant == "MCLS" else None
            long = long_texts(base, every, DATA / LONG_COLLECTION)
            return {"cost": {}, "ndcg@10": {LONG_COLLECTION: long}}
        if variant in PRETRAINING:
            return self._run_pretraining(variant, seed, output)
        if variant in DISTILLATION:
            cost = trained(distillation(seed, scale, variant), output)
            return {"cost": cost, "ndcg@10": self._measured(output, None)}
        base = once(heads_fitted(seed, scale), self._folder("heads fitted", seed))
        values = finetuning(seed, scale, as_base(base), FINETUNING[variant], scale.finetuning_steps)
        cost = trained(values, output)
        adapted = "adapter" in FINETUNING[variant]
        found = self._measured(base if adapted else output, output if adapted else None)
        return {"cost": cost, "ndcg@10": found}

    def _run_pretraining(self, variant: str, seed: int, output: Path) -> Values:
        scale = self._scale
        start = once(small_body(scale), self._folder("small body", 1))
        before = once(pretraining(seed, scale, start, variant), self._folder(f"{variant} pretrained", seed))
        cost = trained(after_pretraining(seed, scale, before), output)
        found = self._measured(output, None)
        for name, sides in found.items():
            sides[CLS] = zero_shot(before, PRETRAINED_LENGTH, DATA / name)
        return {"cost": cost, "ndcg@10": found}

    def _measured(self, checkpoint: Path, adapter: Path | None) -> Figures:
        return {name: measured(checkpoint, adapter, DATA / name) for name in self._scale.collections}


def summary(effects: Effects, group: str, seeds: int) -> dict[str, Values]:
    """Of each variant of a group: cost, and of each side mean, difference from the control and its error."""
    runs = {
        variant: [effects.figures(variant, seed) for seed in range(1, seeds + 1)] for variant in GROUPS[group]
    }
    control = runs[GROUPS[group][0]]
    sides = [*SIDES, CLS] if group == "pretraining" else list(SIDES)
    found: dict[str, Values] = {}
    for variant, figures in runs.items():
        found[variant] = {**effects.cost(variant, 1), "seeds": seeds, "ndcg@10": {}}
        for side in sides:
            difference, error = paired(figures, control, side)
            found[variant]["ndcg@10"][side] = {
                "by_seed": [round(mean(run, side), 4) for run in figures],
                "mean": round(statistics.mean(mean(run, side) for run in figures), 4),
                "difference": round(difference, 4),
                "error": round(error, 4),
            }
    return found


def print_table(group: str, found: dict[str, Values]) -> None:
    """A line a variant; in brackets the difference from the control, with its paired standard error."""
    print(f"\n{group}, {next(iter(found.values()))['seeds']} seeds")
    for variant, values in found.items():
        cells = [
            f"{side} {cell['mean']:.4f} ({cell['difference']:+.4f} ± {cell['error']:.4f})"
            for side, cell in values["ndcg@10"].items()
        ]
        cost = f"{values['parameters']:>11,} {values['seconds']:6.0f} s" if "parameters" in values else ""
        print(f"  {variant:20}{cost:20}  {'  '.join(cells)}")


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
    """Runs what has no figures yet, then prints and writes the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default all")
    parser.add_argument("--quick", action="store_true", help="a few steps on one collection")
    parser.add_argument("--seeds", type=int, help=f"default {FULL.seeds}")
    parser.add_argument("--work", type=Path, default=Path("trained") / "effects")
    parser.add_argument("--table", action="store_true", help="print what is stored and run nothing")
    options = parser.parse_args()
    unknown = sorted(set(options.groups) - set(GROUPS))
    if unknown:
        parser.error(f"{', '.join(unknown)}: no such group; there are {', '.join(GROUPS)}")
    groups = options.groups or list(GROUPS)
    scale = QUICK if options.quick else FULL
    work = (options.work / "quick" if options.quick else options.work).resolve()
    results = work / "results.json" if options.quick else RESULTS
    stored: Values = json.loads(results.read_text()) if results.exists() else {}
    tables: dict[str, dict[str, Values]] = stored.get("groups", {})
    for group in groups:
        if not options.table:
            tables[group] = summary(Effects(scale, work), group, options.seeds or scale.seeds)
            results.write_text(json.dumps({**machine(), "groups": tables}, indent=1) + "\n")
        if group in tables:
            print_table(group, tables[group])
    return 0


if __name__ == "__main__":
    sys.exit(main())
