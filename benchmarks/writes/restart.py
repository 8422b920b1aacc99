"""How soon a collection is there again after SIGKILL with 50,000 documents in its ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from serving.server import ROOT
from writes.documents import Batches, collection, queries

from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits

BATCH = 100
SECONDS = 10.0
NO_FLUSHES = LiveLimits(flush_documents=10**9, flush_bytes=2**40, flush_seconds=10**9, memory_documents=10**9)


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Seconds until a search answers, in a process that did not write."""
    documents = 2_000 if quick else 50_000
    made = collection(work)
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); from writes.restart import fill\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", f"{program}fill({str(work)!r}, {documents})"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.returncode
    ledger_bytes = sum(path.stat().st_size for path in made.layout.folder.glob("ledger.sqlite*"))
    (query,) = queries(1)
    started = time.perf_counter()
    with LiveCollection(Collection.open(work, "live"), NO_FLUSHES) as live:
        opened = time.perf_counter() - started
        live.snapshot().search(query)
        seconds = time.perf_counter() - started
        found = live.snapshot().documents
    assert found == documents, found
    figures = {
        "documents": documents,
        "ledger_bytes": ledger_bytes,
        "opened_seconds": round(opened, 2),
        "searched_seconds": round(seconds, 2),
    }
    return figures, [] if seconds <= SECONDS else [f"{seconds:.1f} s, not {SECONDS:g}"]


def fill(root: str, documents: int) -> None:
    """Writes documents that no segment gets, and is killed."""
    with LiveCollection(Collection.open(Path(root), "live"), NO_FLUSHES) as live:
        for some, encoded in Batches(BATCH).upto(documents):
            live.put(some, encoded)
        os.kill(os.getpid(), signal.SIGKILL)
