"""Do our engines give what each family's own library gives, for a tiny random checkpoint of each?

usage: python -m tests.endurance.peers.families [ENVIRONMENTS]

The checkpoints are those of tests/tiny/layouts.py, which the tests compare with the formulas.
ENVIRONMENTS is a folder with an environment of each library, named as its lock file in benchmarks/peers, such
as `make peers` makes in .venv-peers; scripts beside these encode the same texts there, as queries and as
documents, and the differences are recorded in benchmarks/results. Without it our two engines are compared
with each other. The libraries give one side; the others, of BGE-M3's heads, are compared in the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recording import dated, write
from tercet.models.encoder import Encoder, encode
from tercet.models.export_onnx import export
from tercet.models.loader import load_encoder
from tercet.models.representations import InputType, Representations
from tests.tiny.layouts import LAYOUTS, Layout
from tests.tiny.sparse_folders import dense_rows

ROOT = Path(__file__).resolve().parents[3]
# Library → its script, and the name of its package.
PEERS = {
    "sentence_transformers": ("families_encode.py", "sentence-transformers"),
    "pylate": ("pylate_encode.py", "pylate"),
    "colbert": ("colbert_encode.py", "colbert-ai"),
    "model2vec": ("model2vec_encode.py", "model2vec"),
}
BAR = 1e-4
KINDS: tuple[InputType, ...] = ("query", "document")
TEXTS = [
    "hot tea",
    "the train leaves the green station, and water is hot " * 2,
    "brew tea 밤",
    "wing, air. heat!",
    "a",
    "tea " * 400,
]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Row:
    """One engine of one family. difference: the largest of any number; of: from what."""

    family: str
    sides: tuple[str, ...]
    engine: str
    difference: float
    of: str

    def to_json(self) -> dict[str, Any]:
        """As in the file of results."""
        return {
            "family": self.family,
            "sides": list(self.sides),
            "engine": self.engine,
            "largest_difference": float(f"{self.difference:.2e}"),
            "from": self.of,
        }


def rows_of(layout: Layout, folder: Path, environments: Path | None) -> list[Row]:
    """The rows of one family. folder: of its checkpoint."""
    found = {
        encoder.info.engine: arrays_of([encode(encoder, TEXTS, kind) for kind in KINDS])
        for encoder in engines_of(folder)
    }
    if environments is None:
        first, *others = found
        return [
            Row(layout.name, layout.sides, name, difference(found[name], found[first]), first)
            for name in others
        ]
    expected = peer_arrays(environments / layout.peer / "bin" / "python", PEERS[layout.peer][0], folder)
    return [
        Row(layout.name, layout.sides, name, difference(ours, expected), PEERS[layout.peer][1])
        for name, ours in found.items()
    ]


def engines_of(folder: Path) -> list[Encoder]:
    """Those that run a checkpoint: torch and a float32 graph, or the one of static embeddings."""
    reference = load_encoder(str(folder), "torch", device="cpu")
    if reference.info.engine != "torch":
        return [reference]
    exported = folder.with_name(f"{folder.name}-exported")
    export(folder, exported, int8=False)
    return [reference, load_encoder(str(exported), precision="float32", device="cpu")]


def arrays_of(by_kind: list[Representations]) -> Arrays:
    """What is compared, in the names that the scripts of the peers write."""
    found: Arrays = {}
    for kind, each in zip(KINDS, by_kind, strict=True):
        if each.dense is not None:
            found[f"{kind}_dense"] = each.dense
        if each.sparse is not None:
            found[f"{kind}_sparse"] = dense_rows(each.sparse, 1 + int(each.sparse.token_ids.max()))
        if each.colbert is not None:
            found[f"{kind}_colbert"] = each.colbert.vectors
            found[f"{kind}_lengths"] = np.diff(each.colbert.offsets)
    return found


def difference(ours: Arrays, expected: Arrays) -> float:
    """The largest one of any number. Tables of weights may end at different terms without any."""
    largest = 0.0
    for name, wanted in expected.items():
        found = ours[name]
        if name.endswith("_sparse"):
            terms = max(found.shape[1], wanted.shape[1])
            found, wanted = (np.pad(each, ((0, 0), (0, terms - each.shape[1]))) for each in (found, wanted))
        if found.shape != wanted.shape:
            raise SystemExit(f"{name} has shape {found.shape}, but {wanted.shape} is expected")
        largest = max(largest, float(np.abs(found - wanted).max()))
    return largest


def peer_arrays(python: Path, script: str, folder: Path) -> Arrays:
    """What a library gives for the texts, for each kind."""
    with tempfile.TemporaryDirectory() as scratch:
        texts, output = Path(scratch) / "texts.json", Path(scratch) / "arrays.npz"
        texts.write_text(json.dumps(TEXTS))
        subprocess.run(
            [str(python), str(Path(__file__).with_name(script)), str(folder), str(texts), str(output)],
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        )
        with np.load(output) as arrays:
            return dict(arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("environments", nargs="?", type=Path)
    environments: Path | None = parser.parse_args().environments
    rows: list[Row] = []
    print(f"{'family':20s} {'sides':24s} {'engine':8s} largest difference")
    with tempfile.TemporaryDirectory() as scratch:
        for layout in LAYOUTS:
            for row in rows_of(layout, layout.write(Path(scratch) / layout.key), environments):
                print(f"{row.family:20s} {', '.join(row.sides):24s} {row.engine:8s} {row.difference:.1e}")
                rows.append(row)
    far = [f"{row.family}: {row.difference:.1e}" for row in rows if row.difference > BAR]
    if far:
        sys.exit("; ".join(far))
    if environments is not None:
        peers = {
            package: version_of(environments / name / "bin" / "python", package)
            for name, (_, package) in PEERS.items()
        }
        write("families", dated({"peers": peers, "rows": [row.to_json() for row in rows]}))


def version_of(python: Path, package: str) -> str:
    """The version of a package in an environment."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run(
        [str(python), "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
