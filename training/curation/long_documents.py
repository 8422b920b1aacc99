"""Long documents of a file, each with an excerpt at a random place."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tercet.models.tokenizer import Tokenizer, valid_text
from tercet.training.data.documents import PLAIN_SUFFIXES, text_of
from tercet.training.data.pairs import numbered_lines, parse_object, text_digest


@dataclass(frozen=True, slots=True)
class LongDocument:
    """where: file and line number; digest: by which the text is known again; excerpt_tokens: as the tokenizer
    counts.
    """

    where: str
    digest: str
    text: str
    excerpt: str
    excerpt_tokens: int


@dataclass(frozen=True, slots=True)
class DocumentChoice:
    """Documents of at least `least_tokens`, with excerpts of at most `excerpt_tokens`."""

    path: Path
    tokenizer: Tokenizer
    least_tokens: int
    excerpt_tokens: int

    def documents(self) -> Iterator[LongDocument]:
        """The long documents of the file, in order: JSON lines `{"text", "title"?}`, or plain text.

        Raises TrainingDataError naming file and line.
        """
        plain = self.path.name.endswith(PLAIN_SUFFIXES)
        for line, where in numbered_lines(self.path):
            if plain:
                text = line.strip()
            else:
                document = text_of(parse_object(line, where, '"text"'), where)
                text = f"{document.title}\n{document.text}".strip()
            # A token has a character at least, so that short texts need no counting.
            if len(text) < self.least_tokens:
                continue
            spans = self.tokenizer.spans(text)
            if len(spans) >= self.least_tokens:
                digest = text_digest(text)
                tokens = min(self.excerpt_tokens, len(spans))
                # The same excerpt in each run: it is drawn by the text alone.
                first = random.Random(digest).randint(0, len(spans) - tokens)  # noqa: S311  # no secret
                begin, end = int(spans.starts[first]), int(spans.ends[first + tokens - 1])
                excerpt = valid_text(whole_parts(text, begin, end))
                yield LongDocument(where, digest, text, excerpt, tokens)


def whole_parts(text: str, begin: int, end: int) -> str:
    """Part of a text, from the first paragraph or else word that begins in its first half to the last that
    ends in its second.
    """
    middle = (begin + end) // 2
    for mark in ("\n", " "):
        found = text.find(mark, begin - 1, middle) if begin else -1
        if found >= 0:
            begin = found + 1
            break
    for mark in ("\n", " "):
        found = text.rfind(mark, middle, end + 1) if end < len(text) else -1
        if found >= 0:
            end = found
            break
    return text[begin:end].strip()
