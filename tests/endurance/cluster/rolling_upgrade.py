"""Does any request fail while snapshots and servers are replaced, one after the other, under load?

Two routers before two shards whose servers follow snapshots on an object store, a folder here. First new
snapshots of the shards are published in turns. Then servers are replaced one after the other as Kubernetes
replaces pods: no balancer sends requests any more a moment after the end was ordered, a pause (`preStop`),
SIGTERM, the server's own pause (`drain_seconds`), its end, and another one in its place. Searches of several
kinds come at times that are given, to the routers in turns; one that is 503 or 429, or gets no answer, is
sent once more to the other router, as balancers do. Each answer is compared, to the last digit, with those of
one server that has the documents of the snapshots which are current, or were before the last was published.
One whose scores count the terms of other snapshots, which it says, is counted apart: for a second after each.

Each shard has two servers, so that one reads on while the other is replaced.

Run: python -m tests.endurance.cluster.rolling_upgrade [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tercet.cluster.objects.opening import open_store
from tercet.cluster.router.view import OF_TERMS
from tercet.cluster.snapshots.pushing import push
from tercet.models.representations import Int64
from tests.endurance.cluster.nodes import Node
from tests.endurance.cluster.open_loop import Client, Outcome, sent
from tests.endurance.cluster.questions import (
    KINDS,
    NAME,
    Corpus,
    Question,
    Sent,
    corpus,
    mixed,
    questions,
    rows_of,
)
from tests.endurance.serving.exchange import Answer

SHARDS, ROUTERS = 2, 2
SERVERS = 2  # of each shard
DOCUMENTS, QUERIES = 600, 12
SNAPSHOTS = 4  # of each shard
LEFT_OUT = 7  # each snapshot lacks one in so many documents, and each others
RATE, REQUESTS = 28.0, 5000  # of each half
PUSH_SECONDS = 24.0
UNKNOWN_SECONDS, PAUSE_SECONDS, DRAIN_SECONDS = 1.0, 2.0, 1.0
"""How long balancers send requests on after the end was ordered, `preStop` and `drain_seconds`."""
KINDS_HERE = [kind for kind in KINDS if kind != "after"]  # its cursor is of one snapshot
WHOLE: frozenset[int] = frozenset()

Figures = dict[str, Any]
Versions = tuple[int, ...]  # the number of each shard's snapshot


@dataclass(slots=True)
class World:
    """Servers under way. made: searches, by the snapshots that they are of; open: routers that a balancer
    sends requests to; published: which snapshots are current from when on.
    """

    corpus: Corpus
    stores: Sequence[str]
    writers: Sequence[Path]
    servers: Sequence[Node]
    routers: Sequence[Node]
    made: dict[Versions, list[Question]]
    open: list[Node] = field(default_factory=list)
    published: list[tuple[float, Versions]] = field(default_factory=list)

    def publish(self, shard: int, step: Versions) -> None:
        """A shard's snapshot, after which these are current."""
        version = step[shard]
        collection = self.corpus.write(self.writers[shard], rows(self.corpus, shard, version))
        done = push(collection, open_store(self.stores[shard]), self.writers[shard] / "snapshots")
        assert done.published.number == version
        self.published.append((time.monotonic(), step))

    def newest(self, one: Outcome[Sent]) -> list[Versions]:
        """What an answer may be of: what was current as it was due, what became so since, and what was so
        before, which servers follow in a moment.
        """
        before = [step for moment, step in self.published if moment <= one.due]
        since = [step for moment, step in self.published if one.due < moment <= one.due + one.seconds]
        return [*before[-2:], *since]


def rows(corpus: Corpus, shard: int, version: int) -> Int64:
    """The documents of a shard's snapshot."""
    own = rows_of(corpus, shard)
    there: Int64 = own[own % LEFT_OUT != version]
    return there


def versions_in_turn() -> list[Versions]:
    """The snapshots that are current one after the other: the first of all shards, then a new one of each."""
    steps = [(1,) * SHARDS]
    for version in range(2, SNAPSHOTS + 1):
        for shard in range(SHARDS):
            steps.append((*steps[-1][:shard], version, *steps[-1][shard + 1 :]))
    return steps


async def expected(data: Path, corpus: Corpus, queries: int) -> dict[Versions, list[Question]]:
    """Searches with the answers of one server, by the snapshots that it has the documents of."""
    steps = versions_in_turn()
    for step in steps:
        there = [rows(corpus, shard, version) for shard, version in enumerate(step)]
        corpus.write(data, np.sort(np.concatenate(there)), _name(step))
    one = Node(data)
    one.start()
    await one.ready()
    made = {
        step: await asyncio.to_thread(questions, one.url, 0, queries, _name(step), KINDS_HERE)
        for step in steps
    }
    await one.kill()
    return made


def _name(step: Versions) -> str:
    return "-".join(map(str, (NAME, *step)))


async def loaded(world: World, requests: int, random: Random) -> list[Outcome[Sent]]:
    """Outcomes of so many requests, to the routers in turns."""
    client, turns = Client(), cycle(range(ROUTERS))
    named = [Question(one.kind, {**one.body, "collection": NAME}, {}) for one in world.made[(1,) * SHARDS]]

    async def sent_to(router: Node, asked: Sent) -> Answer | None:
        address = (router.host, router.port)
        return await client.post(address, asked.body, *asked.headers, fresh=asked.fresh)

    async def ask(asked: Sent) -> tuple[Answer | None, int]:
        router = world.open[next(turns) % len(world.open)]
        answer = await sent_to(router, asked)
        if answer is not None and answer.status not in (429, 503):
            return answer, 0
        other = next((each for each in world.open if each is not router), router)
        return await sent_to(other, asked), 1

    wanted = [Sent(each.question, False, None, each.fresh) for each in mixed(named, requests, 0, random)]
    outcomes = await sent(wanted, RATE, ask)
    await client.close()
    return outcomes


