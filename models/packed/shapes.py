"""The sizes of packed passes: how many texts go into one, and which sizes share a compiled graph."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.models.representations import Int64

LEAST_TOKENS = 64
STEPS = 8  # sizes from one power of two to the next, so an eighth of a pass is padding at most
MEMORY_SHARE = 0.5  # of what is free, for passes
LEAST_BUDGET = 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """tokens and texts: places of a pass; longest: tokens of a text at most."""

    tokens: int
    texts: int
    longest: int

    @staticmethod
    def of(lengths: Int64) -> Shape:
        """What these texts need. lengths: int64[N] with N at least 1."""
        return Shape(int(lengths.sum()), len(lengths), int(lengths.max()))

    def rounded(self) -> Shape:
        """The next size that is shared: few enough that each is compiled once."""
        return Shape(_next_step(self.tokens), _power(self.texts), _power(self.longest))


def budget_tokens(free_bytes: int, bytes_per_token: int, most_tokens: int) -> int:
    """Tokens of a pass that free memory suffices for, `most_tokens` at most."""
    return max(LEAST_BUDGET, min(most_tokens, int(MEMORY_SHARE * free_bytes) // bytes_per_token))


def bytes_per_token(width: int, intermediate: int, colbert_dimension: int, value_bytes: int) -> int:
    """Memory of a token in a pass, rather too much: the body's states around the widest layer, in its type,
    and the heads' in float32, the vectors once as projected, once normalized and once as they leave.
    """
    return value_bytes * (4 * width + 2 * intermediate) + 4 * (width + 3 * colbert_dimension)


def _next_step(tokens: int) -> int:
    if tokens <= LEAST_TOKENS:
        return LEAST_TOKENS
    step = max(1, _power(tokens) // 2 // STEPS)
    return -(-tokens // step) * step


def _power(size: int) -> int:
    """The least power of two that is not below."""
    return 1 << max(0, size - 1).bit_length()
