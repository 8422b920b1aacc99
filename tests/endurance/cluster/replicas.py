"""What do a second server of each shard, and asking it where the first takes long, do for slow searches?

Two shards of the abstracts of Cranfield, with two servers each that follow what was published, and three
routers: before the first servers alone, before both without a second request, and before both. Searches come
at random times, whatever is waited for (an open loop), go to the three in turns, and are timed from when they
were to begin. Queries are encoded once before. Three cases: all servers are sound; the first server of each
shard gives one answer in twenty 100 ms late; and the first server of the first shard is stopped (SIGSTOP).

Run: python -m tests.endurance.cluster.replicas [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.recording import ROOT
from benchmarks.serving.cranfield import texts_of
from benchmarks.serving.server import Server, serving
from tercet.cluster.objects.opening import open_store
from tercet.cluster.shards.placement import Placement
from tercet.cluster.snapshots.pushing import push
from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.ingest.target import open_or_create
from tercet.models.checkpoint import ENGLISH
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations

SHARDS = 2
NAME = "cranfield"
TEXTS, QUICK_TEXTS = 1_398, 200
RATE = 9.0  # searches a second, over the three routers
SECONDS, QUICK_SECONDS = {"sound": 25, "slow": 45, "stopped": 20}, 4
TIMEOUT_SECONDS = 5
CACHE_BYTES = 64 << 20
MOST_LOAD = 0.05
ROUTERS = ("one server", "two", "two, hedged")

# A server some of whose answers come late, while a file says so.
SLOW = """
import random, sys, time
from pathlib import Path
from tercet.service.shard.serving import ShardServing
from tercet.cli.main import main

def late(answer):
    def answered(*given, **options):
        if Path("slow").exists() and random.random() < 0.05:
            time.sleep(0.1)
        return answer(*given, **options)
    return answered

ShardServing.candidates, ShardServing.hits = late(ShardServing.candidates), late(ShardServing.hits)
sys.argv = ["tercet", "serve"]
main()
"""
# A router that never asks a second server because the first takes long.
PLAIN = """
import sys
from tercet.cluster.shards import budget
from tercet.cli.main import main

budget.SHARE = 0.0
sys.argv = ["tercet", "serve"]
main()
"""

Figures = dict[str, Any]


def published(scratch: Path, texts: Sequence[str]) -> list[str]:
    """The URLs of the shards' snapshots."""
    encoder = load_encoder(str(ROOT / "checkpoints" / ENGLISH))
    parts = [encode(encoder, texts[start : start + 256]) for start in range(0, len(texts), 256)]
    encoded = Representations.concatenate(parts)
    ids = [str(row) for row in range(len(texts))]
    places = Placement.evenly(SHARDS).shards_of(ids)
    urls = []
    for shard in range(SHARDS):
        rows, root = np.flatnonzero(places == shard), scratch / f"built{shard}" / "collections"
        collection, _ = open_or_create(root, NAME, encoder.info, {})
        with collection.writer() as writer:
            writer.add([Document(ids[row], texts[row]) for row in rows.tolist()], encoded.take(rows))
            writer.publish()
        urls.append(f"file://{scratch}/store{shard}")
        push(Collection.open(root, NAME), open_store(urls[-1]), root.parent / "snapshots")
    return urls


async def timed(client: httpx.AsyncClient, url: str, query: str, begins: float) -> float | None:
    """Milliseconds from when a search was to begin to its answer; None without one."""
    await asyncio.sleep(max(0.0, begins - time.perf_counter()))
    try:
        answer = await client.post(f"{url}/search", json={"collection": NAME, "query": query})
    except httpx.HTTPError:
        return None
    return 1000 * (time.perf_counter() - begins) if answer.is_success else None


async def asked(
    routers: Sequence[Server], queries: Sequence[str], seconds: float
) -> list[list[float | None]]:
    """The times of searches that come over so many seconds, by router."""
    random = np.random.default_rng(7)
    pauses = random.exponential(1 / RATE, round(RATE * seconds))
    moments = (time.perf_counter() + 0.1 + np.cumsum(pauses)).tolist()
    headers = {"X-Request-Timeout": str(TIMEOUT_SECONDS)}
    async with httpx.AsyncClient(timeout=60, headers=headers, limits=httpx.Limits()) as client:
        work = [
            timed(client, routers[number % len(routers)].url, queries[number % len(queries)], begins)
            for number, begins in enumerate(moments)
        ]
        found = await asyncio.gather(*work)
    return [found[router :: len(routers)] for router in range(len(routers))]


