"""What a tokenizer needs of a vocabulary, whichever library reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tercet.models.representations import Bool, Int32, Int64


@dataclass(frozen=True, slots=True)
class TokenSpans:
    """The L tokens of a text, int32[L], and where they lie in it: first characters and ends, int64[L].

    begins_word: bool[L].
    """

    token_ids: Int32
    starts: Int64
    ends: Int64
    begins_word: Bool

    def __len__(self) -> int:
        return len(self.starts)


class Vocabulary(Protocol):
    """Pieces with their ids, and how text becomes them. Safe to share between threads.

    size: ids lie below it; prefix, suffix: int32, ids of the special tokens around a text; separator: int32,
    of those between two texts that are read together; special_ids: of all special tokens, which are never
    lexical terms; pad_id: what fills shorter rows of a batch. Texts are valid Unicode.
    """

    size: int
    prefix: Int32
    suffix: Int32
    separator: Int32
    special_ids: frozenset[int]
    pad_id: int

    def token_ids(self, texts: Sequence[str]) -> list[Int32]:
        """Ids of each text without special tokens."""
        ...

    def spans(self, text: str) -> TokenSpans:
        """Ids of one text without special tokens, and where its tokens lie."""
        ...

    def piece(self, token_id: int) -> str | None:
        """The piece of an id, None where it has none."""
        ...

    def id_of(self, piece: str) -> int | None:
        """The id of a piece as it is written, None where there is none of that name."""
        ...

    def text_of(self, token_ids: Sequence[int], *, special: bool = False) -> str:
        """The text of tokens, without special ones unless asked; each id lies below `size`."""
        ...
