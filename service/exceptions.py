"""Exceptions of the service itself; `service/error_table.py` has their statuses.

ServiceError
├── InvalidRequestError       a value breaks a limit of this server; names the field
├── RequestTooLargeError      a request that could not be served even when idle
├── BodyEncodingError         a compressed body that cannot be decoded
├── MalformedBodyError        a binary body that cannot be read
├── BodyTimeoutError          a body that did not arrive in time
├── OverloadedError           too much waits already; says when to try again
│   └── DeadlineExceededError the request's time was over before its work began
├── NotReadyError             the encoder is not loaded yet
├── AuditError                an audit entry that is required cannot be written
├── BrokenAnswerError         an answer that had begun could not be finished
├── UnauthenticatedError      no key, or an unknown one
├── ForbiddenError            a key without the right, or for other collections
├── NotFoundError             a document or other resource that does not exist
├── PositionAheadError        a position that no write of a collection has yet
├── PositionNotReachedError   writes up to a position did not arrive here in time
├── RelayedError              what another server answered, passed on as it is
├── ShardWriteError           a write over shards is made in part, or may be made
├── ShardError                a shard gave no answer that can be used; names it
│   ├── ShardUnavailableError it cannot be reached, or ended the connection
│   ├── ShardTimeoutError     it did not answer in time
│   └── ShardFailedError      what it answered cannot be used
├── BegunAgainError           what a request goes by has changed since it began
│   └── ShardStateGoneError   a router goes on with what is not kept for it any more
├── SnapshotStoreError        an object store, or what is published there, failed a collection that moves
├── BackendError              the engine that holds the collections gave no answer that can be used
├── NotInBackendError         asked for what collections in another engine do not offer
├── DataRootInUseError        another server uses the data root
├── DataRootError             the data root cannot be written to
├── AddressError              the server cannot listen where it should
└── SettingsError             a setting is unknown or has a wrong value

CallFailedError               another server gave no answer; who called says what that means
"""

from typing import Literal


class ServiceError(Exception):
    """Any failure of the service; its message names the value, the limit and the remedy."""


