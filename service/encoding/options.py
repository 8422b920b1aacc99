"""How texts are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tercet.models.representations import OUTPUTS, InputType, Output, TokenBatch
from tercet.models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TextOptions:
    """What is asked of an encoder for texts. max_length: tokens of a text, by default as many as the encoder
    takes; truncate: whether longer ones are cut, else they are refused; adapter: or a router, by its name.
    """

    input_type: InputType = "document"
    outputs: Sequence[Output] = OUTPUTS
    max_length: int | None = None
    truncate: bool = True
    adapter: str | None = None

    def tokenize(self, tokenizer: Tokenizer, texts: Sequence[str]) -> TokenBatch:
        """The tokens of the texts. Raises TextTooLongError."""
        return tokenizer.tokenize(texts, self.input_type, max_length=self.max_length, truncate=self.truncate)


DOCUMENTS = TextOptions()
