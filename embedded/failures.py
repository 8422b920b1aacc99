"""Turns exceptions of the layers below into those of the Python API, with the codes that HTTP answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tercet.embedded.errors import KINDS, ApiError, TercetError
from tercet.models.errors import ModelError
from tercet.service.error_table import TYPES
from tercet.service.errors import INTERNAL, Failure, failure_of
from tercet.service.exceptions import DataRootInUseError, ServiceError


def error_of(error: Exception) -> Exception:
    """The exception that a caller gets for one of the layers below; the same one where it is a bug."""
    if isinstance(error, DataRootInUseError):
        return _raised(Failure(409, str(error), "data_root_in_use"))
    failure = failure_of(error)
    if failure is not INTERNAL:
        return _raised(failure)
    return TercetError(str(error)) if isinstance(error, ModelError | ServiceError) else error


def _raised(failure: Failure) -> ApiError:
    kind = KINDS.get(failure.status, ApiError)
    return kind(failure.status, failure.message, failure.code, failure.param, TYPES.get(failure.status, ""))


@contextmanager
def translated() -> Iterator[None]:
    """Turns exceptions of the layers below into exceptions of the Python API, with their cause."""
    try:
        yield
    except Exception as error:
        public_error = error_of(error)
        if public_error is error:
            raise
        raise public_error from error
