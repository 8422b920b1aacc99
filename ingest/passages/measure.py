"""How many tokens a text has: as an encoder counts them, or about as many."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.models.texts.groups import estimated_tokens
from tercet.models.tokenizer import CHARACTERS_PER_TOKEN, Tokenizer

USUAL_SIZE = 256  # tokens, half of what most encoders take
LARGEST_USUAL_SIZE = 512


@dataclass(frozen=True, slots=True)
class TokenMeasure:
    """tokenizer: the encoder's, None where it is not at hand."""

    tokenizer: Tokenizer | None = None

    @property
    def usual_size(self) -> int:
        """Tokens of a passage that the encoder reads well: half of its limit, so that title and instruction
        have room, and not so many that one vector stands for several subjects.
        """
        if self.tokenizer is None:
            return USUAL_SIZE
        return min(LARGEST_USUAL_SIZE, self.tokenizer.settings.max_length // 2)

    def tokens(self, text: str, most: int) -> int:
        """Tokens of a text, or some number above `most` where there are more.

        A long word may be one unknown token: so many characters count as one at least.
        """
        least = len(text) // CHARACTERS_PER_TOKEN
        if least > most:
            return least
        if self.tokenizer is None:
            return max(least, estimated_tokens(text))
        return max(least, len(self.tokenizer.tokenize_whole([text]).token_ids))
