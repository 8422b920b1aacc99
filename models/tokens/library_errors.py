"""Whatever the libraries of tokenizers raise, as errors of ours.

They read what strangers wrote, and raise a plain Exception, errors of any type, or a panic, which is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tercet.models.errors import CheckpointError, EncoderFailedError, ModelError, reason

# What says nothing of a file.
PASSED_ON = (ModelError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit)


@contextmanager
def loading(file: str) -> Iterator[None]:
    """Raises CheckpointError where a library does not take a file."""
    try:
        yield
    except PASSED_ON:
        raise
    except BaseException as error:
        raise CheckpointError(f"{file} is damaged or not understood: {reason(error)}") from error


@contextmanager
def tokenizing(file: str) -> Iterator[None]:
    """Raises EncoderFailedError where a library does not take texts, or tokens, as its file is."""
    try:
        yield
    except PASSED_ON:
        raise
    except BaseException as error:
        raise EncoderFailedError(f"{file} does not take these texts: {reason(error)}") from error
