"""Who waits for the encoder: how long, until when, and who is encoded at once."""

import asyncio
import threading
import time

import pytest

from tercet.models.representations import Representations
from tercet.service.encoding.batcher import Batcher
from tercet.service.exceptions import DeadlineExceededError, OverloadedError
from tercet.service.load.admission import Admission, Ticket
from tercet.service.load.deadlines import Deadline
from tests.service.encoding.test_batcher import POOL, Counter, running, texts


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches take no time, and the first guess of how long they take stands."""

    class Clock:
        def monotonic(self) -> float:
            return 0.0

    monkeypatch.setattr("tercet.service.encoding.batcher.time", Clock())


@pytest.mark.usefixtures("stopped_clock")
async def test_who_would_wait_too_long_is_refused_and_told_when_to_come_again() -> None:
    """The first guess of 2,000 tokens a second stands until a batch is done: 1,000 tokens take 0.5 s."""
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=1000, queue_tokens=100_000, admission=Admission(4))
    whole_queue = asyncio.create_task(batcher.submit(texts(*[[1] * 1000] * 9)))  # idle: whatever fits
    await asyncio.to_thread(encoder.started.wait, 60)
    for large in (texts([1] * 9000), texts(*[[1] * 100] * 90)):  # one text or many
        assert batcher.wait_seconds(9000) == pytest.approx(4.5)
        with pytest.raises(
            OverloadedError, match=r"would wait 4\.5 s; 2\.0 s is this server's limit"
        ) as told:
            await batcher.submit(large)
        assert told.value.retry_after_seconds == pytest.approx(2.5)
        assert told.value.reason == "wait"
    query = asyncio.create_task(batcher.submit(texts([7])))  # overtakes them all
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(whole_queue, query)
    assert batcher.wait_seconds(9000) == 0
    await batcher.close()


async def test_a_batch_that_takes_long_is_expected_to_take_as_long_again() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=10, queue_tokens=100, admission=Admission(0.1))
    first = await running(batcher, encoder)
    await asyncio.sleep(0.25)
    with pytest.raises(OverloadedError):
        await batcher.submit(texts([2]))
    assert batcher.wait_seconds(1) >= 0.25
    encoder.gate.set()
    await first
    assert (await batcher.submit(texts([2]))).tokens.tolist() == [1]
    await batcher.close()


async def test_a_slow_encoder_has_small_batches_so_that_nobody_waits_long_for_one() -> None:
    """A tenth of 20 s is worth 4,000 tokens at the first guess of 2,000 a second, and of 0.1 s the least."""
    for promised_seconds, largest in ((20, 1000), (1.6, 320), (0.1, 256)):
        encoder = Counter()
        admission = Admission(promised_seconds)
        batcher = Batcher(encoder, POOL, batch_tokens=1000, queue_tokens=10_000, admission=admission)
        await batcher.submit(texts(*[[1] * 8] * 200))
        await batcher.close()
        assert sum(map(len, encoder.batches[0])) == largest


async def test_a_request_that_has_begun_is_not_refused_in_a_later_call() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=100, queue_tokens=100, admission=Admission(0.001))
    ticket = Ticket(later_tokens=50)
    first = asyncio.create_task(batcher.submit(texts([1] * 100), ticket=ticket))
    await asyncio.to_thread(encoder.started.wait, 60)
    later = asyncio.create_task(batcher.submit(texts([2] * 50), ticket=ticket))
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await batcher.submit(texts([3]))
    encoder.gate.set()
    assert (await later).tokens.tolist() == [50]
    await first
    await batcher.close()


@pytest.mark.slow
async def test_what_waits_past_its_deadline_is_dropped() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=10, queue_tokens=100)
    first = await running(batcher, encoder)
    late = [
        asyncio.create_task(batcher.submit(texts([2]), ticket=Ticket(Deadline(time.monotonic() + 1.0)))),
        asyncio.create_task(batcher.submit(texts([3]), ticket=Ticket(Deadline(time.monotonic() + 60)))),
    ]
    with pytest.raises(DeadlineExceededError) as told:  # while the encoder is still at work
        await late[0]
    assert told.value.retry_after_seconds > 0
    assert batcher.pending_tokens == 2
    with pytest.raises(DeadlineExceededError):
        await batcher.submit(texts([4]), ticket=Ticket(Deadline(time.monotonic())))
    encoder.gate.set()
    await asyncio.gather(first, late[1])
    await batcher.close()
    assert encoder.batches == [[[1]], [[3]]]


@pytest.mark.usefixtures("stopped_clock")
async def test_a_short_text_that_is_alone_is_encoded_where_it_is_asked_for() -> None:
    encoder = Counter()
    batcher = Batcher(encoder, POOL, batch_tokens=20, queue_tokens=100, encodes_here=True)
    answer = await batcher.submit(texts([1, 2], [3]), ticket=Ticket(alone=True))
    assert answer.dense is not None
    assert answer.dense[:, 0].tolist() == [3, 3]
    with pytest.raises(ValueError, match="token 13"):
        await batcher.submit(texts([13]), ticket=Ticket(alone=True))
    assert encoder.threads == [threading.current_thread()] * 2
    assert batcher.pending_tokens == 0
    await batcher.submit(texts([1]))  # not alone
    await batcher.submit(texts([1]), adapter="adapter", ticket=Ticket(alone=True))
    await batcher.submit(texts([1] * 30), ticket=Ticket(alone=True))  # more than a batch
    await batcher.close()
    assert threading.current_thread() not in encoder.threads[2:]


async def test_a_slow_encoder_and_one_that_may_hang_work_in_their_own_thread() -> None:
    encoder = Counter()
    for encodes_here, tokens in ((False, 1), (True, 12)):  # 12 take 6 ms by the first guess
        batcher = Batcher(encoder, POOL, batch_tokens=20, queue_tokens=100, encodes_here=encodes_here)
        await batcher.submit(texts([1] * tokens), ticket=Ticket(alone=True))
        await batcher.close()
    assert threading.current_thread() not in encoder.threads


async def test_what_comes_beside_a_text_that_is_encoded_at_once_goes_to_the_encoders_thread() -> None:
    encoder = Counter(held=True)
    batcher = Batcher(encoder, POOL, batch_tokens=20, queue_tokens=100, encodes_here=True)

    def alone() -> Representations:
        return asyncio.run(batcher.submit(texts([1]), ticket=Ticket(alone=True)))

    first = asyncio.create_task(asyncio.to_thread(alone))
    await asyncio.to_thread(encoder.started.wait, 60)
    others = [asyncio.create_task(batcher.submit(texts([2]), ticket=Ticket(alone=True))) for _ in range(2)]
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(first, *others)
    await batcher.close()
    assert encoder.batches == [[[1]], [[2], [2]]]
    assert encoder.threads[0] is not encoder.threads[1]
    assert threading.current_thread() not in encoder.threads
