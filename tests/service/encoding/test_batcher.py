"""Batches under a budget, in turns, with an answer for every waiter."""

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from tercet.models.errors import EncoderMemoryError, UnsoundRepresentationsError
from tercet.models.representations import (
    OUTPUTS,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
    TokenVectors,
    offsets_of,
)
from tercet.service.encoding.batcher import Batcher
from tercet.service.exceptions import NotReadyError, OverloadedError, RequestTooLargeError
from tercet.service.load.pools import text_pool

POOL = text_pool()


def texts(*contents: Sequence[int]) -> TokenBatch:
    """A batch whose texts have these token ids."""
    return TokenBatch(
        np.concatenate([np.array(ids, np.int32) for ids in contents]),
        offsets_of(np.array([len(ids) for ids in contents])),
        np.zeros(len(contents), np.bool_),
    )


class Counter:
    """Encodes a text to numbers that can be checked: its sum, its ids, one vector per token.

    Remembers its batches. Holds each batch until `gate` is set; fails on token 13, and on 17
    for want of memory.
    """

    def __init__(self, *, held: bool = False) -> None:
        self.threads: list[threading.Thread] = []
        self.batches: list[list[list[int]]] = []
        self.adapters: list[list[str | None]] = []
        self.gate = threading.Event()
        self.started = threading.Event()
        if not held:
            self.gate.set()

    def __call__(
        self, tokens: TokenBatch, outputs: Sequence[Output], adapters: Sequence[str | None]
    ) -> Representations:
        self.threads.append(threading.current_thread())
        self.adapters.append(list(adapters))
        rows = [tokens.take(np.array([row])).token_ids for row in range(len(tokens))]
        self.batches.append([row.tolist() for row in rows])
        self.started.set()
        assert self.gate.wait(60)
        if 13 in tokens.token_ids:
            raise ValueError("token 13 cannot be encoded")
        if 17 in tokens.token_ids:
            raise EncoderMemoryError("a text does not fit")
        if 19 in tokens.token_ids:
            raise UnsoundRepresentationsError("a vector is NaN")
        return Representations(
            tokens.lengths,
            tokens.truncated,
            np.array([[row.sum()] for row in rows], np.float32) if "dense" in outputs else None,
            SparseRows(tokens.offsets, tokens.token_ids, tokens.token_ids.astype(np.float32))
            if "sparse" in outputs
            else None,
            TokenVectors(tokens.token_ids[:, None].astype(np.float32), tokens.offsets)
            if "colbert" in outputs
            else None,
        )


async def running(batcher: Batcher, encoder: Counter) -> asyncio.Task[Representations]:
    """A request that occupies the encoder until its gate opens."""
    first = asyncio.create_task(batcher.submit(texts([1])))
    await asyncio.to_thread(encoder.started.wait, 60)
    return first


async def test_answers_are_in_the_callers_order_whatever_the_batches() -> None:
    encoder = Counter()
    batcher = Batcher(encoder, POOL, batch_tokens=4, queue_tokens=100)
    answer = await batcher.submit(texts([1], [2, 3, 4], [5, 6], [7]))
    await batcher.close()
    assert answer.dense is not None
    assert answer.sparse is not None
    assert answer.colbert is not None
    assert answer.dense[:, 0].tolist() == [1, 9, 11, 7]
    assert answer.sparse.row(1)[0].tolist() == [2, 3, 4]
    assert answer.colbert.row(2).tolist() == [[5], [6]]
    assert answer.tokens.tolist() == [1, 3, 2, 1]
    assert encoder.batches == [[[2, 3, 4]], [[5, 6], [1], [7]]]


async def test_requests_that_wait_share_a_batch_and_get_only_their_outputs() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=100, queue_tokens=100)
    first = await running(batcher, encoder)
    others = [
        asyncio.create_task(batcher.submit(texts([2]), ["dense"])),
        asyncio.create_task(batcher.submit(texts([3]), ["sparse"])),
    ]
    await asyncio.sleep(0)
    encoder.gate.set()
    await first
    dense, sparse = [await other for other in others]
    await batcher.close()
    assert encoder.batches == [[[1]], [[2], [3]]]
    assert dense.dense is not None
    assert dense.sparse is None
    assert dense.colbert is None
    assert sparse.sparse is not None
    assert sparse.dense is None


async def test_texts_of_several_adapters_share_a_batch() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=100, queue_tokens=100)
    first = await running(batcher, encoder)
    law = asyncio.create_task(batcher.submit(texts([2], [3, 3]), OUTPUTS, "law"))
    base = asyncio.create_task(batcher.submit(texts([4])))
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(first, law, base)
    await batcher.close()
    assert encoder.batches == [[[1]], [[3, 3], [2], [4]]]
    assert encoder.adapters == [[None], ["law", "law", None]]
    assert (await law).tokens.tolist() == [1, 2]


async def test_a_short_request_overtakes_a_long_one() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=4, queue_tokens=1000)
    first = await running(batcher, encoder)
    long = asyncio.create_task(batcher.submit(texts(*[[5, 5]] * 50)))
    await asyncio.sleep(0)
    short = asyncio.create_task(batcher.submit(texts([7])))
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(first, long, short)
    await batcher.close()
    assert encoder.batches[1:3] == [[[7]], [[5, 5], [5, 5]]]
    assert len((await long).tokens) == 50


async def test_a_text_over_the_budget_is_a_batch_of_its_own() -> None:
    encoder = Counter()
    batcher = Batcher(encoder, POOL, batch_tokens=2, queue_tokens=100)
    await batcher.submit(texts([1], [1, 2, 3, 4, 5]))
    await batcher.close()
    assert encoder.batches == [[[1, 2, 3, 4, 5]], [[1]]]


