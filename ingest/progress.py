"""How far a build is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# In their order. A codebook is learned for some new collections alone: documents of the whole source are
# drawn, encoded, and learned from. Only a build in shards reads all documents before it encodes any.
Phase = Literal["reading", "sampling", "learning", "encoding", "indexing"]


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """How far a build is: `fraction`, from 0 to 1, is the share of its phase that is done.

    documents: encoded and written; total: None where only reading the whole source would tell. seconds: since
    the build began, or encoding did.
    """

    phase: Phase
    fraction: float
    documents: int = 0
    total: int | None = None
    tokens: int = 0
    skipped: int = 0
    seconds: float = 0.0