def counted(router: Server) -> Counter[str]:
    """What a router has counted so far."""
    text = httpx.get(f"{router.url}/metrics").text
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "tercet_shard_seconds_count":
                found["answers"] += int(sample.value)
            elif sample.name == "tercet_shard_hedges_total":
                found[sample.labels["result"]] += int(sample.value)
            elif sample.name == "tercet_shard_failovers_total":
                found["failovers"] += int(sample.value)
    return found


def figures_of(times: Iterable[float | None], before: Counter[str], after: Counter[str]) -> Figures:
    """Percentiles in milliseconds, where a search that failed took all its time, and what was asked of
    shards.
    """
    found = list(times)
    lasted = np.array([1000.0 * TIMEOUT_SECONDS if each is None else each for each in found])
    told = {name: after[name] - before[name] for name in ("answers", "asked", "won", "failovers")}
    return {
        "searches": len(found),
        "failed": sum(each is None for each in found),
        **{f"p{share:g}_ms": round(float(np.percentile(lasted, share)), 1) for share in (50, 95, 99)},
        "answers_of_shards": told["answers"],
        "second_asked": told["asked"],
        "second_won": told["won"],
        "failovers": told["failovers"],
        # Of all since the router began, since what one case saves up another one may spend.
        "more_load": round(after["asked"] / max(1, after["answers"]), 4),
    }


def measured(*, quick: bool) -> Figures:
    """Figures by case and router."""
    queries = texts_of("queries")[: 40 if quick else None]
    with tempfile.TemporaryDirectory(prefix="tercet-replicas-") as temporary, ExitStack() as stack:
        scratch = Path(temporary)
        urls = published(scratch, texts_of("corpus")[: QUICK_TEXTS if quick else TEXTS])

        def served(name: str, **settings: Any) -> Server:
            (scratch / name).mkdir()
            return stack.enter_context(
                serving(scratch / name, query_cache_bytes=CACHE_BYTES, max_wait_seconds=60, **settings)
            )

        pool = stack.enter_context(ThreadPoolExecutor(2 * SHARDS))
        names = [f"{name}{shard}" for name in ("first", "second") for shard in range(SHARDS)]
        programs = [["-c", SLOW]] * SHARDS + [None] * SHARDS
        servers = list(
            pool.map(
                lambda name, url, program: served(name, follow=url, program=program),
                names,
                urls * 2,
                programs,
            )
        )
        first, second = servers[:SHARDS], servers[SHARDS:]
        alone = ",".join(server.url for server in first)
        both = ",".join(f"{one.url}|{two.url}" for one, two in zip(first, second, strict=True))
        routers = list(
            pool.map(
                lambda name, shards, program: served(name, shards=shards, program=program),
                ("alone", "plain", "hedged"),
                (alone, both, both),
                (None, ["-c", PLAIN], None),
            )
        )
        for router in routers:  # so that queries and times are known
            with httpx.Client(timeout=60) as client:
                for query in queries:
                    client.post(f"{router.url}/search", json={"collection": NAME, "query": query})
        found: Figures = {}
        for case, seconds in SECONDS.items():
            if case == "slow":
                for shard in range(SHARDS):
                    (scratch / f"first{shard}" / "slow").touch()
            if case == "stopped":
                for shard in range(SHARDS):
                    (scratch / f"first{shard}" / "slow").unlink()
                first[0].process.send_signal(signal.SIGSTOP)
            before = list(map(counted, routers))
            times = asyncio.run(asked(routers, queries, QUICK_SECONDS if quick else seconds))
            after = list(map(counted, routers))
            found[case] = {
                name: figures_of(times[place], before[place], after[place])
                for place, name in enumerate(ROUTERS)
            }
        first[0].process.send_signal(signal.SIGCONT)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few searches")
    given = parser.parse_args()
    figures = measured(quick=given.quick)
    print(json.dumps(figures, indent=2))
    missed = [
        f"{case}: {each['more_load']} of the requests were asked twice, the bar is {MOST_LOAD}"
        for case, routers in figures.items()
        if (each := routers[ROUTERS[2]])["more_load"] > MOST_LOAD
    ]
    missed += [
        f"stopped: {figures['stopped'][name]['failed']} searches of {name!r} failed"
        for name in ROUTERS[1:]
        if figures["stopped"][name]["failed"]
    ]
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
