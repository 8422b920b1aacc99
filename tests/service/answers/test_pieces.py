"""Answers sent as they are made, in the ASGI protocol."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tercet.service.answers import pieces
from tercet.service.answers.pieces import response_of
from tercet.service.exceptions import BrokenAnswerError, OverloadedError


async def some(count: int, error: Exception | None = None) -> AsyncGenerator[bytes]:
    for number in range(count):
        yield b"%02d" % number
    if error is not None:
        raise error


async def sent(answer: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await answer({"type": "http"}, None, send)
    return messages


async def test_what_fits_a_chunk_has_its_length() -> None:
    answer = await response_of(some(3))
    assert answer.headers["content-length"] == "6"
    assert answer.body == b"000102"


async def test_what_does_not_is_sent_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "CHUNK_BYTES", 4)
    start, *parts = await sent(await response_of(some(5), "application/x-test"))
    assert [header for header in start["headers"] if header[0] == b"content-length"] == []
    assert (b"content-type", b"application/x-test") in start["headers"]
    assert [part["body"] for part in parts] == [b"0001", b"0203", b"04", b""]
    assert [part.get("more_body", False) for part in parts] == [True, True, True, False]


async def test_others_have_their_turn_between_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "CHUNK_BYTES", 1)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await sent(await response_of(some(50)))
    task.cancel()
    assert turns >= 50


async def test_an_early_error_is_raised_and_a_late_one_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    full = OverloadedError("full", 1, "worker")
    with pytest.raises(OverloadedError):
        await response_of(some(3, full))
    monkeypatch.setattr(pieces, "CHUNK_BYTES", 4)
    with pytest.raises(BrokenAnswerError, match="full"):
        await sent(await response_of(some(9, full)))
    with pytest.raises(ZeroDivisionError):
        await sent(await response_of(some(9, ZeroDivisionError())))