def judged(world: World, outcomes: Sequence[Outcome[Sent]]) -> Figures:
    """Counts what became of requests."""
    first = world.made[(1,) * SHARDS]
    places = {json.dumps({**one.body, "collection": NAME}): place for place, one in enumerate(first)}
    failed: Counter[str] = Counter()
    wrong, steps, between = list[str](), Counter[Versions](), 0
    for one in outcomes:
        if one.answer is None or one.status != 200:
            code = "no answer" if one.answer is None else json.loads(one.answer.body)["error"]["code"]
            failed[f"{one.status} {code}"] += 1
            continue
        answer = json.loads(one.answer.body)
        if OF_TERMS in answer["snapshot"]:
            between += 1
            continue
        place = places[json.dumps(one.asked.question.body)]
        of = [step for step in world.newest(one) if not world.made[step][place].differing(answer, WHOLE)]
        steps.update(of[-1:])
        if not of or "partial" in answer:
            wrong.append(f"{one.asked.question.kind}: {one.answer.body[:200]!r}")
    for note in wrong[:5]:
        print("  ", note, file=sys.stderr)
    return {
        "requests": len(outcomes),
        "right": len(outcomes) - sum(failed.values()) - len(wrong) - between,
        "repeated_once": sum(one.repeats for one in outcomes),
        "failed": sum(failed.values()),
        "failures": dict(failed),
        "wrong": len(wrong),
        "terms_of_others": between,
        "states_seen": len(steps),
        "latest_seconds": round(max(one.seconds for one in outcomes), 2),
    }


async def publishing(world: World, seconds: float) -> int:
    """Publishes new snapshots in turns, so many seconds apart; how many."""
    steps = versions_in_turn()
    for before, step in pairwise(steps):
        await asyncio.sleep(seconds)
        shard = next(shard for shard in range(SHARDS) if before[shard] != step[shard])
        await asyncio.to_thread(world.publish, shard, step)
    return len(steps) - 1


async def replaced(world: World, node: Node) -> None:
    """Another server in place of one, as Kubernetes does it."""
    ordered = time.monotonic()
    await asyncio.sleep(UNKNOWN_SECONDS)
    if node in world.open:
        world.open.remove(node)
    await asyncio.sleep(ordered + PAUSE_SECONDS - time.monotonic())
    node.signal(signal.SIGTERM)
    await node.ended()
    node.start()
    await node.ready()
    if node in world.routers:
        world.open.append(node)


async def replacing(world: World, ends: asyncio.Task[Any]) -> int:
    """Replaces routers and servers of shards until the load ends; how many."""
    nodes = [*world.routers, *world.servers]
    count = 0
    for node in cycle(nodes):
        if ends.done():
            return count
        await replaced(world, node)
        count += 1
    return count


async def measured(scratch: Path, *, quick: bool) -> Figures:
    """Figures of both halves."""
    documents, queries, requests = (200, 4, 700) if quick else (DOCUMENTS, QUERIES, REQUESTS)
    abstracts = corpus(documents, SHARDS)

    def folder(name: str) -> Path:
        made = scratch / name
        made.mkdir()
        return made

    made = await expected(folder("one"), abstracts, queries)
    stores = [f"file://{folder(f'store{shard}')}" for shard in range(SHARDS)]
    patient = {"max_wait_seconds": 60, "drain_seconds": DRAIN_SECONDS}
    servers = [
        Node(folder(f"shard{shard}-{number}"), {**patient, "follow": stores[shard], "follow_seconds": 1})
        for shard in range(SHARDS)
        for number in range(SERVERS)
    ]
    urls = [node.url for node in servers]
    named = ",".join("|".join(urls[first : first + SERVERS]) for first in range(0, len(urls), SERVERS))
    routers = [Node(folder(f"router{number}"), {**patient, "shards": named}) for number in range(ROUTERS)]
    writers = [folder(f"writer{shard}") for shard in range(SHARDS)]
    world = World(abstracts, stores, writers, servers, routers, made)
    random = Random(5)
    nodes = [*servers, *routers]
    try:
        for shard in range(SHARDS):
            world.publish(shard, (1,) * SHARDS)
        for node in nodes:
            node.start()
        for node in nodes:
            await node.ready()
        world.open.extend(routers)
        await loaded(world, 100, random)  # so that all is warm
        load = asyncio.create_task(loaded(world, requests, random))
        published = await publishing(world, 4.0 if quick else PUSH_SECONDS)
        snapshots = {"published": published, **judged(world, await load)}
        print(json.dumps(snapshots), flush=True)
        load = asyncio.create_task(loaded(world, requests, random))
        count = await replacing(world, load)
        application = {"servers_replaced": count, **judged(world, await load)}
        print(json.dumps(application), flush=True)
        return {"snapshots": snapshots, "application": application}
    finally:
        for node in nodes:
            await node.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tercet-rolling-") as scratch:
        figures = asyncio.run(measured(Path(scratch), quick=asked.quick))
    missed = [
        f"{half}: {each[name]} {name}"
        for half, each in figures.items()
        for name in ("failed", "wrong")
        if each[name]
    ]
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
