"""Are snapshots on an object store whole, whoever is killed and whoever races, and how fast are they?

A collection gets state after state. Each is pushed, pulled and followed by processes that are killed at a
random moment, looked at, and finished: what is published, pulled or served must be the former state or the
next, whole, and what was sent must not be sent again. Then several publishers race, bytes are flipped, and
pushing and pulling are timed beside copying and hashing the same files. Stores: a folder, an S3 server (moto,
for correctness alone), and one that overwrites (rclone serve s3), which must be refused.

Run: python -m tests.endurance.cluster.object_snapshots [--kills 100] [--s3-kills 20] [--rclone PATH]
"""

import argparse
import json
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import httpx

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.snapshots.published import newest_published
from tests.endurance.crashes.processes import answer_of, warm_up
from tests.endurance.snapshots import kills, speed, world

PUBLISHERS = 16
FLIPS = 20
ALL_REFUSED = f"{FLIPS} of {FLIPS}"
OF_TESTS = "see tests/cluster/objects/test_stores.py"
LARGE_BYTES = 200_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="of pushes, pulls and followers each")
    parser.add_argument("--s3-kills", type=int, default=20, help="the same on the S3 server; 0: without it")
    parser.add_argument("--rclone", help="the program, for the store that overwrites")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--folder", type=Path, help="an empty one on the disk to be used")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    warm_up()
    record: dict[str, object] = {
        "seed": asked.seed,
    }
    with tempfile.TemporaryDirectory(prefix="tercet-objects-", dir=asked.folder) as name:
        folder = Path(name)
        record["folder"] = of_store(folder / "a", (folder / "store-a").as_uri(), asked.kills, asked.seed)
        if asked.s3_kills:
            with s3_server() as bucket:
                record["s3 (moto)"] = of_store(folder / "b", bucket, asked.s3_kills, asked.seed)
        if asked.rclone:
            with overwriting_server(asked.rclone, folder / "rclone") as bucket:
                record["rclone serve s3"] = refused(folder / "a", bucket)
        record["speed"] = speed.measure(folder / "c", LARGE_BYTES)
    print(json.dumps(record, indent=2))
    if "problems" in json.dumps(record):
        sys.exit("something was half, lost or sent again")


def of_store(folder: Path, url: str, count: int, seed: int) -> dict[str, object]:
    """Kills, racers and flipped bytes on one store."""
    folder.mkdir()
    run = kills.Kills(folder, f"{url}/kills", seed)
    step = 0
    while run.fewest < count and not run.problems:
        step += 1
        run.step(step)
        if step % 10 == 0:
            print(f"{url}: {step} steps, {run.fewest} kills of each at least", flush=True)
    again = answer_of(lambda: world.push_all(folder / "source" / "collections", f"{url}/kills"))
    found: dict[str, object] = {
        "steps": step,
        "what_they_met": dict(sorted(run.counts.items())),
        "pushed_again_without_change": again,
        "race": kills.race(folder, f"{url}/race", PUBLISHERS),
        "flipped_bytes_refused": flipped(folder, f"{url}/kills", seed),
    }
    if False in cast(dict[str, object], found["race"]).values():
        run.problems.append("a race had no winner, or two")
    if found["flipped_bytes_refused"] not in (ALL_REFUSED, OF_TESTS):
        run.problems.append("a flipped byte was not refused")
    return found | ({"problems": run.problems[:10]} if run.problems else {})


def flipped(folder: Path, url: str, seed: int) -> str:
    """How many of so many snapshots with one flipped bit somewhere were refused. On a folder alone."""
    if not url.startswith("file://"):
        return OF_TESTS
    generator = random.Random(seed)
    files = sorted((Path(url.removeprefix("file://")) / "files").iterdir())
    named = set(cast(list[str], answer_of(lambda: named_files(url))))
    refusals = 0
    for number in range(FLIPS):
        path = generator.choice([each for each in files if each.name in named])
        content = bytearray(path.read_bytes())
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        sound = path.read_bytes()
        path.write_bytes(content)
        data = folder / f"flipped-{number}"
        (data / "collections").mkdir(parents=True)
        refusals += bool(answer_of(partial(is_refused, data, url)))
        path.write_bytes(sound)
        shutil.rmtree(data)
    return f"{refusals} of {FLIPS}"


def named_files(url: str) -> list[str]:
    """What the newest snapshot names."""
    newest = newest_published(open_store(url))
    return [] if newest is None else [entry.sha256 for entry in newest.files.values()]


def is_refused(data: Path, url: str) -> bool:
    """Whether a pull is refused, and leaves nothing."""
    try:
        world.pull_all(data, url)
    except ClusterError as error:
        return "is damaged" in str(error) and not list((data / "collections").iterdir())
    return False


def refused(folder: Path, bucket: str) -> str:
    """What a push to a store that overwrites says."""

    def ask() -> str:
        try:
            world.push_all(folder / "source" / "collections", bucket)
        except ClusterError as error:
            return f"{type(error).__name__}: {error}"
        return "problems: it was not refused"

    return str(answer_of(ask))


@contextmanager
def s3_server() -> Iterator[str]:
    """A bucket of an S3 server in a process of its own."""
    port = free_port()
    program = Path(__file__).resolve().parents[2] / "cluster" / "s3_server.py"
    command = [sys.executable, str(program), "-H", "127.0.0.1", "-p", str(port)]
    with served(command, port):
        yield new_bucket(port)


@contextmanager
def overwriting_server(program: str, folder: Path) -> Iterator[str]:
    """A bucket of rclone's S3 server."""
    port = free_port()
    (folder / "bucket").mkdir(parents=True)
    command = [program, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", "test,test", str(folder)]
    with served(command, port):
        yield "s3://bucket/path"


@contextmanager
def served(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        os.environ.update(
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_REGION="us-east-1",
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}", timeout=5, trust_env=False)
                break
            except httpx.HTTPError:
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} does not answer")
                time.sleep(0.05)
        try:
            yield
        finally:
            server.terminate()


def new_bucket(port: int) -> str:
    name = f"bucket-{secrets.token_hex(6)}"
    httpx.put(f"http://127.0.0.1:{port}/{name}", trust_env=False).raise_for_status()
    return f"s3://{name}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


if __name__ == "__main__":
    main()
