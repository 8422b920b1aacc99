"""How well does the embedded default rank, and what do int8 and the index cost?

Each collection is measured with int8 over every document, some also through HNSW and the inverted index with
default candidates, and, where the trained checkpoint is at hand as it was before quantization, with float32
(torch engine). Below stand the bars that the default has to clear. A collection's result is written as soon
as it is there, beside those of the same checkpoint that were measured before.

Run: python benchmarks/quality.py [--float32 trained/minilm-m3] [FOLDER ...]   (default: the English sets of
../shared/data)
"""

import argparse
import datetime
import json
import os
import platform
import statistics
from pathlib import Path
from typing import Any

import psutil

from evaluation.run import evaluate
from models.encoder import Encoder
from models.loader import load_encoder

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
CHECKPOINT = ROOT / "checkpoints" / "minilm-m3"
RESULT = ROOT / "benchmarks" / "results" / "quality.json"

MEASURE = "nDCG@10"
SIDES = ("dense", "sparse", "colbert")
# Stemmed BM25 (k1 1.2, b 0.75) on each set, as the collections' own documentation gives it.
SUM_BARS = {
    "cranfield": 0.424,
    "cacm": 0.477,
    "xquad-en": 0.966,
    "scifact": 0.686,
    "squadshifts-new-wiki": 0.874,
    "npl": 0.434,
    "lisa": 0.464,
    "time": 0.682,
}
INDEXED = ("cranfield", "cacm", "xquad-en")  # also measured through the index
SIDE_MARGIN = 0.005  # the sum may be this much below its best side
INT8_LOSS = 0.003  # of the sum, against float32
INDEX_SHARE = 0.995  # of the exhaustive sum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="BEIR folders")
    parser.add_argument("--float32", type=Path, help="the trained checkpoint before quantization")
    asked = parser.parse_args()
    int8 = load_encoder(str(CHECKPOINT), precision="int8")
    float32 = None if asked.float32 is None else load_encoder(str(asked.float32), "torch", device="cpu")
    for folder in asked.folders or [DATA / name for name in SUM_BARS]:
        entry = measured(folder, int8, float32)
        sets = {
            **stored(int8.info.fingerprint),
            folder.name: entry,
        }  # others may have been measured meanwhile
        record = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": machine(),
            "fingerprint": int8.info.fingerprint,
            "sets": sets,
        }
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    failed = [
        f"{name}: {bar}" for name, entry in sets.items() for bar, holds in entry["bars"].items() if not holds
    ]
    print(f"\nmeans over {len(sets)} sets, int8, every document")
    for ranking in (*SIDES, "sum", "bm25"):
        figures = [entry["results"]["int8, every document"][ranking][MEASURE] for entry in sets.values()]
        print(f"  {ranking:8} {statistics.mean(figures):.4f}")
    assert not failed, "\n".join(failed)


def stored(fingerprint: str) -> dict[str, Any]:
    """What was measured of this very checkpoint, by collection."""
    record = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    return dict(record["sets"]) if record.get("fingerprint") == fingerprint else {}


def measured(folder: Path, int8: Encoder, float32: Encoder | None) -> dict[str, Any]:
    """Figures of one collection, printed and checked against the bars."""
    runs = {}
    if float32 is not None:
        runs["float32, every document"] = evaluate(folder, float32, exhaustive=True)
    runs["int8, every document"] = evaluate(folder, int8, exhaustive=True)
    if folder.name in INDEXED:
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
    best = max(exhaustive[side] for side in SIDES)
    bars = {
        f"the sum is within {SIDE_MARGIN} of its best side, or above": exhaustive["sum"]
        >= best - SIDE_MARGIN,
    }
    if "int8, through the index" in figures:
        indexed = figures["int8, through the index"]["sum"]
        bars[f"the index keeps {INDEX_SHARE} of the sum"] = indexed >= INDEX_SHARE * exhaustive["sum"]
    if dataset in SUM_BARS:
        bars[f"the sum reaches stemmed BM25, {SUM_BARS[dataset]}"] = exhaustive["sum"] >= SUM_BARS[dataset]
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
