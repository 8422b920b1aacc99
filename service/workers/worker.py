"""One encoder worker seen over HTTP: what is sent to it, and what its answers mean."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from models.checkpoint import EncodingSettings
from models.encoder import AdapterDescription, EncoderInfo
from models.errors import (
    AdapterNotFoundError,
    AdapterUnusableError,
    EncoderFailedError,
    EncoderMemoryError,
    EncoderUnavailableError,
    ModelError,
    TextTooLongError,
)
from models.representations import InputType, Output, Representations
from models.tokenizer import Tokenizer, valid_text
from service.answers.binary import MEDIA_TYPE, from_bytes
from service.exceptions import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    RequestTooLargeError,
    WorkerSilentError,
)
from service.load.admission import too_late
from service.load.deadlines import NO_DEADLINE, Deadline
from service.settings import WorkerAccess
from service.tracing.request import call
from service.workers.health import WorkerHealth, WorkerState

# What ends a connection before its answer came, such as one that the worker closed while it was kept alive.
BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError)


@dataclass(frozen=True, slots=True)
class WorkerDescription:
    """What a worker says that it is."""

    info: EncoderInfo
    settings: EncodingSettings
    adapters: list[AdapterDescription]


class RemoteWorker:
    """A worker: its health, its requests under way, and how it is asked."""

    def __init__(self, url: str, client: httpx.AsyncClient, access: WorkerAccess) -> None:
        """client: sends the key, and has no timeouts of its own."""
        self.url = url
        self.health = WorkerHealth(url, self._probe, access.probe_seconds, self._give_up)
        self._client = client
        self._access = access
        self._waits: set[asyncio.Timeout] = set()
        self._fingerprint: str | None = None

    @property
    def in_flight(self) -> int:
        """Requests that wait for its answer."""
        return len(self._waits)

    def require(self, fingerprint: str) -> None:
        """From now on it is up only while it encodes with this fingerprint."""
        self._fingerprint = fingerprint

    async def describe(self) -> WorkerDescription:
        """Its `/info`. Raises EncoderUnavailableError."""
        answer = await self._ask("/info", self._access.probe_timeout_seconds)
        try:
            values = answer.json()
            return WorkerDescription(
                EncoderInfo(**values["encoder"]),
                EncodingSettings.from_json(values["encoding_settings"]),
                [AdapterDescription(**each) for each in values.get("adapters", ())],
            )
        except (ValueError, KeyError, TypeError, AttributeError, ModelError) as error:
            raise EncoderUnavailableError(
                f"its /info is not that of a tercet encoder ({type(error).__name__}: {error})"
            ) from None

    async def tokenizer(self, settings: EncodingSettings) -> Tokenizer:
        """Its tokenizer. Raises EncoderUnavailableError."""
        content = (await self._ask("/tokenizer", self._access.timeout_seconds)).content
        try:
            return Tokenizer.from_bytes(content, settings)
        except ModelError as error:
            raise EncoderUnavailableError(f"its tokenizer cannot be used: {error}") from None

    async def encode(
        self,
        texts: Sequence[str],
        input_type: InputType,
        outputs: Sequence[Output],
        max_length: int | None,
        truncate: bool,
        info: EncoderInfo,
        deadline: Deadline = NO_DEADLINE,
    ) -> Representations:
        """Representations of the texts; refuses an answer made with another encoder or adapter.

        info: the encoder, with its adapter, that the texts are for; deadline: for it to begin.
        """
        body = {
            "inputs": [valid_text(text) for text in texts],  # JSON's bytes cannot hold lone surrogates
            "input_type": input_type,
            "outputs": list(outputs),
            "max_length": max_length,
            "truncate": truncate,
            **({} if info.adapter is None else {"adapter": info.adapter}),
        }
        headers = {"Accept": MEDIA_TYPE}
        if deadline != NO_DEADLINE:
            if deadline.passed:
                raise too_late(0)
            headers["X-Request-Timeout"] = f"{deadline.remaining_seconds:.3f}"
        limit = asyncio.timeout(self._access.timeout_seconds)
        self._waits.add(limit)
        try:
            with call("POST /embed", f"{self.url}/embed") as trace_headers:
                headers |= trace_headers
                response = await self._send("POST", "/embed", limit, json=body, headers=headers)
        except WorkerSilentError as error:
            self.health.suspect(str(error))
            raise
        finally:
            self._waits.discard(limit)
        self.health.heard()
        if response.status_code != httpx.codes.OK:
            raise self._refusal(response)
        try:
            representations, metadata = from_bytes(response.content)
        except ValueError as error:
            raise EncoderFailedError(f"{self.url}: {error}") from None
        self._check_fingerprint(metadata.get("fingerprint"), info)
        if len(representations) != len(texts):
            raise EncoderFailedError(f"{self.url}: it answered {len(representations)} of {len(texts)} texts")
        return representations

    async def _probe(self, state: WorkerState) -> None:
        """Raises EncoderUnavailableError where it could encode nothing for us now."""
        await self._ask("/ready", self._access.probe_timeout_seconds)
        if state is not WorkerState.UP:  # another checkpoint may have come back under its address
            found = (await self.describe()).info.fingerprint
            if found != self._fingerprint:
                raise EncoderUnavailableError(_other_encoder(found, self._fingerprint))

    def _give_up(self) -> None:
        """Ends the wait of all requests: each can still be answered by another worker."""
        for limit in self._waits:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())

    async def _ask(self, path: str, timeout_seconds: float) -> httpx.Response:
        """Its answer with status 200. Raises EncoderUnavailableError."""
        response = await self._send("GET", path, asyncio.timeout(timeout_seconds))
        if response.status_code == httpx.codes.OK:
            return response
        message = _error_of(response).get("message") or "no message"
        if response.status_code == httpx.codes.UNAUTHORIZED:
            message = f"it refused the key (setting encoder_key): {message}"
        raise EncoderUnavailableError(f"{path}: status {response.status_code}: {message}")

    async def _send(self, method: str, path: str, limit: asyncio.Timeout, **options: Any) -> httpx.Response:
        """Its answer, whatever it says; where a connection breaks, it is asked once more.

        Raises WorkerSilentError.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with limit:
                try:
                    return await self._client.request(method, self.url + path, **options)
                except BROKEN:  # no request changes anything, so each may be sent twice
                    return await self._client.request(method, self.url + path, **options)
        except TimeoutError:
            seconds = loop.time() - started
            raise WorkerSilentError(f"{path} was not answered within {seconds:.1f} s", hung=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise WorkerSilentError(f"{path}: {type(error).__name__}: {error}", hung=False) from None

    def _check_fingerprint(self, found: str | None, info: EncoderInfo) -> None:
        """Raises where an answer was made with another encoder or adapter."""
        if found == info.fingerprint:
            return
        if info.adapter is not None:  # of no concern to texts without it
            raise AdapterUnusableError(
                f"encoder worker {self.url} has another adapter {info.adapter!r}, with fingerprint {found} "
                f"instead of {info.fingerprint}; give all workers one folder of adapters and start them again"
            )
        fault = _other_encoder(found, info.fingerprint)
        self.health.suspect(fault)
        raise EncoderUnavailableError(fault)

    def _refusal(self, response: httpx.Response) -> Exception:
        """The exception that an error answer stands for."""
        error = _error_of(response)
        message, code = str(error.get("message") or "no message"), error.get("code")
        match response.status_code:
            case 429 if code == "deadline_exceeded":
                return DeadlineExceededError(message, _retry_after_seconds(response))
            case 429:
                return OverloadedError(message, _retry_after_seconds(response), "worker")
            case 413:
                return RequestTooLargeError(message, error.get("param"))
            case 404 if code == "adapter_not_found":
                return AdapterNotFoundError(message)
            case 503 if code == "adapter_unusable":
                return AdapterUnusableError(f"encoder worker {self.url}: {message}")
            case 503 if code == "out_of_memory":
                return EncoderMemoryError(message)
            case 422 if code == "text_too_long":
                return TextTooLongError(message)
            case 422:
                return InvalidRequestError(message, error.get("param"), str(code))
        fault = f"/embed: status {response.status_code}: {message}"
        if code in ("key_required", "not_ready"):  # of concern to all requests: its probe will find it too
            self.health.suspect(fault)
            return EncoderUnavailableError(fault)
        return EncoderFailedError(f"{self.url}{fault}")


def _other_encoder(found: str | None, wanted: str | None) -> str:
    return (
        f"it encodes with fingerprint {found}, the other workers with {wanted}; "
        "start all workers with one checkpoint"
    )


def _error_of(response: httpx.Response) -> dict[str, Any]:
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _retry_after_seconds(response: httpx.Response) -> float:
    try:
        return max(1.0, float(response.headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0
