"""How documents are cut into passages, as somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tercet.index.documents.metadata import FieldType

SplitKind = Literal["markdown", "paragraphs", "tokens"]
SMALLEST_SIZE, LARGEST_SIZE = 16, 65_536  # tokens
SOURCE = "source"
SOURCE_FIELD: dict[str, FieldType] = {SOURCE: "keyword"}
"""What a collection of passages declares, so that a search can take one hit of each document."""


@dataclass(frozen=True, slots=True)
class Split:
    """kind: at headings, at blank lines, or by size alone; size: tokens of a passage at most, None for what
    the encoder reads well.

    Raises ValueError for a size that is none.
    """

    kind: SplitKind
    size: int | None = None

    def __post_init__(self) -> None:
        if self.size is not None and not SMALLEST_SIZE <= self.size <= LARGEST_SIZE:
            raise ValueError(f"the size is {self.size}; give {SMALLEST_SIZE} to {LARGEST_SIZE} tokens")
