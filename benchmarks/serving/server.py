"""A real `tercet serve` or `tercet encoder` in a process of its own, over a collection built for it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx
import psutil

from benchmarks.recording import ROOT
from tercet.models.checkpoint import ENGLISH

DEMO = ROOT / "examples" / "demo"
START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its address and its process."""

    url: str
    process: psutil.Process

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the process so far, in and for it."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    @property
    def memory_bytes(self) -> int:
        """Its resident memory that is not mapped from files."""
        memory = self.process.memory_info()
        return int(memory.rss - memory.shared)


@contextmanager
def serving(
    data: Path,
    *,
    command: str = "serve",
    port: int = 0,
    program: Sequence[str] | None = None,
    niceness: int = 0,
    **settings: str | int | float,
) -> Iterator[Server]:
    """A ready server over a data root; settings by name, without the prefix.

    program: what Python runs instead of the `tercet` command. niceness: above 0 where what asks the server
    is not to wait for a processor behind it, as clients elsewhere do not.
    """
    port = port or free_port()
    # Figures of a server are compared with earlier ones, which were the smaller encoder's.
    # Queries of a benchmark come again, and are encoded each time.
    settings = {"checkpoint": ENGLISH, "query_cache_bytes": 0, **settings}
    variables = {f"TERCET_{name.upper()}": str(value) for name, value in settings.items()}
    places = {"TERCET_PORT": str(port), "TERCET_DATA": str(data)}
    with (data / f"{command}-{port}.log").open("ab") as log:  # the process has it open by itself
        process = subprocess.Popen(
            [sys.executable, *(program or ["-m", "tercet.cli.main", command])],
            env=environment({**variables, **places}),
            cwd=data,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url)
        yield Server(url, psutil.Process(process.pid))
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings of its own, with the repository's code and these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TERCET_")}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**kept, "PYTHONPATH": paths, "TERCET_LOG_LEVEL": "warning", **variables}


def wait_until_ready(url: str, seconds: float = START_SECONDS) -> None:
    """Returns once `/ready` answers 200."""
    give_up = time.monotonic() + seconds
    with httpx.Client(timeout=5) as client:  # one for all: to make one takes longer than to ask
        while time.monotonic() < give_up:
            try:
                if client.get(f"{url}/ready").status_code == httpx.codes.OK:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
    raise TimeoutError(f"{url} was not ready within {seconds:g} s")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def build_command(source: Path, name: str, *options: str) -> list[str]:
    """What builds a collection of a source. options: more of `tercet collection build`."""
    build = [sys.executable, "-m", "tercet.cli.main", "collection", "build"]
    return [*build, str(source), "--collection", name, *options]


def build(data: Path, name: str, documents: Path | Iterable[Mapping[str, object]], *options: str) -> None:
    """Builds a collection of a source, or of documents, below a data root.

    options: more of `tercet collection build`.
    """
    if isinstance(documents, Path):
        source = documents
    else:
        source = data / f"{name}.jsonl"
        source.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    subprocess.run(
        build_command(source, name, *options, "--data", str(data), "--progress", "none"),
        env=environment({}),
        cwd=data,
        check=True,
    )


@cache
def demo_queries() -> list[str]:
    """The queries of the bundled corpus."""
    lines = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["query"]) for line in lines]


@cache
def demo_texts() -> list[str]:
    """The texts of the bundled corpus."""
    lines = (DEMO / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["text"]) for line in lines]
