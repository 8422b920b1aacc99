"""A Ray cluster of this machine alone, as long as a command runs: a head on ports that are known before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tercet.cluster.ray.errors import RayFailedError
from tercet.cluster.ray.serving.config import RayPart
from tercet.cluster.ray.serving.environment import serve_environment, start_flags
from tercet.cluster.ray.serving.ports import GCS

OBJECT_STORE_BYTES = 200 * 10**6  # Ray Serve passes messages without it
STARTED_SECONDS = 120.0
ENDED_SECONDS = 30.0
LOOK_SECONDS = 0.2


@contextmanager
def local_head(part: RayPart) -> Iterator[str]:
    """Starts a head, and yields its address once it answers. Raises RayFailedError.

    All its files lie in a folder of its owner alone, which goes with it.
    """
    folder = Path(tempfile.mkdtemp(prefix="tercet-"))
    address = f"127.0.0.1:{GCS.first}"
    log = folder / "head.log"
    try:
        with log.open("wb") as written:
            head = subprocess.Popen(
                head_command(part, folder),
                env=os.environ | serve_environment(folder) | _of_head(folder),
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the command, which then ends it in order
            )
        try:
            _await_start(head, log)
            yield address
        finally:
            _end(head)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def head_command(part: RayPart, folder: Path) -> list[str]:
    """How the head is started. folder: for its files."""
    sizes: Mapping[str, int | None] = {"num-cpus": part.num_cpus, "num-gpus": part.num_gpus}
    return [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        "--node-ip-address=127.0.0.1",
        *start_flags(head=True),
        *[f"--{name}={value}" for name, value in sizes.items() if value is not None],
        f"--object-store-memory={OBJECT_STORE_BYTES}",
        f"--temp-dir={folder / 'ray'}",  # which Ray lets everybody write to
        *("--include-dashboard=false", "--disable-usage-stats"),
    ]


def _of_head(folder: Path) -> dict[str, str]:
    """Further variables: replicas find this package also where it is not installed, and end at once."""
    return {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "TMPDIR": str(folder),
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",  # no other proxy has to hear of it first
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "5",  # Ray Serve has ended by then
    }


def _await_start(head: subprocess.Popen[bytes], log: Path) -> None:
    """Raises RayFailedError."""
    deadline = time.monotonic() + STARTED_SECONDS
    while "Ray runtime started" not in (told := log.read_text("utf-8", "replace")):
        if head.poll() is not None or time.monotonic() > deadline:
            raise RayFailedError(
                f"Ray did not start on this machine: {_last(told)}. See that nothing else listens on its "
                "ports (tercet deploy ray FILE --dry-run lists them)"
            )
        time.sleep(LOOK_SECONDS)


def _end(head: subprocess.Popen[bytes]) -> None:
    """Ends the head and all that it started."""
    head.send_signal(signal.SIGTERM)
    try:
        head.wait(ENDED_SECONDS)
    except subprocess.TimeoutExpired:
        head.kill()
        head.wait()
    with suppress(ProcessLookupError):
        os.killpg(head.pid, signal.SIGKILL)


def _last(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it says nothing"
