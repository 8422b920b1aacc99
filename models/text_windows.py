"""Where a text is cut into windows that an encoder reads whole: between tokens, and between words if it can.

Every window but the last has about as many tokens as fit, and shares its last ones with the next. A text of
any length is tokenized part by part, so that it takes no more memory than a few windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from models.errors import UnsupportedError
from models.tokenizer import CHARACTERS_PER_TOKEN, CUT_MARGIN_TOKENS, Tokenizer, TokenSpans

Span = tuple[int, int]
"""First character and end of a part of a text."""


@dataclass(frozen=True, slots=True)
class WindowCutter:
    """Cuts texts of documents into windows.

    tokens: of a window at most, special tokens and instruction included; room: those left for head and text;
    overlap: tokens that neighbours share, or a few more.
    """

    tokenizer: Tokenizer
    tokens: int
    overlap: int
    room: int

    @staticmethod
    def of(tokenizer: Tokenizer, tokens: int, overlap: int) -> WindowCutter:
        """Raises UnsupportedError where the encoder takes no such windows."""
        most, room = tokenizer.settings.max_length, tokenizer.document_room(tokens)
        if tokens > most:
            raise UnsupportedError(
                f"windows of {tokens} tokens are asked for; this encoder takes at most {most}"
            )
        if room <= overlap:
            raise UnsupportedError(
                f"windows of {tokens} tokens have room for {max(0, room)} of a text, beside special tokens "
                f"and instruction, and {overlap} are to overlap: use longer windows or a smaller overlap"
            )
        return WindowCutter(tokenizer, tokens, overlap, room)

    def takes(self, head: str) -> bool:
        """Whether windows that all begin with this head still advance half as fast as without."""
        return 2 * len(self.tokenizer.spans(head)) <= self.room - self.overlap

    def fits(self, text: str) -> bool:
        """Whether the encoder reads the whole text in one window."""
        return not self.tokenizer.tokenize([text], "document", max_length=self.tokens).truncated[0]

    def cut(self, text: str, head: str = "") -> Iterator[Span]:
        """The windows of a text, in order, that together hold all of it; one for a text that fits.

        head: what precedes the part of the text in every window; one that it `takes`.
        """
        if self.fits(head + text):
            yield 0, len(text)
            return
        room = self.room - len(self.tokenizer.spans(head))
        slack = (room - self.overlap) // 2  # by which a cut may come earlier, to fall between words
        characters = (room + CUT_MARGIN_TOKENS) * CHARACTERS_PER_TOKEN
        begin = end = (
            0  # the character to tokenize from, and the tokens from there to the end of the last window
        )
        while True:
            tokens = self.tokenizer.spans(text[begin : begin + characters])
            whole = begin + characters >= len(text)
            # Tokens near the cut of a part may differ from those of the whole text.
            usable = len(tokens) if whole else len(tokens) - CUT_MARGIN_TOKENS
            first = 0
            while whole or first + room <= usable:
                end = _end(tokens, first, end, room, slack)
                while not self.fits(head + text[begin + tokens.starts[first] : begin + tokens.ends[end - 1]]):
                    end -= 1  # cut within a word, a part may have more tokens by itself
                last = whole and end == len(tokens)
                yield (
                    begin + int(tokens.starts[first]) if begin + first else 0,
                    len(text) if last else begin + int(tokens.ends[end - 1]),
                )
                if last:
                    return
                wanted = max(first + 1, end - self.overlap)
                first = tokens.word_start(wanted, max(first + 1, wanted - slack))
            if first == 0:  # few tokens in many characters
                characters *= 4
                continue
            begin, end = begin + int(tokens.starts[first]), end - first


def _end(tokens: TokenSpans, first: int, former: int, room: int, slack: int) -> int:
    """The end of the window from token `first` on, past the `former` one."""
    full = first + room
    return len(tokens) if full >= len(tokens) else tokens.word_start(full, max(former + 1, full - slack))
