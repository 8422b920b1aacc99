"""Queries that come again: the same bits, no work for the encoder, and no more memory than allowed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.models.encoder import encode
from tercet.models.errors import TextTooLongError
from tercet.models.representations import OUTPUTS, Representations
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.query_cache import ENTRY_BYTES, QueryCache, QueryKey
from tercet.service.encoding.service import LocalEncoding


def same_bits(one: Any, other: Any) -> bool:
    """Whether two records hold the same arrays."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if hasattr(one, "__dataclass_fields__"):
        return all(same_bits(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return bool(one == other)


@dataclass
class Cached:
    """An encoder behind a cache; `counts`: of the texts of each batch that reached it."""

    encoding: LocalEncoding
    cache: QueryCache
    counts: list[int]


@pytest.fixture
async def cached(tiny: Any) -> AsyncIterator[Cached]:
    counts: list[int] = []

    class Counting(type(tiny)):  # type: ignore[misc]
        def encode_tokens(self, batch: Any, *rest: Any) -> Representations:
            counts.append(len(batch))
            found: Representations = super().encode_tokens(batch, *rest)
            return found

    cache = QueryCache(1 << 20)
    encoding = LocalEncoding(Counting(), batch_tokens=64, queue_tokens=4096, cache=cache)
    yield Cached(encoding, cache, counts)
    await encoding.close()


async def test_a_query_that_comes_again_has_the_same_bits(cached: Cached) -> None:
    first = await cached.encoding.encode(["hot tea"], TextOptions("query"))
    again = await cached.encoding.encode(["hot tea"], TextOptions("query"))
    assert same_bits(first, again)
    assert cached.counts == [1]
    assert (cached.cache.hits, cached.cache.misses) == (1, 1)


async def test_of_several_only_new_ones_are_encoded(cached: Cached, tiny: Any) -> None:
    texts = ["hot tea", "the train", "water", "the train"]
    await cached.encoding.encode(texts[1:2], TextOptions("query"))
    found = await cached.encoding.encode(texts, TextOptions("query"))
    assert cached.counts == [1, 2]
    expected = encode(tiny, texts, "query")
    np.testing.assert_allclose(found.dense, expected.dense, atol=1e-6)
    assert found.tokens.tolist() == expected.tokens.tolist()
    assert same_bits(found, await cached.encoding.encode(texts, TextOptions("query")))


async def test_whatever_changes_the_answer_is_part_of_the_key(cached: Cached) -> None:
    encode = cached.encoding.encode
    text = "tea " * 20
    await encode([text], TextOptions("query"))
    cut = await encode([text], TextOptions("query", max_length=8))
    assert cut.truncated.tolist() == [True]
    assert (await encode([text], TextOptions("query", max_length=8))).truncated.tolist() == [True]
    assert (await encode([text], TextOptions("query", ["dense"]))).colbert is None
    with_adapter = await encode([text], TextOptions("query", adapter="law"))
    assert not same_bits(with_adapter.dense, (await encode([text], TextOptions("query"))).dense)
    with pytest.raises(TextTooLongError):
        await encode([text], TextOptions("query", max_length=8, truncate=False))
    assert cached.counts == [1] * 4


async def test_documents_are_not_kept(cached: Cached) -> None:
    for _ in range(2):
        await cached.encoding.encode(["hot tea"])
    assert cached.counts == [1, 1]
    assert (cached.cache.hits, cached.cache.misses, cached.cache.size_bytes) == (0, 0, 0)


def entry(text: str) -> tuple[QueryKey, Representations]:
    dense = np.full((1, 4), len(text), np.float32)
    encoded = Representations(np.ones(1, np.int64), np.zeros(1, np.bool_), dense)
    return QueryKey("f", None, OUTPUTS, None, True, text), encoded


ONE = ENTRY_BYTES + 8 + 1 + 16 + 1  # of a text of one character


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.integers(0, 6))
def test_the_least_recently_used_goes_first(asked: list[str], room: int) -> None:
    cache, expected = QueryCache(room * ONE), list[str]()
    for text in asked:
        key, encoded = entry(text)
        found = cache.get(key)
        assert (found is not None) == (text in expected)
        if found is None:
            cache.put(key, encoded)
        expected = [*(each for each in expected if each != text), text][-room:] if room else []
        assert cache.size_bytes == len(expected) * ONE
    assert cache.hits + cache.misses == len(asked)


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = QueryCache(2 * ONE)
    small, large = entry("a"), entry("x" * 2 * ONE)
    for key, encoded in (small, large):
        cache.put(key, encoded)
    assert cache.get(small[0]) is not None
    assert cache.get(large[0]) is None
    cache.put(*small)  # again: counted once
    assert cache.size_bytes == ONE


async def test_routes_use_it_and_metrics_tell(client: httpx.AsyncClient) -> None:
    async def numbers() -> tuple[float, ...]:
        lines = dict(line.rsplit(" ", 1) for line in (await client.get("/metrics")).text.splitlines())
        names = ('lookups_total{result="hit"}', 'lookups_total{result="miss"}', "bytes")
        return tuple(float(lines[f"tercet_query_cache_{name}"]) for name in names)

    assert await numbers() == (0, 0, 0)
    body = {"collection": "demo", "query": "hot tea"}
    first, again = [(await client.post("/search", json=body)).json()["hits"] for _ in range(2)]
    assert first == again
    hits, misses, size_bytes = await numbers()
    assert (hits, misses) == (1, 1)
    assert size_bytes > 0
    embedded = {"inputs": ["hot tea"], "input_type": "query"}
    assert (await client.post("/embed", json=embedded)).status_code == 200
    await client.post("/embed", json={"inputs": ["hot tea"]})
    assert (await numbers())[:2] == (2, 1)


async def test_none_is_kept_where_none_shall_be(make_client: Any) -> None:
    async with make_client(query_cache_bytes=0) as client:
        for _ in range(2):
            await client.post("/search", json={"collection": "demo", "query": "hot tea"})
        assert 'lookups_total{result="miss"} 0.0' in (await client.get("/metrics")).text
