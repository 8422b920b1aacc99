"""Whether a build on Ray is that of one process, whatever dies; what its workers take; re-sharding after it.

Builds passages of ../shared/data/scale-mix twice: by `tercet collection build`, and in two shards on a Ray
session of this machine whose workers are killed: KILLS times before a segment is written, as often once it
lies on the store, and before its record is returned. Every document's stored bytes are compared, and the
exact dense scores of some queries. Then the shards are divided into three, and these into two, which are
compared again; and a build is killed, and its remains are collected.

Memory is anonymous memory, at its highest: of the child that builds, and of a worker. All have one thread,
since a codebook's last bits depend on how many learned it.

Run: OMP_NUM_THREADS=1 python -m tests.endurance.cluster.ray_build [--passages 20000] [--workers 2]
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.build import anonymous_bytes, write_passages
from tercet.cluster.building import blocks
from tercet.cluster.building.build import build_shards
from tercet.cluster.building.encoders import encoder_opener
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.objects.opening import open_store
from tercet.cluster.ray.executor import ActorPool, RayExecutor
from tercet.cluster.ray.session import prepare
from tercet.cluster.resharding.reshard import reshard
from tercet.cluster.shards.map import newest_map
from tercet.cluster.snapshots.collecting import collect
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.work.executor import ThisProcess
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify
from tercet.service.settings.reading import load_settings
from tests.endurance.cluster import dying

SHARDS = 2
KILLS = 3  # at each moment
QUERIES = ("how plants make food from light", "the first railway", "기후 변화", "who wrote the symphony")
MOST_OF_A_PROCESS = 1.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--block-documents", type=int, default=1_024)
    parser.add_argument("--checkpoint", default="minilm-m3")
    asked = parser.parse_args()
    assert os.environ.get("OMP_NUM_THREADS") == "1", "set OMP_NUM_THREADS=1"
    blocks.blocks_of.__defaults__ = (asked.block_documents, blocks.BLOCK_BYTES)
    with tempfile.TemporaryDirectory(prefix="tercet-ray-") as folder:
        record = measure(Path(folder), asked)
    print(json.dumps(record, indent=2))
    for made in (record["ray"], *record["reshard"].values()):
        assert made["different_documents"] == made["twice"] == 0, "the build on Ray is another one"
    assert record["worker_share_of_process"] <= MOST_OF_A_PROCESS, "a worker takes more than 1.3 times"


def measure(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    corpus = folder / "passages.jsonl"
    origin = write_passages(corpus, asked.passages)
    record: dict[str, Any] = {
        "load": os.getloadavg()[0],
        "passages": asked.passages,
        "origin": origin,
        "checkpoint": asked.checkpoint,
        "block_documents": asked.block_documents,
    }
    settings = load_settings({"checkpoint": asked.checkpoint, "data": folder / "data", "threads": 1})
    record["local"] = build_here(folder, corpus, asked.checkpoint)
    with closing(Collection.open(folder / "data" / "collections", "passages").snapshot()) as local:
        print("stored bytes of the local build", flush=True)
        expected = stored([local]), scores([local], settings)
    url = (folder / "store").as_uri()
    record["ray"] = build_on_ray(url, corpus, settings, asked.workers, folder)
    record["ray"] |= compared(url, folder, expected, settings)
    record["worker_share_of_process"] = round(
        record["ray"]["worker_anonymous_bytes"] / record["local"]["anonymous_bytes"], 3
    )
    record["reshard"] = {}
    for shards in (3, 2):
        started = time.process_time()
        report = reshard(url, shards, ThisProcess())
        record["reshard"][f"to {shards}"] = {
            "cpu_seconds": round(time.process_time() - started, 1),
            "documents": report.documents,
            **compared(url, folder, expected, settings),
        }
    record["killed"] = killed_build(folder, corpus, asked.checkpoint)
    return record


def build_here(folder: Path, corpus: Path, checkpoint: str) -> dict[str, Any]:
    """The build of one process with one encoder thread, as each worker has."""
    command = [
        sys.executable,
        "-m",
        "tercet.cli.main",
        "collection",
        "build",
        str(corpus),
        "--collection",
        "passages",
    ]
    command += ["--data", str(folder / "data"), "--checkpoint", checkpoint, "--threads", "1"]
    started = time.monotonic()
    with subprocess.Popen([*command, "--progress", "none"]) as child:
        highest = 0
        while child.poll() is None:
            highest = max(highest, anonymous_bytes(child.pid))
            time.sleep(0.1)
        assert child.returncode == 0
    return {"seconds": round(time.monotonic() - started, 1), "anonymous_bytes": highest}


def build_on_ray(url: str, corpus: Path, settings: Any, workers: int, folder: Path) -> dict[str, Any]:
    """Builds in shards by workers that die, each with one CPU."""
    prepare(None)
    import ray.cloudpickle  # only now, since it reads of its environment which token it asks for

    died = folder / "died"
    died.mkdir()
    ray.cloudpickle.register_pickle_by_value(dying)  # type: ignore[no-untyped-call]
    opener = encoder_opener(settings)
    build = ShardedBuild("passages", corpus, SHARDS)
    started = time.monotonic()
    with (
        closing(RayExecutor(None, ActorPool(workers, 1, 0), cpus=max(2, workers))) as executor,
        watched() as seen,
    ):
        killing = dying.Killing(executor, died, KILLS)
        report = build_shards(build, opener(), opener, url, killing)
    return {
        "seconds": round(time.monotonic() - started, 1),
        "workers": workers,
        "blocks": report.blocks,
        "documents": report.documents,
        "workers_killed": killing.killed,
        "worker_anonymous_bytes": seen.highest,
    }


@dataclass
class Seen:
    """The highest anonymous memory of any worker."""

    highest: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.ended.wait(0.2):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "MapWorker" in " ".join(process.cmdline()):
                        self.highest = max(self.highest, anonymous_bytes(process.pid))
                except (psutil.Error, OSError):
                    continue


@contextmanager
def watched() -> Iterator[Seen]:
    """Looks at Ray's workers as long as the context lasts."""
    seen = Seen()
    thread = threading.Thread(target=seen.watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        seen.ended.set()
        thread.join()


def compared(url: str, folder: Path, expected: Any, settings: Any) -> dict[str, Any]:
    """How many documents of the shards are other than in the local build, have other codes of token vectors,
    are there twice, or have other exact dense scores.
    """
    store, opened = open_store(url), []
    shards = newest_map(store)
    assert shards is not None
    for number, place in enumerate(shards.shards):
        root = folder / f"pulled-{shards.version}-{number}"
        root.mkdir()
        pull(root, "passages", store.below(place.snapshots), folder / "stages")
        assert verify(root, "passages") == []
        opened.append(Collection.open(root, "passages").snapshot())
    found = stored(opened)
    theirs = scores(opened, settings)
    scores_that_differ = sum(theirs[id] != values for id, values in expected[1].items())
    documents = sum(snapshot.documents for snapshot in opened)
    for snapshot in opened:
        snapshot.close()
    for pulled in folder.glob("pulled-*"):
        shutil.rmtree(pulled)
    ids, none = expected[0].keys() | found.keys(), (0, b"")
    pairs = [(expected[0].get(id, none), found.get(id, none)) for id in ids]
    others = [(one[1], other[1]) for one, other in pairs if one[1] != other[1]]
    bits = [
        np.unpackbits(np.bitwise_xor(*(np.frombuffer(each, np.uint8) for each in pair))) for pair in others
    ]
    return {
        "different_documents": sum(one[0] != other[0] for one, other in pairs),
        "documents_with_other_codes": len(others),
        "code_bits_that_differ": int(sum(each.sum() for each in bits)),
        "code_bits": 8 * sum(len(one[1]) for one, _ in pairs),
        "twice": documents - len(found),
        "dense_scores_that_differ": scores_that_differ,
    }


def stored(snapshots: list[Snapshot]) -> dict[bytes, tuple[int, bytes]]:
    """Of each document a hash of what is stored of it but for the codes of token vectors, and these."""
    found = {}
    for snapshot in snapshots:
        for rows in snapshot.rows(512, 2**18):
            for row in range(len(rows)):
                one = rows.take(np.array([row]))
                tokens = one.tokens
                whole = (
                    bytes(one.contents.take(np.array([0]))[0]),
                    one.dense.tobytes(),
                    one.sparse.token_ids.tobytes(),
                    one.sparse.weights.tobytes(),
                )
                centroids = b"" if tokens is None or tokens.centroids is None else tokens.centroids.tobytes()
                codes = (b"" if tokens is None else tokens.codes.tobytes()) + centroids
                found[one.ids.take(np.array([0]))[0]] = hash(whole), codes
    return found


def scores(snapshots: list[Snapshot], settings: Any) -> dict[str, list[float]]:
    """The exact dense scores of every document for each query; others depend on idf, or on codes."""
    from tercet.models.encoder import encode
    from tercet.service.encoding.service import local_encoder

    encoder = local_encoder(settings)
    found: dict[str, list[float]] = {}
    for query in QUERIES:
        encoded = encode(encoder, [query], "query")
        for snapshot in snapshots:
            ids, components = snapshot.score_all(encoded)
            for id, score in zip(ids, components[:, 0].tolist(), strict=True):
                found.setdefault(id, []).append(score)
    return found


def killed_build(folder: Path, corpus: Path, checkpoint: str) -> dict[str, Any]:
    """Kills a build in shards once the first block is encoded, and collects what is left."""
    url = (folder / "killed").as_uri()
    command = [
        sys.executable,
        "-m",
        "tercet.cli.main",
        "collection",
        "build",
        str(corpus),
        "--collection",
        "passages",
    ]
    command += ["--output", url, "--shards", str(SHARDS), "--checkpoint", checkpoint, "--progress", "none"]
    store = open_store(url)
    with subprocess.Popen([*command, "--data", str(folder / "data")]) as child:
        while child.poll() is None and not any("/parts/" in each.path for each in store.list("builds")):
            time.sleep(0.1)
        child.kill()
    left = list(store.list())
    assert newest_map(store) is None
    collected = collect(store, keep=1, grace=timedelta(0))
    return {
        "objects_left": len(left),
        "objects_collected": collected.manifests + collected.files,
        "objects_after": len(list(store.list())),
    }


if __name__ == "__main__":
    random.seed(0)
    main()
