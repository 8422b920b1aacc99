"""Compiled loops follow their sources, also those that lie in other files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from index.compiled import ROOT

# `_spans` reads offsets, by `array_at` of another file, and gives where two texts begin.
STARTS = """
import numpy as np
from index.token_vectors import texts
from index.token_vectors.store import TokenVectorStore
from models.representations import TokenVectors

vectors = TokenVectors(np.ones((5, 8), np.float32), np.array([0, 2, 5]))
stored = texts.StoredTexts.of(TokenVectorStore.encode(vectors, "int8"), np.array([0, 1]))
hits = sum(texts._spans.stats.cache_hits.values())
print(*stored.starts.tolist(), hits)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A copy of the sources that nothing was compiled of."""
    for name in ("index", "models"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def starts(packages: Path, **environment: str) -> list[int]:
    """Where texts begin, by what is compiled in a new process, and whether it was loaded."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", STARTS],
        cwd=packages,
        env=os.environ | {"PYTHONPATH": str(packages)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_change_of_another_file_is_compiled(packages: Path, elsewhere: bool) -> None:
    environment = {"NUMBA_CACHE_DIR": str(packages / "kept")} if elsewhere else {}
    assert starts(packages, **environment) == [0, 2, 0]
    assert starts(packages, **environment) == [0, 2, 1]
    addresses = packages / "index" / "files" / "addresses.py"
    source, changed = addresses.read_text(), "_pointer(np.int64(address + 8))"
    assert source.count("_pointer(np.int64(address))") >= 1
    addresses.write_text(source.replace("carray(_pointer(np.int64(address))", f"carray({changed}"))
    assert starts(packages, **environment) == [2, 5, 0]


def test_what_a_loop_is_not_made_of_does_not_count(packages: Path) -> None:
    assert starts(packages) == [0, 2, 0]
    with (packages / "index" / "warm_up.py").open("a") as source:
        source.write("# one more line\n")
    assert starts(packages) == [0, 2, 1]
