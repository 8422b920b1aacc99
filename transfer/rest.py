"""What targets written over plain HTTP share: requests that are sent again where a server is busy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx

from tercet.index.wording import reason_of
from tercet.transfer.errors import TransferError

ATTEMPTS = 8
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds
TIMEOUT_SECONDS = 120.0
BUSY = (429, 503)


class RestServer:
    """One server, by its address. authorization: the whole header, with the key."""

    def __init__(self, name: str, url: str, authorization: str | None) -> None:
        """Raises TransferError for what is no address."""
        if not url.startswith(("http://", "https://")):
            raise TransferError(f"--url is {url!r}; give one such as http://127.0.0.1:9200")
        headers = {} if authorization is None else {"Authorization": authorization}
        self._name = name
        # Without the environment: its proxy would be sent the key, in the clear where the URL is http.
        self.client = httpx.Client(
            base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False
        )

    def ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        kind: str = "application/json",
        params: Mapping[str, str | int] | None = None,
        allowed: tuple[int, ...] = (),
    ) -> httpx.Response:
        """The answer: of success, or of an allowed status. Raises TransferError with the server's words."""
        headers = {} if content is None else {"Content-Type": kind}
        for attempt in range(ATTEMPTS):
            try:
                answer = self.client.request(
                    method, path, content=content, headers=headers, params=dict(params or {})
                )
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise TransferError(f"{self._name} does not answer ({reason_of(error)})") from error
            if answer.status_code not in BUSY or attempt == ATTEMPTS - 1:
                break
            time.sleep(pause(attempt, answer.headers.get("Retry-After")))
        if not answer.is_success and answer.status_code not in allowed:
            raise TransferError(
                f"{self._name} answered {answer.status_code} to {method} {path}: {_words(answer)}"
            )
        return answer

    def close(self) -> None:
        """Lets go of connections."""
        self.client.close()


def pause(attempt: int, named: str | None) -> float:
    """Seconds before another attempt: those that the server names, or more each time."""
    if named is not None and named.strip().isdecimal():
        return float(named)
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt)


def _words(answer: httpx.Response) -> str:
    try:
        body: Any = answer.json()
    except ValueError:
        return answer.text[:300]
    if isinstance(body, dict):
        error = body.get("error", body.get("message", body))
        return str(error.get("reason", error) if isinstance(error, dict) else error)[:300]
    return str(body)[:300]
