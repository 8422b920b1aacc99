"""One encoder worker seen over HTTP: what is sent to it, and what its answers mean."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import AdapterDescription, EncoderInfo, require_sound
from tercet.models.errors import (
    AdapterUnusableError,
    EncoderFailedError,
    EncoderUnavailableError,
    ModelError,
    UnsoundRepresentationsError,
)
from tercet.models.representations import Representations
from tercet.models.tokenizer import Tokenizer, valid_text
from tercet.service.answers.binary import MEDIA_TYPE, SMALL_BYTES, from_bytes
from tercet.service.encoding.options import DOCUMENTS, TextOptions
from tercet.service.exceptions import (
    InvalidRequestError,
    RequestTooLargeError,
    WorkerSilentError,
)
from tercet.service.http.refusals import Refusal
from tercet.service.load.admission import too_late
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.settings.settings import WorkerAccess
from tercet.service.tracing.request import call
from tercet.service.workers.health import WorkerHealth, WorkerState

PROBE_TEXT = "probe"

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

    def __init__(self, url: str, client: httpx.AsyncClient, access: WorkerAccess, pool: Pool) -> None:
        """client: sends the key, and has no timeouts of its own; pool: where large answers are read."""
        self.url = url
        self.health = WorkerHealth(url, self._probe, access.probe_seconds, self._give_up)
        self._client = client
        self._access = access
        self._pool = pool
        self._unsound = False
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
                EncoderInfo.from_json(values["encoder"]),
                EncodingSettings.from_json(values["encoding_settings"]),
                [AdapterDescription.from_json(each) for each in values.get("adapters", ())],
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ModelError) as error:
            raise EncoderUnavailableError(
                f"its /info is not that of a tercet encoder ({type(error).__name__}: {error})"
            ) from None

    async def tokenizer(self, described: WorkerDescription) -> Tokenizer:
        """Its tokenizer. Raises EncoderUnavailableError."""
        content = (await self._ask("/tokenizer", self._access.timeout_seconds)).content
        try:
            found = Tokenizer.from_bytes(content, described.settings)
        except ModelError as error:
            raise EncoderUnavailableError(f"its tokenizer cannot be used: {error}") from None
        weighed = described.info.vocabulary_size  # 0 without a lexical side; SPLADE may weigh unused places
        if weighed not in (found.vocabulary_size, 0) and described.settings.splade is None:
            raise EncoderUnavailableError(
                f"its tokenizer has {found.vocabulary_size} tokens, its encoder {weighed}"
            )
        return found

    async def encode(
        self,
        texts: Sequence[str],
        options: TextOptions,
        info: EncoderInfo,
        deadline: Deadline = NO_DEADLINE,
    ) -> Representations:
        """Representations of the texts; refuses an answer made with another encoder or adapter.

        info: the encoder, with its adapter, that the texts are for; deadline: for it to begin.
        Raises UnsoundRepresentationsError for an answer that cannot be used.
        """
        body = {
            "inputs": [valid_text(text) for text in texts],  # JSON's bytes cannot hold lone surrogates
            "input_type": options.input_type,
            "outputs": list(options.outputs),
            "max_length": options.max_length,
            "truncate": options.truncate,
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
            return await self._read(response.content, len(texts), options, info)
        except UnsoundRepresentationsError as error:
            self._unsound = True
            self.health.suspect(str(error))
            raise

    async def _read(
        self, content: bytes, texts: int, options: TextOptions, info: EncoderInfo
    ) -> Representations:
        """What an answer says, checked. Raises as `encode`."""

        def read() -> tuple[Representations, dict[str, str]]:
            try:
                found, metadata = from_bytes(content)
            except ValueError as error:
                raise UnsoundRepresentationsError(f"{self.url}: {error}") from None
            if metadata.get("fingerprint") == info.fingerprint:  # another one is another fault
                longest = options.max_length or info.max_length
                require_sound(found, texts, options.outputs, info, longest, self.url)
            return found, metadata

        found, metadata = read() if len(content) <= SMALL_BYTES else await self._pool.run(read)
        self._check_fingerprint(metadata.get("fingerprint"), info)
        return found

    async def _probe(self, state: WorkerState) -> None:
        """Raises EncoderUnavailableError where it could encode nothing for us now."""
        await self._ask("/ready", self._access.probe_timeout_seconds)
        if state is not WorkerState.UP:  # another checkpoint may have come back under its address
            info = (await self.describe()).info
            if info.fingerprint != self._fingerprint:
                raise EncoderUnavailableError(_other_encoder(info.fingerprint, self._fingerprint))
            if self._unsound:
                await self._try_encoding(info)

    async def _try_encoding(self, info: EncoderInfo) -> None:
        """Raises UnsoundRepresentationsError while what it makes of a short text cannot be used.

        A refusal says nothing of that; what comes after it will.
        """
        response = await self._send(
            "POST",
            "/embed",
            asyncio.timeout(self._access.probe_timeout_seconds),
            json={"inputs": [PROBE_TEXT]},
            headers={"Accept": MEDIA_TYPE},
        )
        if response.status_code == httpx.codes.OK:
            await self._read(response.content, 1, DOCUMENTS, info)
            self._unsound = False

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
        message = _refusal_of(response).message
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
        """The exception that an error answer stands for.

        What we send is sound, so only what a worker's own limits and engine refuse is the client's to mend.
        """
        found = _refusal_of(response)
        message, code = found.message, found.code
        known = found.known("worker")
        if known is not None:
            return known
        if found.status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            return RequestTooLargeError(message, found.param)
        if code == "adapter_unusable":
            return AdapterUnusableError(f"encoder worker {self.url}: {message}")
        if code == "adapter_not_served":
            return InvalidRequestError(message, found.param, code)
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


def _refusal_of(response: httpx.Response) -> Refusal:
    return Refusal.of(response.status_code, response.headers, response.content)
