"""What a failed call of a shard means: for an error answer the exception that a single server raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tercet.index.errors import WriterReplacedError
from tercet.index.wording import reason_of
from tercet.service.exceptions import (
    CallFailedError,
    OverloadedError,
    RelayedError,
    ShardError,
    ShardFailedError,
    ShardTimeoutError,
    ShardUnavailableError,
)
from tercet.service.http.refusals import FULL_QUEUE_SECONDS, Refusal
from tercet.service.remote.transport import RemoteAnswer

READ_ONLY = "read_only_server"  # of one that follows snapshots: nothing is wrong with the key


def refusal_of(name: str, answer: RemoteAnswer) -> Exception:
    """The exception that an answer of an error status stands for. name: of the shard.

    What concerns the request has the message of the shard; what concerns the shard alone names it.
    """
    refusal = Refusal.of(answer.status, answer.headers, answer.body)
    message, status, code, param = refusal.message, refusal.status, refusal.code, refusal.param
    if not refusal.is_ours:
        return ShardFailedError(f"shard {name} answers with status {status} and no error of ours", name)
    if status in (401, 403) and code != READ_ONLY:
        return ShardUnavailableError(
            f"shard {name} refuses the key of this server (setting shards_key): {message}", name, sent=False
        )
    known = refusal.known("shard", f"shard {name}: ")
    if known is not None:
        return known
    if status == 400:  # a router's requests are sound, so this one was damaged on its way
        return RelayedError(f"shard {name}: {message}", 503, "shard_failed", None, shard=name)
    if status < 500:
        return RelayedError(message, status, code, param)
    return RelayedError(f"shard {name}: {message}", status, code, param, shard=name)


def failure_of(name: str, error: CallFailedError) -> Exception:
    """The exception that a call without an answer stands for. name: of the shard."""
    message = f"shard {name} {error}"
    match error.kind:
        case "silent":
            return ShardTimeoutError(message, name)
        case "garbage" | "large":
            return ShardFailedError(message, name)
        case "busy":
            return OverloadedError(f"shard {name}: {error}", FULL_QUEUE_SECONDS, "shard")
        case kind:
            return ShardUnavailableError(message, name, sent=kind == "broken", paused=kind == "paused")


def lost_here(collection: str, server: str) -> ShardUnavailableError:
    """That the server that takes a shard's writes lacks a collection that a replica of the shard has."""
    return ShardUnavailableError(
        f"server {server} has not got collection {collection!r} as a replica of its shard has it: it lost "
        "its data, and may have made the collection anew; recover it there before anything is written "
        "(docs/recovery.md)",
        server,
        sent=False,
    )


def is_of_server(error: Exception) -> bool:
    """Whether an error concerns the one server that was asked, and not the request."""
    if isinstance(error, RelayedError):
        return error.shard is not None
    return isinstance(error, ShardError | OverloadedError)


def is_refused_by_replica(error: Exception) -> bool:
    """Whether nothing was done as the server that was asked does not write, or cannot be reached."""
    if isinstance(error, ShardUnavailableError):
        return not error.sent
    return isinstance(error, WriterReplacedError) or (
        isinstance(error, RelayedError) and error.code == READ_ONLY
    )


def unwritten(name: str, error: Exception) -> Exception:
    """What a refusal of the server that was taken for the writer means where no other says that it writes.
    name: of the shard.
    """
    if isinstance(error, WriterReplacedError):
        return ShardUnavailableError(
            f"shard {name} is written by a server that is not reached or not known here ({error}); repeat "
            "the write, or name that server in the setting shards",
            name,
            sent=False,
        )
    return error


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Within it, whatever an answer lacks is the fault of the shard of this name: ShardFailedError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ShardFailedError(
            f"shard {name} gave an answer that cannot be read ({reason_of(error)}); is it a "
            "tercet of this version?",
            name,
        ) from None
