"""What passes or fails over minutes or hours. Left out of other runs: `pytest -m endurance tests/endurance`.

Each program runs for as long as it takes to find what it looks for, and with ENDURANCE=quick for minutes. By
hand, `python -m tests.endurance.live.crash --help` tells its lengths and seeds.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.endurance, pytest.mark.slow, pytest.mark.timeout(6 * 3600)]

QUICK = os.environ.get("ENDURANCE") == "quick"


@dataclass(frozen=True)
class Program:
    """A module that exits with an error where it finds one.

    quick: arguments of its short run; full: those of the long one; program: what must be installed;
    package: what must be importable; data: whether it reads collections outside the repository.
    """

    module: str
    quick: tuple[str, ...] = ("--quick",)
    full: tuple[str, ...] = ()
    program: str | None = None
    package: str | None = None
    data: bool = False


PROGRAMS = {
    "kills": Program("live.crash", ("--kills", "20")),
    "losses of power": Program("live.power_loss", ("--stride", "100", "--random", "1"), program="strace"),
    "reads beside writes": Program("live.concurrent_writes", ("--minutes", "0.2")),
    "reads beside writes over HTTP": Program(
        "live.concurrent_writes", ("--http", "--minutes", "0.2"), ("--http",)
    ),
    "answers of a build": Program("live.same_as_built", ("--operations", "1000")),
    "churn": Program("live.churn", ("--rounds", "2"), data=True),
    "snapshots": Program("cluster.object_snapshots", ("--kills", "5", "--s3-kills", "0")),
    "shards that fail": Program("cluster.shard_faults", data=True),
    "servers that are replaced": Program("cluster.rolling_upgrade", data=True),
    "ledgers on a store": Program("cluster.ledgers", ("--rounds", "10")),
    "servers that take over": Program("cluster.ledgers", ("--rounds", "10", "--lease"), ("--lease",)),
    "clocks that step": Program(
        "cluster.ledgers", ("--rounds", "10", "--lease", "--clocks"), ("--lease", "--clocks"), "faketime"
    ),
    "replicas": Program("cluster.replicas", data=True),
    "re-sharding": Program("cluster.resharding", ("--documents", "500", "--kills", "2")),
    "a build on Ray": Program("cluster.ray_build", ("--passages", "2000"), package="ray"),
    "families": Program("peers.families", ()),
    "files of strangers": Program("files.strangers"),
    "engines": Program("peers.backends", (), package="pymilvus", data=True),
}
SERVING = ("workers", "clients", "streams", "many_collections", "large", "fuzz", "steady")


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_lost_wrong_or_late(name: str, repository: Path) -> None:
    program = PROGRAMS[name]
    if program.program and shutil.which(program.program) is None:
        pytest.skip(f"needs {program.program}")
    if program.package and importlib.util.find_spec(program.package) is None:
        pytest.skip(f"needs {program.package}")
    if program.data and not (repository.parent / "shared" / "data").is_dir():
        pytest.skip("needs ../shared/data")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            f"tests.endurance.{program.module}",
            *(program.quick if QUICK else program.full),
        ],
        cwd=repository,
        env={**os.environ, "OMP_NUM_THREADS": "1"} if program.package == "ray" else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]


@pytest.mark.parametrize("part", SERVING)
def test_a_server_holds(part: str) -> None:
    """Faults of workers, hostile clients, many collections, large requests and random ones."""
    figures, missed = importlib.import_module(f"tests.endurance.serving.{part}").measure(quick=QUICK)
    assert not missed, figures
