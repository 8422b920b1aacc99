"""What shards did of a write together, and what is told where some took their parts and others did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tercet.cluster.shards.positions import Positions
from tercet.index.errors import SearchIndexError
from tercet.service.errors import failure_of
from tercet.service.exceptions import (
    RelayedError,
    ServiceError,
    ShardFailedError,
    ShardTimeoutError,
    ShardUnavailableError,
    ShardWriteError,
)

_UNKNOWN_CODES = ("write_unknown", "internal")


@dataclass(frozen=True, slots=True)
class Part:
    """What a shard took of a write: its position then, and the documents concerned."""

    position: int
    documents: int


@dataclass(frozen=True, slots=True)
class ShardedWritten:
    """What was acknowledged: see `tercet.index.live.records.Written`. position: as text, one number a
    shard.
    """

    position: str
    documents: int
    tokens: int = 0


class FencedPartsError(ServiceError):
    """A write of which some shards refused their parts, as the collection moves to others, and no part is in
    doubt.

    failure: what to answer where it is not repeated; documents: that the others took; shards: the numbers of
    those that refused.
    """

    def __init__(self, failure: Exception, documents: int, shards: frozenset[int]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.documents = documents
        self.shards = shards


def failure_of_parts(
    taken: Mapping[str, Part], failed: Mapping[str, Exception], position: Positions, *, keyed: bool
) -> Exception:
    """The error of a write, by the names of shards. failed: one at least; position: with what was taken.

    Where no shard changed a document, and that is certain, it is the error of the first. keyed: whether the
    write had an idempotency key.
    """
    unknown = [error for error in failed.values() if may_be_written(error)]
    repeat = (
        "repeat it with the same idempotency_key, and what is there already is not done again"
        if keyed
        else "repeat it, next time with an idempotency_key, by which a repeat changes nothing twice"
    )
    first = (unknown or list(failed.values()))[0]
    done = sum(part.documents for part in taken.values())
    if not done:
        if not unknown:
            return first
        return ShardWriteError(
            f"{first}; whether the write was made there is unknown: {repeat}",
            503,
            "write_unknown",
            is_unknown=True,
        )
    said = "; ".join(f"{name}: {_message(name, error)}" for name, error in failed.items())
    return ShardWriteError(
        f"the write is made in part, of {done} documents at position {position}: {', '.join(taken)} took "
        f"theirs, and others did not ({said}). Once that is mended {repeat}",
        failure_of(first).status,
        "write_incomplete",
        is_unknown=bool(unknown),
    )


def may_be_written(error: Exception) -> bool:
    """Whether a shard that failed so may have made the write."""
    if isinstance(error, ShardUnavailableError):
        return error.sent
    if isinstance(error, RelayedError):
        return error.code in _UNKNOWN_CODES
    return isinstance(error, ShardTimeoutError | ShardFailedError)


def _message(name: str, error: Exception) -> str:
    """What an error says, without the shard's name in front."""
    if isinstance(error, SearchIndexError):
        return str(error)
    return str(error).removeprefix(f"shard {name}").lstrip(": ")
