"""Where a text is cut into windows that an encoder reads whole: between tokens, and between words if it can.

Every window but the last has about as many tokens as fit, and shares its last ones with the next. A text of
any length is tokenized part by part, so that it takes no more memory than a few windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tercet.models.errors import TextTooLongError, UnsupportedWindowError
from tercet.models.texts.edges import MOST_CHARACTERS, TextEdges, next_ink
from tercet.models.tokenizer import CHARACTERS_PER_TOKEN, CUT_MARGIN_TOKENS, Tokenizer

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
        """Raises UnsupportedWindowError where the encoder takes no such windows."""
        most, room = tokenizer.settings.max_length, tokenizer.document_room(tokens)
        frame = tokens - room
        if tokens > most:
            raise UnsupportedWindowError(
                "tokens",
                f"{tokens}; this encoder takes at most {most}: use {most} or less, or an encoder that takes "
                "more",
            )
        if room < 1:
            raise UnsupportedWindowError(
                "tokens",
                f"{tokens}; special tokens and instruction of this encoder take {frame}: use more than "
                f"{frame}",
            )
        if room <= overlap:
            raise UnsupportedWindowError(
                "overlap",
                f"{overlap}; windows of {tokens} tokens have room for {room} beside special tokens and "
                f"instruction: use less than {room}, or longer windows",
            )
        return WindowCutter(tokenizer, tokens, overlap, room)

    def takes(self, head: str) -> bool:
        """Whether windows that all begin with this head still advance half as fast as without."""
        if not head:  # as of most documents
            return True
        most = min(MOST_CHARACTERS // 2, (self.room + CUT_MARGIN_TOKENS) * CHARACTERS_PER_TOKEN)
        return len(head) <= most and 2 * len(self.tokenizer.spans(head)) <= self.room - self.overlap

    def fits(self, text: str) -> bool:
        """Whether the encoder reads the whole text in one window."""
        if len(text) > MOST_CHARACTERS:
            return False
        return not self.tokenizer.tokenize([text], "document", max_length=self.tokens).truncated[0]

    def joined(self, head: str, part: str) -> str:
        """What is encoded of a window: its part of the text after the head.

        A part of such short windows that not one character fits beside the head stands by itself.
        """
        return head + part if not head or self.fits(head + part) else part

    def cut(self, text: str, head: str = "") -> Iterator[Span]:
        """The windows of a text, in order; one for a text that fits.

        Together they hold all of it but white space where it is cut. Each begins and ends after the one
        before it. head: what precedes the part of the text in every window; one that it `takes`.

        Raises TextTooLongError where a single character has more tokens than a window has room for.
        """
        if self.fits(head + text):
            yield 0, len(text)
            return
        if not text.strip():
            yield 0, 0
            return
        yield from self._windows(text, head)

    def _windows(self, text: str, head: str) -> Iterator[Span]:
        """The windows of a text that does not fit into one, and is not all white space."""
        room, stop = self.room - len(self.tokenizer.spans(head)), len(text.rstrip())
        begin = reached = 0  # where the next window begins, and where the last one ends
        while reached < stop:
            reached = next_ink(text, reached)  # so that what comes next holds more than white space
            edges, first = TextEdges.of(self.tokenizer, text, begin, room), 0
            while edges.reaches(first, room):
                start = int(edges.characters[first])
                last = self._last(text, head, edges, first, reached, room)
                if last is None and start < reached:
                    begin = reached  # what comes next takes the room of the overlap
                    break
                if last is None:
                    begin = reached = self._within(text, head, start, int(edges.characters[first + 1]))
                    yield _span(text, start, reached)
                    break
                reached = int(edges.characters[last])
                yield _span(text, start, reached)
                if reached == stop:
                    return
                shared = edges.last_within(last, -self.overlap, 0)
                first = edges.between_words(max(first + 1, shared), self._slack(room), first + 1)
                begin = int(edges.characters[first])

    def _slack(self, room: int) -> int:
        """Tokens by which a cut may come earlier, to fall between words."""
        return (room - self.overlap) // 2

    def _last(
        self, text: str, head: str, edges: TextEdges, first: int, reached: int, room: int
    ) -> int | None:
        """The edge with which the window from `first` on ends; None where none beyond `reached` fits."""
        start, least = int(edges.characters[first]), max(first + 1, edges.next_beyond(reached))
        if least >= len(edges.characters):
            return None
        last = max(least, edges.last_within(first, room, MOST_CHARACTERS - len(head)))
        if not (edges.whole and last == len(edges.characters) - 1):
            last = edges.between_words(last, self._slack(room), least)
        step = 1
        while not self.fits(head + _part(text, start, int(edges.characters[last]))):
            if last == least:
                return None
            last, step = max(least, last - step), 2 * step  # cut, it may have more tokens by itself
        return last

    def _within(self, text: str, head: str, start: int, end: int) -> int:
        """The end of the window from `start` on that holds only a part of what lies before `end`."""
        end = min(end, start + MOST_CHARACTERS - len(head))
        while not self.fits(head + _part(text, start, end)):
            if end == start + 1:
                self._require_room(text, start)
                break
            end = (start + end) // 2
        return end

    def _require_room(self, text: str, position: int) -> None:
        if not self.fits(text[position]):
            count = len(self.tokenizer.spans(text[position]))
            raise TextTooLongError(
                f"the character {text[position]!r} has {count} tokens, and windows of {self.tokens} tokens "
                f"have room for {self.room}: use longer windows, or leave it out"
            )


def _part(text: str, start: int, end: int) -> str:
    return text[start:end].rstrip()


def _span(text: str, start: int, end: int) -> Span:
    return start, start + len(_part(text, start, end))
