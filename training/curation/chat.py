"""A language model behind a server that answers as OpenAI's chat completions do."""

from __future__ import annotations

import math
from asyncio import sleep
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

import httpx

from tercet.index.wording import reason_of, shown
from tercet.training.errors import LanguageModelError

ATTEMPTS = 8
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
LONGEST_NAMED_SECONDS = 600.0  # of a pause that the server names
TIMEOUT_SECONDS = 120.0
TOO_MANY = 429
# Statuses that may be about this one text: it is too long, or is filtered.
OF_THE_TEXT = (400, 413, 422)
WORDS = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """text: None where there is none; refusal: the server's words where it does not take this prompt."""

    text: str | None
    prompt_tokens: int = 0
    answer_tokens: int = 0
    refusal: str = ""


class ChatServer:
    """Use as an asynchronous context manager, from one event loop."""

    def __init__(
        self, url: str, model: str, key: str | None = None, parameters: Mapping[str, Any] | None = None
    ) -> None:
        """url: what comes before `/chat/completions`; parameters: more keys of each request's body."""
        self._url = url
        self._body = {"model": model, **(parameters or {})}
        # Without the environment: its proxy would be sent the key, in the clear where the URL is http.
        self._client = httpx.AsyncClient(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def ask(self, prompt: str) -> Answer:
        """The answer to a prompt. A busy or failing server is asked again, after the pause that it names.

        Raises LanguageModelError where it takes no request, or still fails after ATTEMPTS.
        """
        body = {**self._body, "messages": [{"role": "user", "content": prompt}]}
        failure, named = "", None
        for attempt in range(ATTEMPTS):
            if attempt:
                await sleep(pause_seconds(attempt - 1, named))
            try:
                response = await self._client.post(f"{self._url}/chat/completions", json=body)
            except httpx.InvalidURL as error:
                raise LanguageModelError(f"{self._url} is no URL: {error}") from error
            except httpx.RequestError as error:
                failure, named = f"does not answer ({reason_of(error)})", None
                continue
            if response.is_success:
                return read_answer(response)
            status, failure = response.status_code, f"answers {response.status_code}: {words_of(response)}"
            if status in OF_THE_TEXT:
                return Answer(None, refusal=failure)
            if status != TOO_MANY and status < httpx.codes.INTERNAL_SERVER_ERROR:
                raise LanguageModelError(f"{self._url} {failure}")
            named = response.headers.get("Retry-After")
        raise LanguageModelError(
            f"{self._url} {failure}, {ATTEMPTS} times; what was answered before is kept, and the same "
            "command goes on"
        )


def read_answer(response: httpx.Response) -> Answer:
    """The text and the tokens of an answer; no text where it is not laid out as such an answer is."""
    try:
        value = response.json()
        text = value["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        return Answer(None)
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, answer = (count if type(count) is int and count >= 0 else 0 for count in counts)
    return Answer(text if isinstance(text, str) else None, prompt, answer)


def words_of(response: httpx.Response) -> str:
    """What a server says of a failure."""
    try:
        error = response.json()["error"]
        words = error["message"] if isinstance(error, dict) else error
    except (ValueError, LookupError, TypeError):
        words = response.text
    return shown(words, WORDS)


def pause_seconds(attempt: int, named: str | None) -> float:
    """How long to wait before another attempt: as long as the server says, or longer each time.

    named: the header Retry-After, seconds or a date.
    """
    seconds = named_seconds(named or "")
    if not math.isfinite(seconds):
        return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**attempt)
    return min(max(seconds, 0.0), LONGEST_NAMED_SECONDS)


def named_seconds(named: str) -> float:
    """The seconds that a number or a date stands for, nan for anything else."""
    try:
        return float(named)
    except ValueError:
        try:
            return (parsedate_to_datetime(named) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return math.nan
