"""A request of many texts, encoded slice by slice, so that its size takes no memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import numpy as np

from tercet.models.representations import Int64, Representations, TokenBatch
from tercet.service.encoding.options import DOCUMENTS, TextOptions
from tercet.service.encoding.service import EncodingService, estimated_tokens
from tercet.service.exceptions import OverloadedError, RequestTooLargeError
from tercet.service.load.admission import Ticket
from tercet.service.load.deadlines import NO_DEADLINE
from tercet.service.load.pools import Pool

PATIENCE_SECONDS = 120.0  # for slices after the first, while others fill the queue
FRAME_TOKENS = 8  # a generous count of the special tokens around a text
EMBED_REMEDY = "(setting max_request_tokens): split the request, or shorten its texts with max_length"

Encode = Callable[[Sequence[str], TokenBatch], Awaitable[Representations]]


async def encode_slices(
    encoding: EncodingService,
    pool: Pool,
    texts: Sequence[str],
    options: TextOptions = DOCUMENTS,
    *,
    request_tokens: int,
    remedy: str = EMBED_REMEDY,
    ticket: Ticket | None = None,
) -> AsyncGenerator[Representations]:
    """Representations of at least one text, in order, as consecutive slices.

    One slice is encoded while the caller works on the one before it, and no more. All that a request can be
    refused for is found before the first slice is given, but an encoder may fail at any of them.
    pool: where many texts are counted; remedy: what to do about too many tokens; ticket: as for
    `EncodingService.encode`.
    Raises RequestTooLargeError for more than `request_tokens`, and what `EncodingService.encode` raises.
    """
    ticket = Ticket() if ticket is None else ticket

    async def encode(part: Sequence[str], tokens: TokenBatch | None = None) -> Representations:
        return await encoding.encode(part, options, ticket=ticket, tokens=tokens)

    slice_tokens = min(encoding.slice_tokens, request_tokens)
    if sum(len(text) + FRAME_TOKENS for text in texts) <= slice_tokens:
        yield await encode(texts)
        return
    encoding.require_room(estimated_tokens(texts), ticket.deadline)
    batch = await pool.run(options.tokenize, encoding.tokenizer, texts)
    tokens = len(batch.token_ids)
    if tokens > request_tokens:
        raise RequestTooLargeError(
            f"the request has {tokens} tokens and this server takes at most {request_tokens} at once {remedy}"
        )
    spans = plan_slices(batch.lengths, slice_tokens)
    if len(spans) == 1:
        yield await encode(texts, batch)
        return
    sizes = [int(batch.lengths[span].sum()) for span in spans]
    parts = [batch.take(np.arange(span.start, span.stop)) for span in spans]
    ticket.later_tokens = sum(sizes[1:])
    ahead = asyncio.ensure_future(encode(texts[: spans[0].stop], parts[0]))
    try:
        for span, size, part in zip(spans[1:], sizes[1:], parts[1:], strict=True):
            encoded = await ahead
            ticket.later_tokens -= size
            ticket.deadline = NO_DEADLINE  # an answer that has begun is finished
            ahead = asyncio.ensure_future(_encode_patiently(encode, texts[span], part))
            yield encoded
            del encoded
        yield await ahead
    finally:
        ahead.cancel()  # of use only where the caller left


def plan_slices(lengths: Int64, tokens: int) -> list[slice]:
    """Consecutive texts of at most this many tokens together; a longer text is a slice of its own."""
    spans: list[slice] = []
    start = size = 0
    for row, length in enumerate(lengths.tolist()):
        if size + length > tokens and row > start:
            spans.append(slice(start, row))
            start, size = row, 0
        size += length
    return [*spans, slice(start, len(lengths))]


async def _encode_patiently(encode: Encode, texts: Sequence[str], tokens: TokenBatch) -> Representations:
    """Waits where workers elsewhere have no room: an answer that has begun cannot be refused any more."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await encode(texts, tokens)
        except OverloadedError as error:
            if time.monotonic() + error.retry_after_seconds > give_up:
                raise
            await asyncio.sleep(error.retry_after_seconds)