class InvalidRequestError(ServiceError):
    """A well-formed value that this server does not accept.

    param: the field, such as `candidates.dense`; code: what is wrong, for programs.
    """

    def __init__(self, message: str, param: str | None = None, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class SnapshotGoneError(ServiceError):
    """A request for a version of a collection that is not the latest any more."""


class RequestTooLargeError(ServiceError):
    """A request over a limit of size: waiting does not help, splitting it does."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class BodyEncodingError(ServiceError):
    """A body in a content coding that is not known, or damaged. code: which of them, for programs."""

    def __init__(self, message: str, code: str = "invalid_content_encoding") -> None:
        super().__init__(message)
        self.code = code


class MalformedBodyError(ServiceError):
    """A binary body that is not what its type says. code: what it should be, for programs."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class BodyTimeoutError(ServiceError):
    """The body of a request did not arrive in time."""


RefusalReason = Literal[
    "wait",
    "queue",
    "requests",
    "deadline",
    "jobs",
    "worker",
    "writes",
    "loop",
    "bodies",
    "key",
    "encoders",
    "shard",
]
"""A predicted wait over the limit, a full queue of texts, too many requests at once, a deadline that passed,
too many jobs, an encoder worker's own refusal, more writes than are flushed, an event loop that is late, more
bytes of bodies than may be on their way, a limit of one key, more encoders in use than stay open, a shard's
own refusal."""


class OverloadedError(ServiceError):
    """Too much work waits already. retry_after_seconds: when there should be room; reason: for metrics."""

    def __init__(self, message: str, retry_after_seconds: float, reason: RefusalReason) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.reason = reason


class DeadlineExceededError(OverloadedError):
    """A request still waited when its deadline passed. retry_after_seconds: how long one would wait now."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message, retry_after_seconds, "deadline")


class NotReadyError(ServiceError):
    """The service cannot answer yet; trying later helps."""


class AuditError(ServiceError):
    """An entry of the audit log, without which nothing may be answered, cannot be written."""


class BrokenAnswerError(ServiceError):
    """An answer had begun when its rest could not be made; the client sees its connection end."""


NO_KEY = "this server needs a key: send the header Authorization: Bearer KEY"


class UnauthenticatedError(ServiceError):
    """The request bears no key, or one that is not known."""


class ForbiddenError(ServiceError):
    """The key may not do what is asked for.

    code: what it lacks, for programs; param: the field that asks for it, None for the path.
    """

    def __init__(self, message: str, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class NotFoundError(ServiceError):
    """What a request names does not exist. code: what is missing, for programs; param: the field that names
    it, None for the path.
    """

    def __init__(self, message: str, code: str = "not_found", param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class PositionAheadError(ServiceError):
    """A position that no write has yet, of a collection that is written by this server or by nobody now."""


class PositionNotReachedError(ServiceError):
    """What was written up to a position is not here yet, and did not come in time."""


class RelayedError(ServiceError):
    """What another server answered to its part of a request. status, code, param: of its error; shard: the
    shard that it concerns alone, None where it concerns the request.
    """

    def __init__(
        self, message: str, status: int, code: str, param: str | None = None, shard: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.shard = shard


class ShardWriteError(ServiceError):
    """A write over shards of which some took their parts, or may have; the message says which.

    status, code: of the answer; is_unknown: whether one that did not say so may have taken its part.
    """

    def __init__(self, message: str, status: int, code: str, *, is_unknown: bool) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.is_unknown = is_unknown


class ShardError(ServiceError):
    """A shard gave no answer that can be used; the message names it. shard: its name."""

    def __init__(self, message: str, shard: str) -> None:
        super().__init__(message)
        self.shard = shard


class ShardUnavailableError(ShardError):
    """A shard cannot be reached, or ended the connection before its answer. sent: it may have the request;
    paused: it was not asked, since it failed again and again.
    """

    def __init__(self, message: str, shard: str, *, sent: bool, paused: bool = False) -> None:
        super().__init__(message, shard)
        self.sent = sent
        self.paused = paused


class ShardTimeoutError(ShardError):
    """A shard did not answer in time."""


class ShardFailedError(ShardError):
    """What a shard answered cannot be used."""


class BegunAgainError(ServiceError):
    """What a request goes by has changed since it began, so that it has to begin again."""


class ShardStateGoneError(BegunAgainError):
    """A router goes on with a snapshot or a search that is not kept for it any more."""


class SnapshotStoreError(ServiceError):
    """An object store cannot be reached, or what is published there cannot be used."""


class BackendError(ServiceError):
    """The engine that holds the collections cannot be reached, or what it answered cannot be used."""


class NotInBackendError(ServiceError):
    """A request for what collections in another engine do not offer."""


class DataRootInUseError(ServiceError):
    """Another server uses the data root; the message names it."""


class DataRootError(ServiceError):
    """The data root cannot be written to at the start; the message names it."""


class AddressError(ServiceError):
    """The address to listen on is taken, or is none of this machine's."""


class SettingsError(ServiceError):
    """A setting is unknown or has a wrong value; one line that names it."""


CallFailure = Literal["unreachable", "broken", "silent", "garbage", "large", "busy", "paused"]
"""Why a call got no answer: the server could not be reached, ended the connection after it was sent, did not
answer in time, answered no HTTP or too much, has too many calls waiting, or failed too often to be asked.
"""


class CallFailedError(Exception):
    """A call of another server got no answer. Its message goes on after the server's name; that of
    "busy" is a sentence.
    """

    def __init__(self, kind: CallFailure, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def counts(self) -> bool:
        """Whether it tells at once that the server is not well."""
        return self.kind in ("unreachable", "broken", "garbage")
