"""One encoder worker seen over HTTP: its state, its requests, and what its answers mean."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import httpx

from models.encoder import EncoderInfo
from models.errors import (
    AdapterNotFoundError,
    AdapterUnusableError,
    EncoderUnavailableError,
    TextTooLongError,
)
from models.representations import InputType, Output, Representations
from models.tokenizer import valid_text
from service.binary import MEDIA_TYPE, from_bytes
from service.exceptions import InvalidRequestError, OverloadedError, RequestTooLargeError

log = logging.getLogger("tercet")


class RemoteWorker:
    """A worker that is up, or down until a moment at which it is tried again."""

    def __init__(self, url: str, client: httpx.AsyncClient, retry_seconds: float) -> None:
        self.url = url
        self.in_flight = 0
        self.fault = ""
        self._client = client
        self._retry_seconds = retry_seconds
        self._down_until = 0.0

    @property
    def down(self) -> bool:
        """Whether it failed a moment ago and is left alone for now."""
        return time.monotonic() < self._down_until

    def fail(self, fault: str) -> EncoderUnavailableError:
        """Marks it as down for the pause; returns the error to raise."""
        self.fault = fault
        log.warning("encoder worker %s is left alone for %g s: %s", self.url, self._retry_seconds, fault)
        self._down_until = time.monotonic() + self._retry_seconds
        return EncoderUnavailableError(f"encoder worker {self.url}: {fault}")

    async def describe(self) -> dict[str, Any]:
        """Its `/info`."""
        response = await self._send("GET", "/info")
        try:
            answer = response.json()
            EncoderInfo(**answer["encoder"])
        except (ValueError, KeyError, TypeError) as error:
            raise self.fail(f"its /info is not that of a tercet encoder ({error})") from None
        return dict(answer)

    def require_fingerprint(self, found: str | None, wanted: str) -> None:
        """Raises EncoderUnavailableError where it encodes with another encoder."""
        if found != wanted:
            raise self.fail(
                f"it encodes with fingerprint {found}, the other workers with {wanted}; "
                "start all workers with one checkpoint"
            )

    async def tokenizer_json(self) -> bytes:
        """Its `tokenizer.json`."""
        return (await self._send("GET", "/tokenizer")).content

    async def encode(
        self,
        texts: Sequence[str],
        input_type: InputType,
        outputs: Sequence[Output],
        max_length: int | None,
        truncate: bool,
        info: EncoderInfo,
    ) -> Representations:
        """Representations of the texts; refuses an answer made with another encoder or adapter.

        info: the encoder, with its adapter, that the texts are for.
        """
        body = {
            "inputs": [valid_text(text) for text in texts],  # JSON's bytes cannot hold lone surrogates
            "input_type": input_type,
            "outputs": list(outputs),
            "max_length": max_length,
            "truncate": truncate,
            **({} if info.adapter is None else {"adapter": info.adapter}),
        }
        self.in_flight += 1
        try:
            response = await self._send("POST", "/embed", json=body, headers={"Accept": MEDIA_TYPE})
        finally:
            self.in_flight -= 1
        try:
            representations, metadata = from_bytes(response.content)
        except ValueError as error:
            raise self.fail(str(error)) from None
        found = metadata.get("fingerprint")
        if info.adapter is not None and found != info.fingerprint:  # of no concern to texts without it
            raise AdapterUnusableError(
                f"encoder worker {self.url} has another adapter {info.adapter!r}, with fingerprint {found} "
                f"instead of {info.fingerprint}; give all workers one folder of adapters and start them again"
            )
        self.require_fingerprint(found, info.fingerprint)
        if len(representations) != len(texts):
            raise self.fail(f"it answered {len(representations)} of {len(texts)} texts")
        return representations

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = await self._client.request(method, self.url + path, **options)
        except httpx.TimeoutException:
            raise self.fail("no answer in time (setting encoder_timeout_seconds)") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.fail(f"{type(error).__name__}: {error}") from None
        if response.status_code == httpx.codes.OK:
            return response
        raise self._refusal(response)

    def _refusal(self, response: httpx.Response) -> Exception:
        """The exception that an error answer stands for."""
        error = _error_of(response)
        message = str(error.get("message") or f"status {response.status_code}")
        match response.status_code:
            case 429:
                return OverloadedError(message, _retry_after_seconds(response))
            case 413:
                return RequestTooLargeError(message, error.get("param"))
            case 404 if error.get("code") == "adapter_not_found":
                return AdapterNotFoundError(message)
            case 503 if error.get("code") == "adapter_unusable":
                return AdapterUnusableError(f"encoder worker {self.url}: {message}")
            case 422 if error.get("code") == "text_too_long":
                return TextTooLongError(message)
            case 422:
                return InvalidRequestError(message, error.get("param"), str(error.get("code")))
            case 401 | 403:
                return self.fail(f"it refused the key (setting encoder_key): {message}")
        return self.fail(f"status {response.status_code}: {message}")


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
