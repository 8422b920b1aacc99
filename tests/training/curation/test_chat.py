"""Requests to a language model's server: what is sent, what is asked again, and what ends a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tercet.training.curation import chat
from tercet.training.curation.chat import Answer, ChatServer, pause_seconds
from tercet.training.errors import LanguageModelError
from tests.chat_server import Reply, chat_server, completion, failure
from tests.ports import held_port


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses, which take no time."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(chat, "sleep", sleep)
    return pauses


async def asked(server: ChatServer, prompt: str) -> Answer:
    async with server:
        return await server.ask(prompt)


def replies(*given: Reply) -> Iterator[Reply]:
    return iter(given)


def test_a_request_is_one_of_chat_completions() -> None:
    with chat_server(lambda _: completion("Why?", 7, 2)) as log:
        server = ChatServer(log.url, "small", "s3cret", {"temperature": 0.5})
        assert asyncio.run(asked(server, "Ask.")) == Answer("Why?", 7, 2)
    assert log.paths == ["/v1/chat/completions"]
    assert log.requests == [
        {"model": "small", "temperature": 0.5, "messages": [{"role": "user", "content": "Ask."}]}
    ]
    assert log.headers[0]["authorization"] == "Bearer s3cret"


def test_without_a_key_none_is_sent() -> None:
    with chat_server(lambda _: completion("Why?")) as log:
        asyncio.run(asked(ChatServer(log.url, "small"), "Ask."))
    assert "authorization" not in log.headers[0]


def test_a_busy_server_is_asked_again_when_it_says(slept: list[float]) -> None:
    given = replies(
        failure(429, "slow down", Retry_After="7"),
        failure(503, "loading"),
        failure(500, "oops", Retry_After="0.5"),
        completion("Why?"),
    )
    with chat_server(lambda _: next(given)) as log:
        assert asyncio.run(asked(ChatServer(log.url, "small"), "Ask.")).text == "Why?"
    assert len(log.requests) == 4
    assert slept == [7, 2, 0.5]


def test_a_server_that_stays_busy_ends_the_run(slept: list[float]) -> None:
    with (
        chat_server(lambda _: failure(503, "loading")) as log,
        pytest.raises(LanguageModelError, match=r'answers 503: "loading", 8 times; .* goes on'),
    ):
        asyncio.run(asked(ChatServer(log.url, "small"), "Ask."))
    assert len(log.requests) == chat.ATTEMPTS
    assert slept == [1, 2, 4, 8, 16, 32, 60]


def test_a_server_that_is_not_there_ends_the_run(slept: list[float]) -> None:
    with held_port() as port, pytest.raises(LanguageModelError, match="does not answer"):
        asyncio.run(asked(ChatServer(f"http://127.0.0.1:{port}/v1", "small"), "Ask."))
    assert len(slept) == chat.ATTEMPTS - 1


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_what_no_other_attempt_mends_ends_the_run_at_once(status: int) -> None:
    with (
        chat_server(lambda _: failure(status, "no such model")) as log,
        pytest.raises(LanguageModelError, match=f'answers {status}: "no such model"'),
    ):
        asyncio.run(asked(ChatServer(log.url, "small"), "Ask."))
    assert len(log.requests) == 1


def test_a_prompt_that_is_refused_is_an_answer() -> None:
    with chat_server(lambda _: failure(400, "too many tokens")) as log:
        answer = asyncio.run(asked(ChatServer(log.url, "small"), "Ask."))
    assert answer == Answer(None, refusal='answers 400: "too many tokens"')


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": null}}]}']
)
def test_what_is_no_completion_has_no_text(body: bytes) -> None:
    with chat_server(lambda _: (200, {}, body)) as log:
        assert asyncio.run(asked(ChatServer(log.url, "small"), "Ask.")) == Answer(None)


def test_pauses() -> None:
    assert [pause_seconds(attempt, None) for attempt in (0, 1, 10)] == [1, 2, 60]
    assert pause_seconds(0, "3") == 3
    assert pause_seconds(0, "soon") == pause_seconds(0, "nan") == 1
    assert pause_seconds(0, "1e9") == chat.LONGEST_NAMED_SECONDS
    assert pause_seconds(0, "-5") == 0
    assert (
        20 < pause_seconds(0, format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)) <= 30
    )
