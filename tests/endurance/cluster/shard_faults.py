"""Is any answer wrong or late while a shard is killed, stopped, slow, or answers garbage, under load?

A router before three shards, each in a process of its own: one is killed and stopped, one lies behind a relay
that spoils its answers, and one in a network namespace whose packets are dropped. Searches of nine kinds come
at times that are given, whatever became of earlier ones; half of them allow partial answers, half have a
deadline of their own, a fifth comes over new connections. Each answer is compared, to the last digit, with
that of one server that has all documents; a partial one with that server's answer among the documents of the
other shards, by a filter, so that idf and words are weighed by all.

Run: python -m tests.endurance.cluster.shard_faults [--quick] [--only WORD]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.endurance.cluster.network import Link, NoNamespaceError, namespace
from tests.endurance.cluster.nodes import Node
from tests.endurance.cluster.open_loop import Client, Outcome, sent, whole_again_seconds
from tests.endurance.cluster.questions import Question, Sent, corpus, mixed, questions, rows_of
from tests.endurance.cluster.relay import Fault, Relay

SHARDS = 3
KILLED, SPOILED, CUT_OFF = range(SHARDS)  # what happens to each
DOCUMENTS, QUERIES = 750, 24
RATE = 28.0
OWN_SECONDS, SERVER_SECONDS = 1.5, 4.0  # deadlines: of the request, or of the server's setting
ALLOWANCE_SECONDS = 0.25  # beyond a deadline, for a busy machine
CALM_SECONDS = 4.0  # before each fault

Figures = dict[str, Any]


@dataclass(slots=True)
class World:
    """The servers, and what stands before them. link: None where there are no namespaces."""

    router: Node
    shards: Sequence[Node]
    names: Sequence[str]
    relay: Relay
    link: Link | None


@dataclass(frozen=True, slots=True)
class Phase:
    """A fault of one shard: how it begins and ends, and how many seconds it and the time after it take."""

    name: str
    begin: Callable[[World], Awaitable[None]]
    end: Callable[[World], Awaitable[None]]
    fault_seconds: float
    after_seconds: float


@dataclass(slots=True)
class Judged:
    """What became of a phase's requests."""

    whole: int = 0
    partial: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    late_seconds: list[float] = field(default_factory=list)
    whole_seconds: list[float] = field(default_factory=list)
    is_whole: list[bool] = field(default_factory=list)


async def nothing(_world: World) -> None:
    """No fault."""


async def kill(world: World) -> None:
    await world.shards[KILLED].kill()


async def start(world: World) -> None:
    world.shards[KILLED].start()
    await world.shards[KILLED].ready()


async def stop(world: World) -> None:
    world.shards[KILLED].signal(signal.SIGSTOP)


async def go_on(world: World) -> None:
    world.shards[KILLED].signal(signal.SIGCONT)


def spoil(fault: Fault, delay_seconds: float = 0.0) -> Callable[[World], Awaitable[None]]:
    """Has the relay do so."""

    async def begin(world: World) -> None:
        world.relay.fault, world.relay.delay_seconds = fault, delay_seconds

    return begin


async def drop(world: World) -> None:
    if world.link is not None:
        world.link.drop()


async def mend(world: World) -> None:
    if world.link is not None:
        world.link.mend()


def lossy(seconds: float) -> Callable[[World], Awaitable[None]]:
    """Drops all packets for a tenth of a second, again and again, for so long."""

    async def begin(world: World) -> None:
        async def run() -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await drop(world)
                await asyncio.sleep(0.1)
                await mend(world)
                await asyncio.sleep(0.3)

        _TASKS.append(asyncio.create_task(run()))

    return begin


async def lossy_end(_world: World) -> None:
    await asyncio.gather(*_TASKS)
    _TASKS.clear()


_TASKS: list[asyncio.Task[None]] = []


def phases(link: Link | None) -> list[Phase]:
    """All of them; without a link those of networks are left out."""
    made = [
        Phase("none", nothing, nothing, 26, 0),
        Phase("killed, started again", kill, start, 8, 12),
        Phase("stopped (SIGSTOP)", stop, go_on, 12, 12),
        Phase("0.3 s slower", spoil("slow", 0.3), spoil("none"), 12, 6),
        Phase("30 s slower", spoil("slow", 30), spoil("none"), 12, 12),
        Phase("ends connections", spoil("closed"), spoil("none"), 8, 10),
        Phase("ends answers in the middle", spoil("cut"), spoil("none"), 10, 10),
        Phase("answers random bytes", spoil("garbage"), spoil("none"), 10, 10),
        Phase("tells a length too small", spoil("short"), spoil("none"), 10, 10),
        Phase("tells a length too large", spoil("long"), spoil("none"), 12, 12),
        Phase("one bit of each answer flipped", spoil("flipped"), spoil("none"), 30, 10),
    ]
    if link is not None:
        made += [
            Phase("network: all packets dropped", drop, mend, 12, 15),
            Phase("network: a quarter of the time", lossy(14), lossy_end, 14, 12),
        ]
    return made


def judged(outcomes: Sequence[Outcome[Sent]], names: Sequence[str]) -> Judged:
    """Compares each answer with what is expected. names: of the shards."""
    found = Judged()
    for one in outcomes:
        whole = _judge(one, names, found)
        found.is_whole.append(whole)
        if whole:
            found.whole_seconds.append(one.seconds)
        excess = one.seconds - (one.asked.seconds or SERVER_SECONDS)
        if excess > ALLOWANCE_SECONDS:
            found.late_seconds.append(excess)
    return found


