"""A checkpoint that differs from its files: with the heads of another, or with several CLS in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(
    r"(?P<checkpoint>.*?)(?: with heads of (?P<heads>.*?))?(?: with a CLS every (?P<every>\d+) tokens)?", re.S
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A checkpoint and what is changed of it. heads: the checkpoint whose heads it borrows; mcls_every: at
    every position that this divides stands a CLS (MCLS). None is as the checkpoint's own files say.
    """

    checkpoint: str
    heads: str | None = None
    mcls_every: int | None = None

    @property
    def name(self) -> str:
        """One name for all of it, as collections record it; the checkpoint's own where nothing is changed."""
        heads = "" if self.heads is None else f" with heads of {self.heads}"
        every = "" if self.mcls_every is None else f" with a CLS every {self.mcls_every} tokens"
        return self.checkpoint + heads + every

    @property
    def parts(self) -> list[str]:
        """The checkpoints that it takes."""
        return [self.checkpoint] if self.heads is None else [self.checkpoint, self.heads]

    @staticmethod
    def of(name: str) -> Variant:
        """What a name by `name` stands for."""
        match = NAME.fullmatch(name)
        assert match is not None  # noqa: S101 - all of it may be the checkpoint's
        every = match["every"]
        return Variant(match["checkpoint"], match["heads"], None if every is None else int(every))