async def test_a_full_queue_refuses_one_text_and_many_alike() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=10, queue_tokens=10)
    first = await running(batcher, encoder)
    second = asyncio.create_task(batcher.submit(texts([2] * 8)))
    await asyncio.sleep(0)
    assert batcher.pending_tokens == 9
    with pytest.raises(OverloadedError, match="9 tokens wait") as one:
        await batcher.submit(texts([1, 2]))
    with pytest.raises(OverloadedError):
        await batcher.submit(texts([1], [2], [3]))
    assert one.value.retry_after_seconds >= 1
    encoder.gate.set()
    await asyncio.gather(first, second)
    assert batcher.pending_tokens == 0
    await batcher.submit(texts([1] * 10))
    await batcher.close()


async def test_what_never_fits_is_too_large_rather_than_overloaded() -> None:
    batcher = Batcher(Counter(), POOL, batch_tokens=10, queue_tokens=10)
    with pytest.raises(RequestTooLargeError, match=r"11 tokens.*at most 10"):
        await batcher.submit(texts([1] * 11))
    await batcher.close()


async def test_a_departed_client_is_not_encoded() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=10, queue_tokens=100)
    first = await running(batcher, encoder)
    departed = asyncio.create_task(batcher.submit(texts([2, 2])))
    stays = asyncio.create_task(batcher.submit(texts([3])))
    await asyncio.sleep(0)
    departed.cancel()
    await asyncio.sleep(0)
    assert batcher.pending_tokens == 2
    encoder.gate.set()
    await asyncio.gather(first, stays)
    await batcher.close()
    assert encoder.batches == [[[1]], [[3]]]


async def test_a_failing_batch_answers_every_waiter_and_the_next_one_works() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=4, queue_tokens=100)
    first = await running(batcher, encoder)
    failing = [
        asyncio.create_task(batcher.submit(texts([13], [5, 5]))),
        asyncio.create_task(batcher.submit(texts([6]))),
        asyncio.create_task(batcher.submit(texts([4, 13, 4], [13, 13, 13, 13]))),
    ]
    await asyncio.sleep(0)
    encoder.gate.set()
    await first
    outcomes = await asyncio.gather(*failing, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["token 13 cannot be encoded"] * 3
    assert encoder.batches == [[[1]], [[5, 5], [13], [6]], [[13, 13, 13, 13]]]  # the rest of it is dropped
    assert batcher.pending_tokens == 0
    assert (await batcher.submit(texts([6]))).tokens.tolist() == [1]
    await batcher.close()


@pytest.mark.parametrize(("token", "error"), [(17, EncoderMemoryError), (19, UnsoundRepresentationsError)])
async def test_a_text_for_which_memory_does_not_suffice_fails_its_own_request_alone(
    token: int, error: type[Exception]
) -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=100, queue_tokens=1000)
    first = await running(batcher, encoder)
    waiting = [asyncio.create_task(batcher.submit(texts(ids))) for ids in ([2, 3], [token], [4])]
    await asyncio.sleep(0)
    encoder.gate.set()
    good, bad, other = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(bad, error)
    assert (good.dense[0, 0], other.dense[0, 0]) == (5, 4)
    await first
    assert sorted(encoder.batches[1]) == [[2, 3], [4], [token]]
    assert sorted(encoder.batches[2:]) == [[[2, 3]], [[4]], [[token]]]
    assert batcher.pending_tokens == 0
    await batcher.close()


async def test_a_panic_of_the_encoder_is_answered_and_the_next_batch_works() -> None:
    class Panic(BaseException):
        """As compiled code raises it."""

    encoder = Counter()

    def encode(
        tokens: TokenBatch, outputs: Sequence[Output], adapters: Sequence[str | None]
    ) -> Representations:
        if 7 in tokens.token_ids:
            raise Panic("out of bounds")
        return encoder(tokens, outputs, adapters)

    batcher = Batcher(encode, POOL, batch_tokens=3, queue_tokens=100)
    with pytest.raises(RuntimeError, match="out of bounds"):
        await batcher.submit(texts([7]))
    assert (await batcher.submit(texts([6]))).tokens.tolist() == [1]
    await batcher.close()


async def test_closing_finishes_what_was_accepted() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=1, queue_tokens=100)
    first = await running(batcher, encoder)
    waiting = [asyncio.create_task(batcher.submit(texts([n]))) for n in range(5)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    with pytest.raises(NotReadyError):
        await batcher.submit(texts([1]))
    encoder.gate.set()
    await closing
    assert first.done()
    assert [len(answer) for answer in await asyncio.gather(*waiting)] == [1] * 5


async def test_many_random_requests_get_their_own_answers() -> None:
    random = np.random.default_rng(7)
    batcher = Batcher(Counter(), POOL, batch_tokens=50, queue_tokens=100_000)
    requests = [
        texts(*[random.integers(20, 1000, random.integers(1, 12)) for _ in range(random.integers(1, 20))])
        for _ in range(60)
    ]
    answers = await asyncio.gather(*(batcher.submit(request, OUTPUTS) for request in requests))
    await batcher.close()
    for request, answer in zip(requests, answers, strict=True):
        assert answer.sparse is not None
        assert np.array_equal(answer.sparse.token_ids, request.token_ids)
        assert np.array_equal(answer.tokens, request.lengths)
    assert batcher.pending_tokens == 0
