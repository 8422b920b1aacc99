"""Requests encoded slice by slice."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.models.representations import Representations
from tercet.service.encoding import slices
from tercet.service.encoding.service import LocalEncoding
from tercet.service.encoding.slices import encode_slices, plan_slices
from tercet.service.exceptions import OverloadedError, RequestTooLargeError
from tercet.service.load.pools import Pool

TEXTS = [" ".join(["tea"] * (1 + number % 20)) for number in range(60)]


class Watched(LocalEncoding):
    """Counts the texts of calls that have begun and those that have ended; refuses some calls."""

    def __init__(self, encoder: Any) -> None:
        super().__init__(encoder, batch_tokens=16, queue_tokens=4096)
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.cancelled = False
        self.refusals: list[float | None] = []  # seconds to wait, of the next calls; None: no refusal

    async def encode(self, texts: Sequence[str], *given: Any, **options: Any) -> Representations:
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            raise OverloadedError("full", refusal, "worker")
        self.begun.append(len(texts))
        try:
            representations = await super().encode(texts, *given, **options)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        self.ended.append(len(texts))
        return representations


@pytest.fixture
async def encoding(tiny: Any) -> AsyncGenerator[Watched]:
    watched = Watched(tiny)
    yield watched
    await watched.close()


async def test_windows_together_are_the_whole(encoding: Watched, pool: Pool, tiny: Any) -> None:
    found = [part async for part in encode_slices(encoding, pool, TEXTS, request_tokens=10_000)]
    assert len(found) > 5
    assert all(int(part.tokens.sum()) <= encoding.slice_tokens for part in found)
    assert np.allclose(Representations.concatenate(found).dense, encode(tiny, TEXTS).dense, atol=1e-6)


@pytest.mark.slow
async def test_one_window_and_no_more_is_encoded_ahead(encoding: Watched, pool: Pool) -> None:
    given = 0
    async for _ in encode_slices(encoding, pool, TEXTS, request_tokens=10_000):
        given += 1
        await asyncio.sleep(0.05)  # longer than a slice takes
        assert len(encoding.ended) <= given + 1
    assert len(encoding.begun) == given


async def test_texts_that_were_counted_are_not_tokenized_again(
    encoding: Watched, pool: Pool, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many characters may be few tokens, which only the tokenizer can tell."""
    texts, calls = ["tea " + " " * 60] * 3, 0
    tokenize = encoding.tokenizer.tokenize

    def counted(*given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return tokenize(*given, **options)

    monkeypatch.setattr(encoding.tokenizer, "tokenize", counted)
    assert sum(map(len, texts)) > encoding.slice_tokens
    (found,) = [part async for part in encode_slices(encoding, pool, texts, request_tokens=10_000)]
    assert calls == 1
    assert np.allclose(found.dense, encode(tiny, texts).dense, atol=1e-6)


async def test_few_short_texts_are_one_call(encoding: Watched, pool: Pool) -> None:
    assert (
        len([each async for each in encode_slices(encoding, pool, ["tea", "hot"], request_tokens=100)]) == 1
    )
    assert encoding.begun == [2]


async def test_too_many_tokens_are_refused_before_any_work(encoding: Watched, pool: Pool) -> None:
    with pytest.raises(RequestTooLargeError, match="at most 100 at once"):
        await anext(encode_slices(encoding, pool, TEXTS, request_tokens=100))
    assert not encoding.begun


async def test_only_the_first_window_is_refused_when_the_queue_is_full(encoding: Watched, pool: Pool) -> None:
    encoding.refusals = [1]
    with pytest.raises(OverloadedError):
        await anext(encode_slices(encoding, pool, TEXTS, request_tokens=10_000))
    encoding.refusals = [None, 0.01, 0.01]
    found = [part async for part in encode_slices(encoding, pool, TEXTS, request_tokens=10_000)]
    assert sum(map(len, found)) == len(TEXTS)


async def test_patience_ends(encoding: Watched, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "PATIENCE_SECONDS", 0.01)
    encoding.refusals = [None, 60]
    with pytest.raises(OverloadedError):
        async for _ in encode_slices(encoding, pool, TEXTS, request_tokens=10_000):
            pass


async def test_a_caller_that_leaves_ends_the_work_ahead(held: Any, pool: Pool) -> None:
    encoding = Watched(held)
    async with aclosing(encode_slices(encoding, pool, TEXTS, request_tokens=10_000)) as found:
        await anext(found)
        held.gate.clear()
        await asyncio.sleep(0)  # in which the work ahead begins
    await asyncio.sleep(0.01)
    held.gate.set()
    await encoding.close()
    assert encoding.cancelled
    assert len(encoding.begun) == 2


def test_the_plan_of_windows_by_hand() -> None:
    def plan(*lengths: int) -> list[tuple[int, int]]:
        return [(span.start, span.stop) for span in plan_slices(np.array(lengths), 10)]

    assert plan(3) == [(0, 1)]
    assert plan(5, 5, 1) == [(0, 2), (2, 3)]
    assert plan(4, 7, 30, 1) == [(0, 1), (1, 2), (2, 3), (3, 4)]