def _judge(one: Outcome[Sent], names: Sequence[str], found: Judged) -> bool:
    """Notes what an answer is; whether it is whole and right."""
    if one.answer is None:
        found.errors["no answer"] += 1
        return False
    try:
        answer = json.loads(one.answer.body)
    except ValueError:
        found.wrong.append(f"{one.status} without JSON")
        return False
    if one.status != 200:
        error = answer["error"]
        found.errors[f"{one.status} {error['code']}"] += 1
        if one.status != 429 and not any(name in error["message"] for name in names):
            found.unnamed.append(f"{one.status} {error['code']}: {error['message']}")
        return False
    lost = frozenset(map(names.index, answer.get("partial", {"shards": []})["shards"]))
    if lost and not one.asked.allows_partial:
        found.wrong.append(f"partial and not allowed: {answer['partial']}")
        return False
    if differing := one.asked.question.differing(answer, lost):
        found.wrong.append(f"{one.asked.question.kind}, lost {sorted(lost)}: {', '.join(differing)}")
        return False
    found.partial += bool(lost)
    found.whole += not lost
    return not lost


async def run_phase(world: World, phase: Phase, made: Sequence[Question], random: Random) -> Figures:
    """Figures of one phase."""
    client, address = Client(), (world.router.host, world.router.port)

    async def ask(asked: Sent) -> tuple[Any, int]:
        return await client.post(address, asked.body, *asked.headers, fresh=asked.fresh), 0

    seconds = CALM_SECONDS + phase.fault_seconds + phase.after_seconds
    wanted = mixed(made, round(RATE * seconds), OWN_SECONDS, random)
    load = asyncio.create_task(sent(wanted, RATE, ask))
    await asyncio.sleep(CALM_SECONDS)
    await phase.begin(world)
    await asyncio.sleep(phase.fault_seconds)
    ending = time.monotonic()
    await phase.end(world)
    ended = time.monotonic()
    outcomes = await load
    await client.close()
    found = judged(outcomes, world.names)
    whole = dict(zip(map(id, outcomes), found.is_whole, strict=True))
    again = whole_again_seconds(outcomes, ended, lambda one: whole[id(one)] or one.status == 429)
    figures = {
        "fault": phase.name,
        "requests": len(outcomes),
        "right": found.whole,
        "right_partial": found.partial,
        "errors": dict(sorted(found.errors.items())),
        "wrong": len(found.wrong),
        "unnamed": len(found.unnamed),
        "late": len(found.late_seconds),
        "latest_seconds": round(max(found.late_seconds, default=0.0), 2),
        "median_ms": round(1000 * statistics.median(found.whole_seconds or [0.0]), 1),
        "started_again_seconds": round(ended - ending, 1),
        "whole_again_seconds": round(again, 1),
    }
    for note in (*found.wrong[:5], *found.unnamed[:5]):
        print("  ", note, file=sys.stderr)
    return figures


async def measured(scratch: Path, link: Link | None, only: str, *, quick: bool) -> list[Figures]:
    """Figures of all faults whose name has a word."""
    documents, queries = (300, 6) if quick else (DOCUMENTS, QUERIES)
    abstracts = corpus(documents, SHARDS)
    folders = [scratch / name for name in ("one", "router", *(f"shard{shard}" for shard in range(SHARDS)))]
    for folder in folders:
        folder.mkdir()
    abstracts.write(folders[0], np.arange(documents))
    for shard in range(SHARDS):
        abstracts.write(folders[2 + shard], rows_of(abstracts, shard))
    one = Node(folders[0])
    one.start()
    await one.ready()
    made = await asyncio.to_thread(questions, one.url, SHARDS, queries)
    await one.kill()
    patient = {"max_wait_seconds": 60}  # else they refuse much on a busy machine, which is no fault here
    shards = [Node(folder, patient) for folder in folders[2:]]
    if link is not None:
        shards[CUT_OFF].host, shards[CUT_OFF].prefix = link.host, link.prefix
    relay = Relay(shards[SPOILED].port)
    await relay.open()
    names = [relay.url if shard == SPOILED else node.url for shard, node in enumerate(shards)]
    router = Node(
        folders[1], {**patient, "shards": ",".join(names), "request_timeout_seconds": SERVER_SECONDS}
    )
    nodes = [*shards, router]
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            await node.ready()
        world = World(router, shards, names, relay, link)
        random, figures = Random(11), list[Figures]()
        await run_phase(world, Phase("warm up", nothing, nothing, 4, 0), made, random)
        for phase in phases(link):
            if only not in phase.name:
                continue
            figures.append(await run_phase(world, phase, made, random))
            print(json.dumps(figures[-1]), flush=True)
        return figures
    finally:
        relay.close()
        for node in nodes:
            node.signal(signal.SIGCONT)
            await node.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer documents")
    parser.add_argument("--only", metavar="WORD", help="faults of this name")
    asked = parser.parse_args()
    no_network = None
    with tempfile.TemporaryDirectory(prefix="tercet-faults-") as scratch, ExitStack() as stack:
        try:
            link = stack.enter_context(namespace())
        except NoNamespaceError as error:
            link, no_network = None, str(error)
        figures = asyncio.run(measured(Path(scratch), link, asked.only or "", quick=asked.quick))
    record = {
        "shards": SHARDS,
        "requests_a_second": RATE,
        "deadlines_seconds": [OWN_SECONDS, SERVER_SECONDS],
        "allowance_seconds": ALLOWANCE_SECONDS,
        "without_network": no_network,
        "requests": sum(each["requests"] for each in figures),
        "wrong": sum(each["wrong"] for each in figures),
        "phases": figures,
    }
    print(json.dumps({name: value for name, value in record.items() if name != "phases"}))
    missed = [
        f"{each['fault']}: {each[name]} {name}"
        for each in figures
        for name in ("wrong", "unnamed")
        if each[name]
    ]
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
