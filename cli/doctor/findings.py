"""What an examination finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the doctor says of one topic. remedy: what to do, of a warning or a problem."""

    state: State
    topic: str
    text: str
    remedy: str | None = None
