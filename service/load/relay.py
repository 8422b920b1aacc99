"""Work that goes from thread to thread, and comes back to the event loop once, at its end.

A coroutine that awaits nothing but what threads give needs no event loop between its waits. In a relay the
thread that has given something runs the work on, up to its next wait. On the loop each of these steps would
be one more turn of it: it is woken, finds out what for, and wakes the next thread.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import wraps
from typing import Any, Generic, TypeVar

from tercet.service.load.deadlines import NO_DEADLINE, Deadline

Result = TypeVar("Result")


class Awaited(Generic[Result]):
    """What a thread gives or raises: to await on an event loop, or in a relay."""

    __slots__ = ("future", "shared")

    def __init__(self, future: Future[Result], *, shared: bool = False) -> None:
        """shared: others wait for it, too; else it is cancelled with who waits."""
        self.future = future
        self.shared = shared

    def __await__(self) -> Generator[Any, Any, Result]:
        """Raises CancelledError where it will never be there."""
        if not self.future.done() and _relay_at_hand() is None:
            awaited = asyncio.wrap_future(self.future)
            return (yield from (asyncio.shield(awaited) if self.shared else awaited).__await__())
        if not self.future.done():
            yield self
        if self.future.cancelled():
            raise asyncio.CancelledError
        return self.future.result()


async def relay(work: Coroutine[Any, Any, Result], deadline: Deadline = NO_DEADLINE) -> Result:
    """What the work gives or raises, whose every wait is for an `Awaited`. In a relay it is part of that.

    deadline: of what it does `expiring`. Who leaves ends the work at its next wait.
    """
    if _relay_at_hand() is not None:
        return await work
    runner = _Relay(work, asyncio.get_running_loop())
    with expiring(deadline, runner.expire):
        runner.go_on()
        try:
            return await runner.result
        finally:
            runner.leave()


def relayed(
    handler: Callable[..., Coroutine[Any, Any, Result]],
) -> Callable[..., Coroutine[Any, Any, Result]]:
    """A handler whose work is a relay, wherever it is called. It takes its `deadline` by this name."""

    @wraps(handler)
    async def begun(**given: Any) -> Result:
        return await relay(handler(**given), given["deadline"])

    return begun


async def on_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """What the work gives or raises, which needs the event loop: in a relay it is a task there."""
    runner = _relay_at_hand()
    if runner is None:
        return await work
    return await Awaited(asyncio.run_coroutine_threadsafe(work, runner.loop))


@contextmanager
def expiring(deadline: Deadline, expire: Callable[[], object]) -> Iterator[None]:
    """Calls `expire` from the event loop where the deadline passes meanwhile; a relay has its own for all."""
    runner = _relay_at_hand()
    if runner is not None:
        runner.expiry = expire
        try:
            if deadline.passed:  # perhaps before the relay knew whom to tell
                expire()
            yield
        finally:
            runner.expiry = None
        return
    timer = None
    if deadline.remaining_seconds < math.inf:
        timer = asyncio.get_running_loop().call_later(deadline.remaining_seconds, expire)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


class _Relay(Generic[Result]):
    """One coroutine on its way; one thread at a time runs it."""

    def __init__(self, work: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self.loop = loop
        self._context = copy_context()
        self._awaited: Awaited[Any] | None = None
        self._left = False
        self.result: asyncio.Future[Result] = loop.create_future()
        self.expiry: Callable[[], object] | None = None

    def go_on(self, _given: Future[Any] | None = None) -> None:
        """Runs the work up to its next wait, in the thread that ended the last one."""
        while True:
            self._awaited = None  # which knows this relay: in the end nothing is to keep what both hold
            try:
                awaited = self._awaited = self._context.run(self._step)
            except StopIteration as end:
                self._tell(self._succeed, end.value)
                return
            except BaseException as error:  # noqa: BLE001 - whoever awaits the work is to get it
                self._tell(self._fail, error)
                return
            if self._left:  # by now, while nobody could see what is awaited
                self.leave()
            if not awaited.future.done():
                awaited.future.add_done_callback(self.go_on)
                return

    def leave(self) -> None:
        """Nobody waits any more: what has not begun is not begun, and what has is not gone on from."""
        self._left = True
        awaited = self._awaited
        if awaited is not None and not awaited.shared:
            awaited.future.cancel()

    def expire(self) -> None:
        """The deadline has passed."""
        expiry = self.expiry
        if expiry is not None:
            expiry()

    def _step(self) -> Awaited[Any]:
        _at_hand.relay = self
        try:
            awaited: Awaited[Any] = (
                self._work.throw(asyncio.CancelledError()) if self._left else self._work.send(None)
            )
        finally:
            _at_hand.relay = None
        return awaited

    def _tell(self, how: Callable[[Any], None], outcome: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            self.loop.call_soon_threadsafe(how, outcome)

    def _succeed(self, result: Result) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if self.result.done():
            return
        if isinstance(error, asyncio.CancelledError):
            self.result.cancel()
        else:
            self.result.set_exception(error)


class _AtHand(threading.local):
    """The relay whose work this thread runs."""

    relay: _Relay[Any] | None = None


_at_hand = _AtHand()


def _relay_at_hand() -> _Relay[Any] | None:
    return _at_hand.relay
