"""How well does the embedded default rank, and what do int8 and the index cost?

Each collection is measured three times: float32 (the base weights of the development dependency with the
checkpoint's heads, torch engine) and int8 over every document, and int8 through HNSW and the inverted index
with default candidates. Below stand the bars that the default has to clear.

Run: python benchmarks/quality.py [--no-float32] [FOLDER ...]   (default: three sets of ../shared/data)
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Any

import psutil

from evaluation.run import evaluate
from models.checkpoint import SETTINGS_FILE
from models.encoder import Encoder
from models.head_weights import HEADS_FILE
from models.loader import load_encoder
from training.base_checkpoint import locate_base
from training.config import load_settings

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
CHECKPOINT = ROOT / "checkpoints" / "minilm-m3"
CONFIG = ROOT / "training" / "configs" / "minilm-m3.toml"
RESULT = ROOT / "benchmarks" / "results" / "quality.json"
SETS = ("cranfield", "cacm", "xquad-en")

MEASURE = "nDCG@10"
SIDES = ("dense", "sparse", "colbert")
SUM_BARS = {"cranfield": 0.440, "cacm": 0.485, "xquad-en": 0.984}
SIDE_MARGIN = 0.005  # the sum may be this much below its best side
INT8_LOSS = 0.003  # of the sum, against float32
INDEX_SHARE = 0.995  # of the exhaustive sum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="BEIR folders")
    parser.add_argument("--no-float32", action="store_true", help="measure int8 only")
    asked = parser.parse_args()
    folders = asked.folders or [DATA / name for name in SETS]
    int8 = load_encoder(str(CHECKPOINT), precision="int8")
    with tempfile.TemporaryDirectory(prefix="tercet-quality-") as scratch:
        float32 = None if asked.no_float32 else float32_encoder(Path(scratch))
        sets = [measured(folder, int8, float32) for folder in folders]
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "fingerprint": int8.info.fingerprint,
        "sets": {entry["dataset"]: entry for entry in sets},
    }
    if not asked.folders:
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    failed = [
        f"{entry['dataset']}: {bar}" for entry in sets for bar, holds in entry["bars"].items() if not holds
    ]
    assert not failed, "\n".join(failed)


def float32_encoder(folder: Path) -> Encoder:
    """The checkpoint before quantization: base weights, with its own heads and settings."""
    shutil.copytree(locate_base(load_settings(CONFIG).base), folder, dirs_exist_ok=True)
    for name in (HEADS_FILE, SETTINGS_FILE):
        shutil.copyfile(CHECKPOINT / name, folder / name)
    return load_encoder(str(folder), "torch", device="cpu")


def measured(folder: Path, int8: Encoder, float32: Encoder | None) -> dict[str, Any]:
    """Figures of one collection, printed and checked against the bars."""
    runs = {}
    if float32 is not None:
        runs["float32, every document"] = evaluate(folder, float32, exhaustive=True)
    runs["int8, every document"] = evaluate(folder, int8, exhaustive=True)
    runs["int8, through the index"] = evaluate(folder, int8, exhaustive=False, dense_kind="hnsw")
    report = runs["int8, every document"]
    print(f"\n{report['dataset']}: {report['documents']} documents, {report['queries']} queries; {MEASURE}")
    for name, run in runs.items():
        values = "  ".join(f"{ranking} {means[MEASURE]:.4f}" for ranking, means in run["results"].items())
        print(f"  {name:24} {values}")
    figures = {name: {r: m[MEASURE] for r, m in run["results"].items()} for name, run in runs.items()}
    bars = checked(report["dataset"], figures)
    for bar, holds in bars.items():
        print(f"  {'holds' if holds else 'FAILS'}: {bar}")
    return {
        "dataset": report["dataset"],
        "documents": report["documents"],
        "queries": report["queries"],
        "results": {name: run["results"] for name, run in runs.items()},
        "bars": bars,
    }


def checked(dataset: str, figures: dict[str, dict[str, float]]) -> dict[str, bool]:
    """Each bar in words, and whether it holds."""
    exhaustive = figures["int8, every document"]
    indexed = figures["int8, through the index"]
    best = max(exhaustive[side] for side in SIDES)
    bars = {
        f"the sum is within {SIDE_MARGIN} of its best side, or above": exhaustive["sum"]
        >= best - SIDE_MARGIN,
        f"the index keeps {INDEX_SHARE} of the sum": indexed["sum"] >= INDEX_SHARE * exhaustive["sum"],
    }
    if dataset in SUM_BARS:
        bars[f"the sum reaches {SUM_BARS[dataset]}"] = exhaustive["sum"] >= SUM_BARS[dataset]
    if "float32, every document" in figures:
        lost = figures["float32, every document"]["sum"] - exhaustive["sum"]
        bars[f"int8 loses at most {INT8_LOSS}"] = lost <= INT8_LOSS
    return bars


def machine() -> dict[str, str | int]:
    """The hardware that the figures belong to."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
    }


if __name__ == "__main__":
    main()
