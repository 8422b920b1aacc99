"""A running server, asked over HTTP by commands that are given `--url`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from tercet.index.errors import CollectionBusyError
from tercet.service.exceptions import ServiceError

if TYPE_CHECKING:
    import httpx

    from tercet.service.settings.settings import Settings

Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask a running server, such as http://127.0.0.1:8080, instead of opening the data root. It is "
        "sent the first key of TERCET_API_KEYS or TERCET_API_KEYS_FILE.",
        show_default=False,
    ),
]
ATTEMPTS = 8  # of a request that a server is too busy for
TIMEOUT_SECONDS = 600.0
BUSY, NOT_READY = 429, 503


class RemoteError(ServiceError):
    """A server cannot be reached, or refused. status: of its answer, None where there is none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(RemoteError):
    """A server does not answer."""


class Remote:
    """One server; used as a context manager."""

    def __init__(self, url: str, settings: Settings, *, reads: bool = False) -> None:
        """reads: prefers a read-only key. Raises RemoteError for what is no URL of a server."""
        import httpx

        keys = (settings.read_keys if reads else []) or settings.api_keys
        headers = {"Authorization": f"Bearer {keys[0].get_secret_value()}"} if keys else {}
        self._url = url.rstrip("/")
        wrong = RemoteError(f"--url is {url!r}; give one such as http://127.0.0.1:8080")
        if not self._url.startswith(("http://", "https://")):
            raise wrong
        try:
            # Without the environment: its proxy would be sent the key, in the clear where the URL is http.
            self._client = httpx.Client(
                base_url=self._url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False
            )
        except httpx.InvalidURL as error:
            raise wrong from error

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(
        self, method: str, path: str, *, json: object = None, params: Mapping[str, str | int] | None = None
    ) -> Any:
        """The answer's JSON, None where it has none. A busy server is asked again after the time it names.

        Raises RemoteError with the server's message.
        """
        for attempt in range(1, ATTEMPTS + 1):
            answer = self._answer(method, path, json, params)
            if answer.is_success:
                return _value_of(answer)
            waits = answer.headers.get("Retry-After", "")
            if (
                answer.status_code not in (BUSY, NOT_READY)
                or not waits.strip().isdecimal()
                or attempt == ATTEMPTS
            ):
                raise RemoteError(_message_of(answer), answer.status_code)
            time.sleep(float(waits))
        raise AssertionError("unreachable")

    def _answer(
        self, method: str, path: str, json: object, params: Mapping[str, str | int] | None
    ) -> httpx.Response:
        import httpx

        try:
            return self._client.request(method, path, json=json, params=dict(params or {}))
        except UnicodeEncodeError as error:
            raise RemoteError(
                f"{error.object[:40]!r} is no UTF-8 text (half a character); nothing was sent"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(
                f"{self._url} does not answer ({error or type(error).__name__}); start a server there with "
                "tercet serve, or leave --url out"
            ) from error


def path_of(collection: str, *parts: str) -> str:
    """The path of a collection's route; parts may hold any characters. Raises RemoteError for half ones."""
    try:
        return "/".join(["/collections", *(quote(part, safe="") for part in (collection, *parts))])
    except UnicodeEncodeError as error:
        raise RemoteError(f"{error.object[:40]!r} is no UTF-8 text (half a character)") from error


def usual_url(settings: Settings) -> str:
    """Where a server with these settings answers on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - what listens on all is asked here
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


@contextmanager
def named_url(settings: Settings) -> Iterator[None]:
    """Adds to the message of a collection that another process writes what to do about it."""
    try:
        yield
    except CollectionBusyError as error:
        raise CollectionBusyError(
            f"{error}; where a server writes it, give that with --url, such as --url {usual_url(settings)}"
        ) from error


def _value_of(answer: httpx.Response) -> Any:
    """The JSON of an answer; None where it has none. Raises RemoteError."""
    try:
        return answer.json() if answer.content else None
    except ValueError as error:
        raise RemoteError(_message_of(answer), answer.status_code) from error


def _message_of(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.url} answered {answer.status_code}, which is no answer of a Tercet server"
