"""Graphs of checkpoints that came without any: exported once, in a process of their own, and kept.

An entry is a folder as `tercet export` writes it, named by the checkpoint and a digest of what it was made
from; it appears in one step. A checkpoint that cannot be exported is remembered likewise, so that not every
start tries it again. Checkpoints themselves are never written to.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import multiprocessing
import os
import re
import shutil
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from tercet.models.checkpoint import REVISION_MARK, read_settings
from tercet.models.errors import EncoderMemoryError, UnsupportedError
from tercet.models.files import UNFINISHED, alone
from tercet.models.fingerprint import file_digest, has_weights, json_digest, weight_files
from tercet.models.formats.sentence_transformers import modules_in
from tercet.models.formats.sparse_modules import sparse_modules
from tercet.models.weights.head_weights import HEAD_FILES

log = logging.getLogger("tercet")

# Raised where the export comes to write another graph of the same checkpoint.
VERSION = 1
KEPT = 4  # of BGE-M3's size 9 GB; the one that was not used for longest goes first
TOLD_SECONDS = 15.0
TORCH, EXPORTER = ("torch", "transformers"), ("onnx", "onnx_ir", "onnxscript")
INSTALL = "pip install -c constraints.txt -e '.[cpu,torch]'"
# Of files that representations may follow from; the last is of Stanford's ColBERT. Of the files `.bin` in the
# folder itself not all are read.
READ_SUFFIXES = (".json", ".safetensors", ".pt", ".model", ".metadata")
REFUSED = ".refused.json"


def cached_export(
    folder: Path,
    name: str,
    origin: str | None,
    cache: Path,
    heads_of: Path | None = None,
    mcls_every: int | None = None,
) -> Path | None:
    """The exported folder of a checkpoint without graphs, made now where it was not before; None where it has
    to run on torch, as the log says.

    name, origin: as of `checkpoint_name` and `checkpoint_origin`; heads_of, mcls_every: as of `export`. Waits
    for another process that makes it.
    Raises CheckpointError where the checkpoint is incomplete, UnsupportedError where torch is not installed.
    """
    files = weight_files(folder)
    for packages in (TORCH, EXPORTER):
        lacking = [package for package in packages if importlib.util.find_spec(package) is None]
        if not lacking:
            continue
        if packages is TORCH:
            raise UnsupportedError(
                f"checkpoint {name} has no exported graph, and to make one needs torch: {INSTALL}"
            )
        _tell_torch(name, f"to export it needs {', '.join(lacking)}: {INSTALL}")
        return None
    key = _key(folder, files, origin, heads_of, mcls_every)[:16]
    entry = cache / f"{re.sub('[^A-Za-z0-9_.-]+', '-', name)}-{key}"
    try:
        if not entry.is_dir():
            cache.mkdir(parents=True, exist_ok=True)
            lock = entry.with_name(f"{entry.name}.lock")
            with alone(lock, f"checkpoint {name} is being exported by another process"):
                refusal = None
                if not entry.is_dir():
                    refusal = _refusal(entry) or _make(folder, name, entry, heads_of, mcls_every)
            if refusal is not None:
                _tell_torch(name, refusal)
                return None
    except OSError as error:
        _tell_torch(name, f"{cache} cannot be written: {error}")
        return None
    with suppress(OSError):  # a cache may be of an image, which nobody can write to
        os.utime(entry)
        _drop_unused(cache)
    return entry


def entries(cache: Path) -> list[Path]:
    """The exports in a cache, the one used last first."""
    folders = [path for path in cache.glob("*") if path.is_dir() and not path.name.startswith(".")]
    return sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)


def _tell_torch(name: str, why: str) -> None:
    log.warning("checkpoint %s runs on torch, more slowly than exported: %s", name, why)


def _key(
    folder: Path,
    weights: list[Path],
    origin: str | None,
    heads_of: Path | None = None,
    mcls_every: int | None = None,
) -> str:
    """Digest of a hub's revision, or of all files of a folder that representations may follow from, and of
    what is changed of it.
    """
    lent = [] if heads_of is None else _lent(heads_of)
    if (
        heads_of is None
        and mcls_every is None
        and origin is not None
        and REVISION_MARK in origin
        and origin.endswith(REVISION_MARK + folder.name)
    ):
        return hashlib.sha256(f"{VERSION} {origin}".encode()).hexdigest()
    kept = {path for path in folder.glob("*.*") if path.suffix in READ_SUFFIXES} | {*weights}
    for part in _parts(folder):
        kept |= {path for path in part.glob("*.*") if path.suffix in (*READ_SUFFIXES, ".bin")}
    digests = {str(path.relative_to(folder)): file_digest(path) for path in sorted(kept) if path.is_file()}
    digests |= {f"heads/{path.name}": file_digest(path) for path in lent}
    changed = {} if mcls_every is None else {"mcls_every": mcls_every}
    return json_digest({"version": VERSION, "files": digests, **changed})


def _lent(lender: Path) -> list[Path]:
    """The files that another checkpoint's heads are in; without one of heads GTE's are among the weights."""
    files = [path for path in (lender / name for name in HEAD_FILES) if path.is_file()]
    return files or (weight_files(lender) if has_weights(lender) else [])


def _parts(folder: Path) -> set[Path]:
    """Folders within a checkpoint from which its encoder is read: of modules, and of adapters by task."""
    sparse, tasks = sparse_modules(folder), read_settings(folder).tasks
    parts = {module.folder for module in modules_in(folder)}
    parts |= set() if sparse is None else {sparse.transformer, sparse.pooling, sparse.table or folder}
    parts |= set() if tasks is None else {folder / tasks.query, folder / tasks.document}
    return {part for part in parts if part.resolve() != folder.resolve()}


def _make(folder: Path, name: str, entry: Path, heads_of: Path | None, mcls_every: int | None) -> str | None:
    """Makes an entry; returns why that cannot be, if so."""
    for stale in entry.parent.glob(f"{UNFINISHED}{entry.name}*"):  # nobody makes it now: the lock is ours
        shutil.rmtree(stale)
    unfinished = entry.with_name(f"{UNFINISHED}{entry.name}-{os.getpid()}")
    log.warning("checkpoint %s is exported to %s; this is done once, and takes a minute or more", name, entry)
    began = time.monotonic()
    try:
        # In a process of its own, so that torch and the weights leave memory with it.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _end_with_parent) as process:
            running = process.submit(_export, folder, unfinished, heads_of, mcls_every)
            while True:
                try:
                    size = running.result(TOLD_SECONDS)
                    break
                except TimeoutError:
                    log.warning("checkpoint %s is being exported: %.0f s", name, time.monotonic() - began)
        unfinished.rename(entry)
    except UnsupportedError as error:
        _refuse(entry, str(error))
        return str(error)
    except (BrokenProcessPool, EncoderMemoryError, MemoryError):
        return "to export it takes more memory than there is"
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    log.warning(
        "checkpoint %s is exported: float32, %.0f MB, in %.0f s", name, size / 1e6, time.monotonic() - began
    )
    return None


def _end_with_parent() -> None:
    """Ends this process where the one that started it is killed: it would go on, and then wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this runs where that has spawned it

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _export(folder: Path, output: Path, heads_of: Path | None, mcls_every: int | None) -> int:
    """Bytes of the graph."""
    from tercet.models.export_onnx import export  # needs torch, which the process that asks does without

    return export(folder, output, int8=False, heads_of=heads_of, mcls_every=mcls_every).graph_bytes


def _versions() -> dict[str, str]:
    return {package: metadata.version(package) for package in ("torch", "transformers", "onnxscript")}


def _refuse(entry: Path, why: str) -> None:
    values = {"reason": why, "versions": _versions()}
    entry.with_name(entry.name + REFUSED).write_text(json.dumps(values) + "\n", encoding="utf-8")


def _refusal(entry: Path) -> str | None:
    """Why these versions could not export it, where they did try."""
    path = entry.with_name(entry.name + REFUSED)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return str(values["reason"]) if values["versions"] == _versions() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _drop_unused(cache: Path) -> None:
    """Removes entries beyond `KEPT`; who has one open keeps its files until it closes them."""
    for entry in entries(cache)[KEPT:]:
        gone = entry.with_name(f".removed-{entry.name}-{os.getpid()}")
        try:
            entry.rename(gone)
        except OSError:  # another process was first
            continue
        shutil.rmtree(gone, ignore_errors=True)
        log.info("the export %s, unused for longest, was removed from the cache", entry.name)
