"""What an error answer of a shard means: the exception that the same request raises in a single server."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from tercet.cluster.shards.transport import ShardAnswer
from tercet.index.errors import (
    AliasNotFoundError,
    AmbiguousDocumentError,
    BackupNotFoundError,
    CollectionAliasedError,
    CollectionBusyError,
    CollectionExistsError,
    CollectionFencedError,
    CollectionNotFoundError,
    DocumentChangedError,
    DocumentNotFoundError,
    FingerprintMismatchError,
    IdempotencyMismatchError,
    SeveralCollectionsError,
    UnlikeCollectionsError,
)
from tercet.service.exceptions import (
    DeadlineExceededError,
    OverloadedError,
    PositionAheadError,
    PositionNotReachedError,
    RelayedError,
    ShardError,
    ShardFailedError,
    ShardStateGoneError,
    ShardUnavailableError,
)

LONGEST_RETRY_SECONDS = 3600.0
READ_ONLY = "read_only_server"  # of one that follows snapshots: nothing is wrong with the key

# Code → what it is here, of errors that the service itself looks for. None of them has a field.
KINDS: Mapping[str, Callable[[str], Exception]] = {
    "collection_not_found": CollectionNotFoundError,
    "alias_not_found": AliasNotFoundError,
    "backup_not_found": BackupNotFoundError,
    "document_not_found": DocumentNotFoundError,
    "collection_exists": CollectionExistsError,
    "collection_aliased": CollectionAliasedError,
    "alias_of_several": SeveralCollectionsError,
    "collections_differ": UnlikeCollectionsError,
    "collection_busy": CollectionBusyError,
    "collection_fenced": CollectionFencedError,
    "fingerprint_mismatch": FingerprintMismatchError,
    "document_changed": DocumentChangedError,
    "document_ambiguous": AmbiguousDocumentError,
    "idempotency_key_reused": IdempotencyMismatchError,
    "shard_state_gone": ShardStateGoneError,
    "position_ahead": PositionAheadError,
    "position_not_reached": PositionNotReachedError,
}


def refusal_of(name: str, answer: ShardAnswer) -> Exception:
    """The exception that an answer of an error status stands for. name: of the shard.

    What concerns the request has the message of the shard; what concerns the shard alone names it.
    """
    error = _error_of(answer)
    if error is None:
        return ShardFailedError(
            f"shard {name} answers with status {answer.status} and no error of ours", name
        )
    message, code, param = error
    status = answer.status
    if status == 429 and code == "deadline_exceeded":
        return DeadlineExceededError(message, _retry_after_seconds(answer))
    if status == 429:
        return OverloadedError(f"shard {name}: {message}", _retry_after_seconds(answer), "shard")
    if status in (401, 403) and code != READ_ONLY:
        return ShardUnavailableError(
            f"shard {name} refuses the key of this server (setting shards_key): {message}", name, sent=False
        )
    if code in KINDS:
        return KINDS[code](message)
    if status == 400:  # a router's requests are sound, so this one was damaged on its way
        return RelayedError(f"shard {name}: {message}", 503, "shard_failed", None, shard=name)
    if status < 500:
        return RelayedError(message, status, code, param)
    return RelayedError(f"shard {name}: {message}", status, code, param, shard=name)


def is_of_server(error: Exception) -> bool:
    """Whether an error concerns the one server that was asked, and not the request."""
    if isinstance(error, RelayedError):
        return error.shard is not None
    return isinstance(error, ShardError | OverloadedError)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Within it, whatever an answer lacks is the fault of the shard of this name: ShardFailedError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ShardFailedError(
            f"shard {name} gave an answer that cannot be read ({type(error).__name__}: {error}); is it a "
            "tercet of this version?",
            name,
        ) from None


def _error_of(answer: ShardAnswer) -> tuple[str, str, str | None] | None:
    """Message, code and field of an answer in the one shape of errors; None for another."""
    try:
        error: dict[str, Any] = orjson.loads(answer.body)["error"]
        message, code, param = error["message"], error["code"], error["param"]
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    if not (isinstance(message, str) and isinstance(code, str) and isinstance(param, str | None)):
        return None
    return message, code, param


def _retry_after_seconds(answer: ShardAnswer) -> float:
    try:
        seconds = float(answer.headers.get("retry-after", "1"))
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(seconds) else min(max(1.0, seconds), LONGEST_RETRY_SECONDS)
