"""Processes forked from a warm one, which has no other thread of Python and nothing open."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable

from threadpoolctl import threadpool_limits

from tercet.index.catalog.layout import EMPTY_NAME
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live.state import LiveState
from tercet.index.segments.checks import check_batch
from tests.endurance.crashes.workload import SETTINGS, document, representations

PIECE = 2**16


def warm_up() -> None:
    """Loads what writing and searching import, so that no forked process does it again.

    OpenMP gets one thread, and so starts none: the threads of a pool are not there after a fork.
    """
    threadpool_limits(1, user_api="openmp")
    ids = [f"0-{number}" for number in range(3)]
    state = LiveState(SETTINGS, EMPTY_NAME, ())
    for version in (1, 2):
        rows = check_batch(
            [document(id, version, version) for id in ids], representations(ids, [version] * 3), SETTINGS
        )
        state = state.put(rows, version)
    state = state.delete(PackedBytes.of([b"0-0"]), 3)
    state.snapshot().search(representations(["0-1"], [2]), text="document")


def killed_after(seconds: float, work: Callable[[int], object], hear: Callable[[list[object]], None]) -> bool:
    """Runs `work` in a forked process, which gets a pipe to tell lines of JSON through, and kills it.

    hear: is told each line, also those that were in the pipe when it died. Returns whether it was alive.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _run_and_end(work, writing)
    os.close(writing)
    deadline = time.monotonic() + seconds
    held, open_still = b"", True
    while open_still and (left := deadline - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            piece = os.read(reading, PIECE)
            open_still = bool(piece)
            *lines, held = (held + piece).split(b"\n")
            for line in lines:
                hear(json.loads(line))
    os.kill(process, signal.SIGKILL)
    while piece := os.read(reading, PIECE):
        held += piece
    os.close(reading)
    _, status = os.waitpid(process, 0)
    for line in held.split(b"\n")[:-1]:  # a last one may be cut off
        hear(json.loads(line))
    return os.WIFSIGNALED(status)


def answer_of(work: Callable[[], object]) -> object:
    """What `work` returns in a forked process. Raises RuntimeError where it fails."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _run_and_end(lambda pipe: _write_all(pipe, json.dumps(work()).encode()), writing)
    os.close(writing)
    answer = b""
    while piece := os.read(reading, PIECE):
        answer += piece
    os.close(reading)
    _, status = os.waitpid(process, 0)
    if status:
        raise RuntimeError(f"a process ended with status {status}: {answer.decode()[-3000:]}")
    return json.loads(answer)


def _run_and_end(work: Callable[[int], object], pipe: int) -> None:
    """In the forked process: it ends here, without what its parent would do at its end."""
    try:
        work(pipe)
    except BaseException:  # noqa: BLE001 - told to the parent
        _write_all(pipe, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


def _write_all(pipe: int, content: bytes) -> None:
    while content:
        content = content[os.write(pipe, content) :]
