"""Exceptions about checkpoints, texts and devices.

ModelError
├── CheckpointError      a file of the checkpoint is missing, damaged or not understood
│   ├── AdapterUnusableError  an adapter that is there cannot be used with this encoder
│   └── RerankerUnusableError  a re-ranker that is there cannot be used
├── AdapterNotFoundError  no adapter has this name
├── RerankerNotFoundError  no re-ranker has this name
├── TextTooLongError     a text exceeds the length limit and truncation was not allowed
├── UnsupportedError     the engine or device cannot do what was asked
│   ├── AdapterNotServedError  the engine cannot serve this adapter, or not as it is
│   ├── RerankerNotServedError  no re-ranker can run here
│   └── UnsupportedWindowError  the encoder does not take windows of this size or overlap
├── EncoderMemoryError   a text needs more memory than the encoder's device has left
└── EncoderUnavailableError  no encoder can answer now; trying later may help
    └── EncoderFailedError   an encoder was reached, and failed on these texts
        └── UnsoundRepresentationsError  what it made of them cannot be used
"""

from collections.abc import Sequence
from typing import Literal

NAMES_TOLD = 20  # of those that there are, where a name is unknown


class ModelError(Exception):
    """Any failure in encoding; its message names the value, the limit and the remedy."""


class CheckpointError(ModelError):
    """A file of the checkpoint is missing, damaged or not understood; the message names it."""


class AdapterUnusableError(CheckpointError):
    """An adapter is there, but damaged, or made for another base; the message names file and remedy."""


class RerankerUnusableError(CheckpointError):
    """A re-ranker is there, but is no cross-encoder, or damaged; the message names the file."""


class AdapterNotFoundError(ModelError):
    """No adapter has this name; the message lists those that there are."""


class RerankerNotFoundError(ModelError):
    """No re-ranker has this name; the message lists those that there are."""


class TextTooLongError(ModelError):
    """A text has more tokens than the limit, and truncation was not allowed."""


class UnsupportedError(ModelError):
    """The engine, device or checkpoint cannot do what was asked."""


class AdapterNotServedError(UnsupportedError):
    """An adapter is there, but not in a form that this engine, or this body, can serve."""


class RerankerNotServedError(UnsupportedError):
    """Re-rankers do not run in this process; the message says why."""


class UnsupportedWindowError(UnsupportedError):
    """The encoder does not take windows of this size or overlap.

    setting: which of the two it is about, `tokens` or `overlap`; problem: its value, the limit and the
    remedy; name: what it is called where it was set, by default as in a request.
    """

    def __init__(self, setting: Literal["tokens", "overlap"], problem: str, name: str | None = None) -> None:
        super().__init__(f"{name or f'window.{setting}'} is {problem}")
        self.setting = setting
        self.problem = problem


class EncoderMemoryError(ModelError):
    """A batch, or one text by itself, needs more memory than the encoder's device has left."""


class EncoderUnavailableError(ModelError):
    """No encoder can answer at the moment."""


class EncoderFailedError(EncoderUnavailableError):
    """An encoder was reached, and failed on these texts; others it may encode."""


class UnsoundRepresentationsError(EncoderFailedError):
    """What an encoder made cannot be used: other shapes than were asked for, or values out of range."""


def reason(error: BaseException) -> str:
    """What lies at the bottom of an error's causes, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def no_such(kind: str, name: str, known: Sequence[str]) -> str:
    """What to say of a name that nothing of a kind, such as `adapter`, has. known: the names there are."""
    named = ", ".join(known[:NAMES_TOLD]) + (", …" if len(known) > NAMES_TOLD else "")
    there = f"there are {named}" if known else f"the folder of {kind}s has none"
    return f"no {kind} {name[:80]!r}; {there}"
