"""Requests at times that are given, whatever became of earlier ones, each with its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmarks.serving.generator import post
from tests.endurance.serving.exchange import Answer, Connection

GIVE_UP_SECONDS = 30.0
STEADY_SECONDS = 1.0

Asked = TypeVar("Asked")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Asked]):
    """What became of a request. due: when it was to go out, of `time.monotonic`; seconds: from then until its
    answer was whole; answer: None where the connection broke or nothing came; repeats: how often it was sent
    again.
    """

    asked: Asked
    due: float
    seconds: float
    answer: Answer | None
    repeats: int = 0

    @property
    def status(self) -> int:
        """That of the answer; 0 without one."""
        return 0 if self.answer is None else self.answer.status


class Client:
    """Connections to servers, kept while they are good."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], list[Connection]] = {}

    async def post(
        self, address: tuple[str, int], body: bytes, *headers: str, fresh: bool = False
    ) -> Answer | None:
        """The answer of `/search`; None where the connection broke, or could not be had, or nothing came.

        One that was kept and has ended meanwhile is opened anew, as clients do. fresh: over a connection of
        its own.
        """
        idle = self._idle.setdefault(address, [])
        kept = bool(idle) and not fresh
        connection = idle.pop() if kept else Connection(*address, GIVE_UP_SECONDS)
        request = post("/search", body, *headers)
        try:
            answer = await connection.exchange(request, whole=not fresh, has_body=True)
            if answer is None and kept:
                answer = await connection.exchange(request, whole=True, has_body=True)
        except (TimeoutError, OSError):
            await connection.close()
            return None
        if not fresh:
            idle.append(connection)
        return answer

    async def close(self) -> None:
        """Ends all connections."""
        for idle in self._idle.values():
            for connection in idle:
                await connection.close()


async def sent(
    requests: Sequence[Asked], rate: float, ask: Callable[[Asked], Awaitable[tuple[Answer | None, int]]]
) -> list[Outcome[Asked]]:
    """Outcomes of so many requests a second, in order. ask: its answer and how often it was repeated."""
    began = time.monotonic()

    async def one(asked: Asked, due: float) -> Outcome[Asked]:
        answer, repeats = await ask(asked)
        return Outcome(asked, due, time.monotonic() - due, answer, repeats)

    tasks = []
    for number, asked in enumerate(requests):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        tasks.append(asyncio.create_task(one(asked, due)))
    return list(await asyncio.gather(*tasks))


def whole_again_seconds(
    outcomes: Iterable[Outcome[Asked]], ended: float, is_whole: Callable[[Outcome[Asked]], bool]
) -> float:
    """How long after a fault ended a second began in which all answers were whole."""
    again = ended
    for one in outcomes:
        if one.due >= again + STEADY_SECONDS:
            break
        if one.due >= ended and not is_whole(one):
            again = one.due
    return again - ended
