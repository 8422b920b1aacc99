"""A Qdrant server, or a folder of its local mode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from qdrant_client import QdrantClient

from tercet.index.wording import reason_of
from tercet.transfer.errors import TransferError

TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class QdrantPlace:
    """url, or path of a local folder: one of them. api_key, timeout_seconds: of a server."""

    url: str | None = None
    path: str | None = None
    api_key: str | None = None
    timeout_seconds: int = TIMEOUT_SECONDS

    def open(self) -> QdrantClient:
        """Raises TransferError."""
        with qdrant_errors(self.shown):
            if self.path is not None:
                return QdrantClient(path=self.path)
            return QdrantClient(
                url=self.url,
                api_key=self.api_key,
                timeout=self.timeout_seconds,
                check_compatibility=False,
                trust_env=False,  # its proxy would be sent the key
            )

    @property
    def shown(self) -> str:
        """For messages."""
        return f"Qdrant at {self.path if self.path is not None else self.url}"

    @property
    def code(self) -> str:
        """Python that opens it; the key comes from the environment."""
        if self.path is not None:
            return f"QdrantClient(path={self.path!r})"
        key = ', api_key=os.environ["QDRANT_API_KEY"]' if self.api_key else ""
        return f"QdrantClient(url={self.url!r}{key})"


@contextmanager
def qdrant_errors(name: str) -> Iterator[None]:
    """Turns what the client raises into a TransferError that names the place."""
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except (ApiException, RuntimeError, ValueError, OSError) as error:
        raise TransferError(f"{name} refused or does not answer: {_message(error)}") from error


def _message(error: Exception) -> str:
    content: Any = getattr(error, "content", None)
    if content:
        try:
            return str(json.loads(content)["status"]["error"])
        except (ValueError, KeyError, TypeError):
            pass
    return reason_of(error)
