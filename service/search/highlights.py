"""Where hits' texts and titles have what a query says: pieces with a lexical weight, and words of its text.

Words are read as BM25 reads them, by their stems and without marks, in collections without BM25, too. What
says little of the query, as "the" does, is left out: pieces with less than LEAST_SHARE of the largest weight
times idf, and words that are made of such pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from tercet.index.bm25.matches import QueryWords
from tercet.index.candidates import Hit
from tercet.index.catalog.settings import CollectionSettings
from tercet.models.representations import Int32, Int64, Representations
from tercet.models.tokenizer import Tokenizer
from tercet.service.collections.readable import Idf
from tercet.service.search.matching_pieces import matching_pieces, without_words

MOST_CHARACTERS = 50_000  # of one text that are read: a twentieth of a second
MOST_OF_ALL = 1_000_000  # of all hits of a query together
MOST_HIGHLIGHTS = 1_000  # of a text
LEAST_SHARE = 0.15
LONGEST_WORD = 128  # that is not cut where a part of a text ends


class Highlight(TypedDict):
    """A part of a text: its first character and its end, in Unicode code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class HitHighlights:
    """What a hit's text and title have of the query, in order and apart."""

    text: list[Highlight]
    title: list[Highlight]


def highlights_of(
    settings: CollectionSettings,
    idf: Idf | None,
    tokenizer: Tokenizer,
    text: str | None,
    query: Representations,
    hits: Sequence[Hit],
) -> list[HitHighlights]:
    """The highlights of a query's hits; `text` is the query's, None where unknown. idf: the collection's.

    Of a long text one part is read, from its beginning or from the beginning of the window that matches best.
    """
    token_ids, faint = _by_weight(query, idf)
    words = None
    if text is not None:
        text = without_words(text, faint, tokenizer)
        words = QueryWords(text, settings.bm25_language)
    finder = _Finder(tokenizer, token_ids, words)
    limit = min(MOST_CHARACTERS, MOST_OF_ALL // max(1, len(hits)))
    highlights = []
    for hit in hits:
        start = 0 if hit.window is None or len(hit.document.text) <= limit else hit.window.start
        title = hit.document.title or ""
        highlights.append(
            HitHighlights(
                finder.highlights(hit.document.text, start, limit), finder.highlights(title, 0, limit)
            )
        )
    return highlights


def _by_weight(query: Representations, idf: Idf | None) -> tuple[Int32, Int32]:
    """The tokens of a query that say much of it, and those that say little: int32[n] each."""
    if query.sparse is None:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    token_ids, weights = query.sparse.row(0)
    said = weights if idf is None else weights * idf.of_terms(token_ids)
    much = said >= LEAST_SHARE * said.max(initial=0)
    return token_ids[much], token_ids[~much]


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds a query's tokens and words in texts."""

    tokenizer: Tokenizer
    token_ids: Int32
    words: QueryWords | None

    def highlights(self, text: str, start: int, limit: int) -> list[Highlight]:
        """The highlights in at most so many characters from a start on."""
        part = _part(text, start, limit)
        parts = [np.empty((0, 2), np.int64)]
        if len(self.token_ids):
            parts.append(matching_pieces(part, self.token_ids, self.tokenizer))
        if self.words is not None:
            parts.append(np.array(self.words.spans(part), np.int64).reshape(-1, 2))
        spans = start + _merged(np.concatenate(parts))[:MOST_HIGHLIGHTS]
        return [Highlight(start=first, end=end) for first, end in spans.tolist()]


def _part(text: str, start: int, limit: int) -> str:
    """So many characters of a text, or a few less where a word would be cut."""
    part = text[start : start + limit]
    if len(text) <= start + limit:
        return part
    blank = part.rfind(" ", limit - LONGEST_WORD)
    return part if blank < 0 else part[:blank]


def _merged(spans: Int64) -> Int64:
    """Spans int64[n, 2] in order, those that overlap or touch as one."""
    if len(spans) < 2:
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reached = np.maximum.accumulate(spans[:, 1])
    begins = np.append(True, spans[1:, 0] > reached[:-1])
    ends = np.append(begins[1:], True)
    return np.stack([spans[begins, 0], reached[ends]], axis=1)
