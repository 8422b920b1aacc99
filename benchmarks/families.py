"""Do our engines give what sentence-transformers gives, for a tiny random checkpoint of each family?

usage: python benchmarks/families.py [PEER_PYTHON]

The checkpoints are those of benchmarks/tiny/families.py, which the tests compare with plain transformers.
PEER_PYTHON is the Python of an environment with sentence-transformers 6.2.0 and transformers 5.23.0, where
benchmarks/peers/families_encode.py encodes the same texts as queries and as documents; without it our two
engines are compared with each other, and no results are written. What the peer gives is dense; other sides
are compared in the tests.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from serving.server import machine
from tiny.families import FAMILIES, Family, write

from models.encoder import Encoder, encode
from models.export_onnx import export, largest_differences
from models.loader import load_encoder
from models.representations import InputType, Representations

ROOT = Path(__file__).resolve().parent.parent
PEER_SCRIPT = ROOT / "benchmarks" / "peers" / "families_encode.py"
RESULT = ROOT / "benchmarks" / "results" / "families.json"
KINDS: tuple[InputType, ...] = ("query", "document")
TEXTS = [
    "hot tea",
    "the train leaves the green station, and water is hot " * 2,
    "brew tea 밤",
    "a",
    "tea " * 400,
]


@dataclass(frozen=True)
class Row:
    """One engine of one family. difference: the largest of any component; of: from what."""

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


def rows_of(family: Family, folder: Path, peer: str | None) -> list[Row]:
    """The rows of one family. folder: of its checkpoint."""
    exported = folder.with_name(f"{folder.name}-exported")
    export(folder, exported, int8=False)
    engines: dict[str, Encoder] = {
        "torch": load_encoder(str(folder), "torch", device="cpu"),
        "onnx": load_encoder(str(exported), precision="float32", device="cpu"),
    }
    found = {name: [encode(encoder, TEXTS, kind) for kind in KINDS] for name, encoder in engines.items()}
    if peer is None:
        difference = max(map(_largest, found["torch"], found["onnx"]))
        return [Row(family.name, family.sides, "onnx", difference, "torch")]
    expected = _peer_vectors(peer, folder)
    return [
        Row(
            family.name,
            family.sides,
            name,
            max(
                float(np.abs(each.dense - expected[kind]).max())
                for each, kind in zip(ours, KINDS, strict=True)
            ),
            "sentence-transformers",
        )
        for name, ours in found.items()
    ]


def _largest(one: Representations, other: Representations) -> float:
    return max(largest_differences(one, other).values())


def _peer_vectors(python: str, folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Dense vectors of the texts by the peer, for each kind."""
    with tempfile.TemporaryDirectory() as scratch:
        texts, output = Path(scratch) / "texts.json", Path(scratch) / "vectors.npz"
        texts.write_text(json.dumps(TEXTS))
        subprocess.run(
            [python, str(PEER_SCRIPT), str(folder), str(texts), str(output)],
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
        with np.load(output) as arrays:
            return {kind: arrays[kind] for kind in KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peer_python", nargs="?")
    peer = parser.parse_args().peer_python
    rows: list[Row] = []
    print(f"{'family':20s} {'sides':24s} {'engine':8s} largest difference")
    with tempfile.TemporaryDirectory() as scratch:
        for family in FAMILIES:
            for row in rows_of(family, write(family, Path(scratch) / family.key), peer):
                print(f"{row.family:20s} {', '.join(row.sides):24s} {row.engine:8s} {row.difference:.1e}")
                rows.append(row)
    if peer is None:
        return
    packages = ("torch", "transformers", "onnxruntime", "onnx", "tokenizers", "numpy")
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in packages}
        | {"python": sys.version.split()[0]},
        "peer": _peer_version(peer),
        "texts": len(TEXTS) * len(KINDS),
        "rows": [row.to_json() for row in rows],
    }
    RESULT.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _peer_version(python: str) -> str:
    code = (
        "import importlib.metadata as m; print('sentence-transformers', m.version('sentence-transformers'))"
    )
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
