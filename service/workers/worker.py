"""One encoder worker seen over HTTP: what is sent to it, and what its answers mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from tercet.index.wording import reason_of
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
    CallFailedError,
    InvalidRequestError,
    OverloadedError,
    RequestTooLargeError,
)
from tercet.service.http.refusals import FULL_QUEUE_SECONDS, Refusal
from tercet.service.load.admission import too_late
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.remote.circuit import CircuitPolicy, ServerState
from tercet.service.remote.probes import Probes
from tercet.service.remote.server import RemoteServer
from tercet.service.remote.transport import JSON, RemoteAnswer, RemoteRequest, Transport
from tercet.service.settings.settings import WorkerAccess

OK = 200
PROBE_TEXT = "probe"
WORDS = {state: f"is {state.value}" for state in ServerState}
QUICK_SECONDS = 0.25  # between probes of a worker that is not up


@dataclass(frozen=True, slots=True)
class WorkerDescription:
    """What a worker says that it is."""

    info: EncoderInfo
    settings: EncodingSettings
    adapters: list[AdapterDescription]


class RemoteWorker:
    """A worker: what it is, what is sent to it, and what its answers mean. Use from one event loop."""

    def __init__(self, transport: Transport, access: WorkerAccess, pool: Pool, probes: Probes) -> None:
        """probes: of this and other workers; pool: where large answers are read."""
        self.url = transport.name
        policy = CircuitPolicy("encoder worker", WORDS, 1, QUICK_SECONDS, access.probe_seconds)
        self.server = RemoteServer(transport, policy, self._probe, probes)
        self._access = access
        self._pool = pool
        self._unsound = False
        self._fingerprint: str | None = None

    def require(self, fingerprint: str) -> None:
        """From now on it is up only while it encodes with this fingerprint."""
        self._fingerprint = fingerprint

    async def describe(self) -> WorkerDescription:
        """Its `/info`. Raises EncoderUnavailableError and CallFailedError."""
        content = await self._ask("/info", self._access.probe_timeout_seconds)
        try:
            values = orjson.loads(content)
            return WorkerDescription(
                EncoderInfo.from_json(values["encoder"]),
                EncodingSettings.from_json(values["encoding_settings"]),
                [AdapterDescription.from_json(adapter) for adapter in values.get("adapters", ())],
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ModelError) as error:
            raise EncoderUnavailableError(
                f"its /info is not that of a tercet encoder ({reason_of(error)})"
            ) from None

    async def tokenizer(self, described: WorkerDescription) -> Tokenizer:
        """Its tokenizer. Raises EncoderUnavailableError and CallFailedError."""
        content = await self._ask("/tokenizer", self._access.timeout_seconds)
        try:
            tokenizer = Tokenizer.from_bytes(content, described.settings)
        except ModelError as error:
            raise EncoderUnavailableError(f"its tokenizer cannot be used: {error}") from None
        weighed = described.info.vocabulary_size  # 0 without a lexical side; SPLADE may weigh unused places
        if weighed not in (tokenizer.vocabulary_size, 0) and described.settings.splade is None:
            raise EncoderUnavailableError(
                f"its tokenizer has {tokenizer.vocabulary_size} tokens, its encoder {weighed}"
            )
        return tokenizer

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
        headers = {"Accept": MEDIA_TYPE, "Content-Type": JSON}
        if deadline != NO_DEADLINE:
            if deadline.passed:
                raise too_late(0)
            headers["X-Request-Timeout"] = f"{deadline.remaining_seconds:.3f}"
        request = RemoteRequest("POST", "/embed", headers, orjson.dumps(body))
        try:
            answer = await self.server.call(request, self._access.timeout_seconds)
        except CallFailedError as error:
            if error.kind == "busy":
                raise OverloadedError(str(error), FULL_QUEUE_SECONDS, "worker") from None
            raise
        if answer.status != OK:
            raise self._refusal(answer)
        try:
            return await self._read(answer.body, len(texts), options, info)
        except UnsoundRepresentationsError as error:
            self._unsound = True
            self.server.circuit.failed(str(error))
            raise

    async def _read(
        self, content: bytes, texts: int, options: TextOptions, info: EncoderInfo
    ) -> Representations:
        """What an answer says, checked. Raises as `encode`."""

        def read() -> tuple[Representations, dict[str, str]]:
            try:
                representations, metadata = from_bytes(content)
            except ValueError as error:
                raise UnsoundRepresentationsError(f"{self.url}: {error}") from None
            if metadata.get("fingerprint") == info.fingerprint:  # another one is another fault
                longest = options.max_length or info.max_length
                require_sound(representations, texts, options.outputs, info, longest, self.url)
            return representations, metadata

        representations, metadata = read() if len(content) <= SMALL_BYTES else await self._pool.run(read)
        self._check_fingerprint(metadata.get("fingerprint"), info)
        return representations

    async def _probe(self, state: ServerState) -> str:
        """What keeps it from encoding for us now: see `Probe`."""
        try:
            await self._ask("/ready", self._access.probe_timeout_seconds)
            if state is not ServerState.UP:  # another checkpoint may have come back under its address
                info = (await self.describe()).info
                if info.fingerprint != self._fingerprint:
                    return _other_encoder(info.fingerprint, self._fingerprint)
                if self._unsound:
                    await self._try_encoding(info)
        except EncoderUnavailableError as error:
            return str(error)
        return ""

    async def _try_encoding(self, info: EncoderInfo) -> None:
        """Raises UnsoundRepresentationsError while what it makes of a short text cannot be used.

        A refusal says nothing of that; what comes after it will.
        """
        body = orjson.dumps({"inputs": [PROBE_TEXT]})
        request = RemoteRequest("POST", "/embed", {"Accept": MEDIA_TYPE, "Content-Type": JSON}, body)
        answer = await self.server.ask(request, self._access.probe_timeout_seconds)
        if answer.status == OK:
            await self._read(answer.body, 1, DOCUMENTS, info)
            self._unsound = False

    async def _ask(self, path: str, timeout_seconds: float) -> bytes:
        """The body of its answer with status 200. Raises EncoderUnavailableError and CallFailedError."""
        answer = await self.server.ask(RemoteRequest("GET", path), timeout_seconds)
        if answer.status == OK:
            return answer.body
        message = _refusal_of(answer).message
        if answer.status == 401:
            message = f"it refused the key (setting encoder_key): {message}"
        raise EncoderUnavailableError(f"{path}: status {answer.status}: {message}")

    def _check_fingerprint(self, fingerprint: str | None, info: EncoderInfo) -> None:
        """Raises where an answer was made with another encoder or adapter."""
        if fingerprint == info.fingerprint:
            return
        if info.adapter is not None:  # of no concern to texts without it
            raise AdapterUnusableError(
                f"encoder worker {self.url} has another adapter {info.adapter!r}, with fingerprint "
                f"{fingerprint} instead of {info.fingerprint}; give all workers one folder of adapters and "
                "start them again"
            )
        fault = _other_encoder(fingerprint, info.fingerprint)
        self.server.circuit.failed(fault)
        raise EncoderUnavailableError(fault)

    def _refusal(self, answer: RemoteAnswer) -> Exception:
        """The exception that an error answer stands for.

        What we send is sound, so only what a worker's own limits and engine refuse is the client's to mend.
        """
        refusal = _refusal_of(answer)
        message, code = refusal.message, refusal.code
        known = refusal.known("worker")
        if known is not None:
            return known
        if refusal.status == 413:
            return RequestTooLargeError(message, refusal.param)
        if code == "adapter_unusable":
            return AdapterUnusableError(f"encoder worker {self.url}: {message}")
        if code == "adapter_not_served":
            return InvalidRequestError(message, refusal.param, code)
        fault = f"/embed: status {answer.status}: {message}"
        if code in ("key_required", "not_ready"):  # of concern to all requests: its probe will find it too
            self.server.circuit.failed(fault)
            return EncoderUnavailableError(fault)
        return EncoderFailedError(f"{self.url}{fault}")


def _other_encoder(fingerprint: str | None, wanted: str | None) -> str:
    return (
        f"it encodes with fingerprint {fingerprint}, the other workers with {wanted}; "
        "start all workers with one checkpoint"
    )


def _refusal_of(answer: RemoteAnswer) -> Refusal:
    return Refusal.of(answer.status, answer.headers, answer.body)
