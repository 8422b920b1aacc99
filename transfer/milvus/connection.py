"""A Milvus server, or a file of Milvus Lite."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from tercet.transfer.description import KEY
from tercet.transfer.errors import TransferError


@dataclass(frozen=True, slots=True)
class MilvusPlace:
    """uri: of a server, or a file of Milvus Lite, which ends in .db. token, timeout_seconds: of a server, and
    of one request there.
    """

    uri: str
    token: str | None = None
    timeout_seconds: float | None = None

    @property
    def code(self) -> str:
        """Python that opens it; the token comes from the environment."""
        token = ', token=os.environ["MILVUS_TOKEN"]' if self.token else ""
        return f"MilvusClient({self.uri!r}{token})"

    @property
    def remote(self) -> bool:
        """Whether it is a server."""
        return "://" in self.uri

    def open(self) -> MilvusClient:
        """Raises TransferError."""
        for name in ("pymilvus", "milvus_lite"):  # they log what they raise
            logging.getLogger(name).setLevel(logging.CRITICAL)
        lite = "" if self.remote else ", a file of Milvus Lite, which one process has at a time,"
        with milvus_errors(f"Milvus at {self.uri}{lite}"):
            return MilvusClient(
                self.uri,
                token=self.token or "",
                timeout=self.timeout_seconds,
                grpc_options={"grpc.enable_http_proxy": 0},  # it would be sent the token
            )

    def described(self, client: MilvusClient, collection: str) -> Any:
        """What was said of a collection when it was made; None where it was nothing of ours."""
        record = client.describe_collection(collection)
        written = record.get("description") if self.remote else record.get("properties", {}).get(KEY)
        try:
            return orjson.loads(written or "")
        except orjson.JSONDecodeError:
            return None


@contextmanager
def milvus_errors(name: str) -> Iterator[None]:
    """Turns what the client raises into a TransferError that names the place."""
    try:
        yield
    except (MilvusException, OSError, ValueError) as error:
        message = getattr(error, "message", "") or str(error)
        raise TransferError(f"{name} refused or does not answer: {message}") from error
