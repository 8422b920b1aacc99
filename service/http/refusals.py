"""What error answers of other Tercet servers mean: of shards and of encoder workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from tercet.index.errors import (
    AliasNotFoundError,
    AmbiguousDocumentError,
    BackupNotFoundError,
    CollectionAliasedError,
    CollectionBusyError,
    CollectionExistsError,
    CollectionFencedError,
    CollectionMovedError,
    CollectionNotFoundError,
    DocumentChangedError,
    DocumentNotFoundError,
    FingerprintMismatchError,
    IdempotencyMismatchError,
    PartitionConflictError,
    PositionLostError,
    SeveralCollectionsError,
    UnlikeCollectionsError,
    WriterReplacedError,
)
from tercet.index.wording import without_names_instead
from tercet.models.errors import AdapterNotFoundError, EncoderMemoryError
from tercet.service.exceptions import (
    DeadlineExceededError,
    OverloadedError,
    PositionAheadError,
    PositionNotReachedError,
    ShardStateGoneError,
)

DELETED_HEADER = "Tercet-Collection-Deleted"  # where a collection that is not there was deleted, and not lost
LONGEST_RETRY_SECONDS = 3600.0
FULL_QUEUE_SECONDS = 1.0  # after which another try may find room with a server that did not say

Peer = Literal["shard", "worker"]

# Code → what it is here, of errors that the service itself looks for. None of them has a field.
KINDS: Mapping[Peer, Mapping[str, Callable[[str], Exception]]] = {
    "shard": {
        "alias_not_found": AliasNotFoundError,
        "backup_not_found": BackupNotFoundError,
        "document_not_found": DocumentNotFoundError,
        "collection_exists": CollectionExistsError,
        "collection_aliased": CollectionAliasedError,
        "alias_of_several": SeveralCollectionsError,
        "collections_differ": UnlikeCollectionsError,
        "collection_busy": CollectionBusyError,
        "collection_fenced": CollectionFencedError,
        "collection_moved": CollectionMovedError,
        "writer_replaced": WriterReplacedError,
        "fingerprint_mismatch": FingerprintMismatchError,
        "document_changed": DocumentChangedError,
        "partition_conflict": PartitionConflictError,
        "document_ambiguous": AmbiguousDocumentError,
        "idempotency_key_reused": IdempotencyMismatchError,
        "shard_state_gone": ShardStateGoneError,
        "position_ahead": PositionAheadError,
        "position_lost": PositionLostError,
        "position_not_reached": PositionNotReachedError,
    },
    "worker": {"adapter_not_found": AdapterNotFoundError, "out_of_memory": EncoderMemoryError},
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of an error status. is_ours: whether it has the one shape of errors; code: "None" without;
    was_deleted: whether the collection that is not there was deleted.
    """

    status: int
    message: str
    code: str
    param: str | None
    retry_after_seconds: float
    is_ours: bool
    was_deleted: bool = False

    @staticmethod
    def of(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
        """What an answer says. headers: their names in lower case."""
        error = _error_of(body)
        message, code, param = error.get("message"), error.get("code"), error.get("param", 0)
        is_ours = isinstance(message, str) and isinstance(code, str) and isinstance(param, str | None)
        return Refusal(
            status,
            str(message or "no message"),
            str(code),
            param if isinstance(param, str) else None,
            _retry_after_seconds(headers),
            is_ours,
            DELETED_HEADER.lower() in headers,
        )

    def known(self, peer: Peer, name: str = "") -> Exception | None:
        """The exception that it stands for, whatever was asked; None where only who asked can tell.

        name: of the server, put before a message that is of it alone.
        """
        if self.status == 429 and self.code == "deadline_exceeded":
            return DeadlineExceededError(self.message, self.retry_after_seconds)
        if self.status == 429:
            return OverloadedError(name + self.message, self.retry_after_seconds, peer)
        if self.code == "collection_not_found" and peer == "shard":
            # Which others there are is for whom a key of the shards may tell, not for each client.
            return CollectionNotFoundError(without_names_instead(self.message), was_deleted=self.was_deleted)
        kind = KINDS[peer].get(self.code)
        return None if kind is None else kind(self.message)


def _error_of(body: bytes) -> dict[str, Any]:
    try:
        error = orjson.loads(body)["error"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return {}
    return error if isinstance(error, dict) else {}


def _retry_after_seconds(headers: Mapping[str, str]) -> float:
    try:
        seconds = float(headers.get("retry-after", "1"))
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(seconds) else min(max(1.0, seconds), LONGEST_RETRY_SECONDS)
