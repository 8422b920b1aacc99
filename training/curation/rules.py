"""What a pair of a query and a passage must be by itself: of some length, and no copy of each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tercet.training.curation.pair_lines import Reason
from tercet.training.data.pairs import letters


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many characters a text may have."""

    least: int = 1
    most: float = math.inf

    def have(self, text: str) -> bool:
        """Whether a text is so long, without the blanks around it."""
        return self.least <= len(text.strip()) <= self.most


@dataclass(frozen=True, slots=True)
class PairRules:
    """contained: whether a query that stands in its own passage is left out; it teaches to find words."""

    query: Lengths = Lengths()
    passage: Lengths = Lengths()
    contained: bool = False

    def broken(self, query: str, passage: str) -> tuple[Reason, float] | None:
        """The first rule that a pair breaks, with the length of the text that it is about; None for none."""
        if not self.query.have(query):
            return "query_length", len(query.strip())
        if not self.passage.have(passage):
            return "passage_length", len(passage.strip())
        if self.contained and is_contained(query, passage):
            return "contained", len(query.strip())
        return None


def is_contained(query: str, passage: str) -> bool:
    """Whether a query is its passage or stands in it, by letters and digits alone, in lower case."""
    words = letters(query)
    return words in letters(passage) if words else query.strip() in passage
