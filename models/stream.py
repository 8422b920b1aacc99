"""Any number of texts to representations, in order and in bounded memory.

Texts are read in windows, and those of a window encoded in slices: of texts of like length where passes pad,
else as the texts come; then windows are small, and each slice is given as soon as it is there. While slices
are encoded in threads, another one tokenizes the next window, and whoever asks works on what came before. Two
windows and their representations are held at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tercet.models.encoder import Encoder, EncoderInfo, encode_tokens
from tercet.models.representations import OUTPUTS, InputType, Int64, Output, Representations
from tercet.models.texts.groups import groups
from tercet.models.tokenizer import too_long

WINDOW_TOKENS = 65_536
WINDOW_VECTOR_BYTES = 64 * 2**20
SLICE_TOKENS = 4096
SLICES_AT_ONCE = 2  # the end of one, where a thread has nothing left to do, lies within the next

Item = TypeVar("Item")
Result = TypeVar("Result")

EncodeRows = Callable[[Int64], Representations]
Prepare = Callable[[Sequence[str], Int64], tuple[Int64, EncodeRows]]
"""Texts, and their numbers in the stream int64[B], to their lengths in tokens int64[B], and what encodes some
of them, by their rows."""
Known = Callable[[str], Representations | None]
Watch = Callable[[Int64, Representations], None]


def encode_stream(
    encoder: Encoder,
    texts: Iterable[str],
    input_type: InputType = "document",
    outputs: Sequence[Output] = OUTPUTS,
    *,
    max_length: int | None = None,
    truncate: bool = True,
    known: Known = lambda _: None,
    watch: Watch = lambda _numbers, _encoded: None,
) -> Generator[Representations]:
    """As `tercet.models.encoder.encode`, for any number of texts: representations of consecutive ones, in
    order.

    texts: read in the caller's thread, a window ahead. known: representations that a text has already, which
    is not encoded then. watch: is told, in the caller's thread, the numbers in the stream int64[B] of texts
    as they are encoded, which is not in order; what it raises ends the stream. Leaving the iterator ends all
    threads.
    Raises as `encode`; the error of a text that is too long names its number in the stream.
    """
    tokenizer = encoder.tokenizer
    limit = tokenizer.length_limit(max_length)

    def prepare(window: Sequence[str], numbers: Int64) -> tuple[Int64, EncodeRows]:
        batch = tokenizer.tokenize(window, input_type, max_length=max_length)
        if not truncate and batch.truncated.any():
            raise too_long(int(numbers[batch.truncated.argmax()]), limit)
        return batch.lengths, lambda rows: encode_tokens(encoder, batch.take(rows), outputs)

    window = window_tokens(encoder.info) if encoder.pads else 2 * SLICE_TOKENS
    slicing = Slicing(
        max(window, encoder.pass_tokens), max(SLICE_TOKENS, encoder.pass_tokens), by_length=encoder.pads
    )
    return encode_windows(texts, prepare, slicing, SLICES_AT_ONCE, known=known, watch=watch)


@dataclass(frozen=True, slots=True)
class Slicing:
    """About how many tokens a window has, and how many a slice of it at most. by_length: whether slices are
    made of texts of like length.
    """

    window_tokens: int
    slice_tokens: int = SLICE_TOKENS
    by_length: bool = True


def window_tokens(info: EncoderInfo) -> int:
    """Tokens of one window, so that its token vectors stay within a fixed number of bytes."""
    vectors = WINDOW_VECTOR_BYTES // (4 * max(1, info.colbert_dimension))
    return max(1, min(WINDOW_TOKENS, vectors))


def encode_windows(
    texts: Iterable[str],
    prepare: Prepare,
    slicing: Slicing,
    slices_at_once: int,
    *,
    known: Known,
    watch: Watch,
    abandon: Callable[[], None] = lambda: None,
) -> Generator[Representations]:
    """Representations of consecutive texts: those of a slice, or of a window whose slices are by length, or
    some texts of which are known.

    prepare: runs in one thread, what it returns in `slices_at_once`; abandon: is called before those are
    waited for where the caller leaves; the others as for `encode_stream`.
    """

    def prepared(numbered: tuple[int, list[str]]) -> list[_Slice]:
        return _slices(*numbered, prepare, slicing, known)

    with closing(ahead(prepared, _numbered(groups(texts, str, slicing.window_tokens)), 1)) as windows:
        slices = (part for window in windows for part in window)
        with closing(ahead(_encoded, slices, slices_at_once, abandon)) as done:
            rows: list[Int64] = []
            parts: list[Representations] = []
            for part, encoded in done:
                watch(part.first + part.rows, encoded)
                rows.append(part.rows)
                parts.append(encoded)
                if part.completes:
                    whole = Representations.concatenate(parts).in_order(np.concatenate(rows))
                    rows, parts = [], []
                    yield whole


def ahead(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int,
    abandon: Callable[[], None] = lambda: None,
) -> Generator[Result]:
    """What `work` makes of each item, in order; the next ones are in work while the caller has one.

    Items are read in the caller's thread, `threads` ahead. Leaving waits for those in work and drops others;
    abandon: is called before that.
    """
    pool = ThreadPoolExecutor(threads, "encode-stream")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BaseException:
        abandon()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Texts of a window that are encoded together: their rows int64[R], of a window that begins at `first`.

    completes: whether nothing up to its last text is left to encode after it.
    """

    first: int
    rows: Int64
    encode: Callable[[], Representations]
    completes: bool


def _encoded(part: _Slice) -> tuple[_Slice, Representations]:
    return part, part.encode()


def _numbered(windows: Iterable[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each window with the number of its first text."""
    first = 0
    for window in windows:
        yield first, window
        first += len(window)


def _slices(first: int, texts: list[str], prepare: Prepare, slicing: Slicing, known: Known) -> list[_Slice]:
    known_rows = {row: encoded for row, text in enumerate(texts) if (encoded := known(text)) is not None}
    work: list[tuple[Int64, Callable[[], Representations]]] = []
    if known_rows:
        ready = list(known_rows.values())
        work.append((np.array(list(known_rows), np.int64), lambda: Representations.concatenate(ready)))
    others = np.array([row for row in range(len(texts)) if row not in known_rows], np.int64)
    if len(others):
        lengths, encode = prepare([texts[row] for row in others.tolist()], first + others)
        work += [(others[rows], _call(encode, rows)) for rows in plan_slices(lengths, slicing)]
    in_order = not (known_rows or slicing.by_length)
    return [
        _Slice(first, rows, encode, in_order or number == len(work) - 1)
        for number, (rows, encode) in enumerate(work)
    ]


def _call(encode: EncodeRows, rows: Int64) -> Callable[[], Representations]:
    return lambda: encode(rows)


def plan_slices(lengths: Int64, slicing: Slicing) -> list[Int64]:
    """Rows of each slice: as many tokens as in the others, as near as whole texts come to that; by length the
    shortest texts first.
    """
    order = np.argsort(lengths, kind="stable") if slicing.by_length else np.arange(len(lengths))
    total = int(lengths.sum())
    slices = max(1, -(-total // slicing.slice_tokens))
    edges = np.searchsorted(np.cumsum(lengths[order]), np.arange(1, slices) * total // slices)
    return [rows for rows in np.split(order, np.unique(edges)) if len(rows)]
