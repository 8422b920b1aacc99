"""Streams: what one call gives, for any texts, in bounded memory, and with nothing left behind."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.models import stream
from tercet.models.encoder import encode
from tercet.models.errors import TextTooLongError, UnsupportedError
from tercet.models.representations import OUTPUTS, Int64, Output, Representations, TokenBatch
from tercet.models.stream import Slicing, ahead, encode_stream, plan_slices
from tests.conftest import TinyEncoder

WORDS = ("tea", "hot", "water", "train", "station", "the", "a", "steam")


def lively() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("encode-stream")]


def small(patched: pytest.MonkeyPatch, window: int = 40, part: int = 12) -> None:
    patched.setattr(stream, "WINDOW_TOKENS", window)
    patched.setattr(stream, "SLICE_TOKENS", part)


def assert_same(one: Representations, other: Representations) -> None:
    assert one.tokens.tolist() == other.tokens.tolist()
    assert one.truncated.tolist() == other.truncated.tolist()
    for side in OUTPUTS:
        assert (getattr(one, side) is None) == (getattr(other, side) is None)
    if one.dense is not None and other.dense is not None:
        np.testing.assert_allclose(one.dense, other.dense, atol=1e-6)
    if one.sparse is not None and other.sparse is not None:
        assert one.sparse.token_ids.tolist() == other.sparse.token_ids.tolist()
        assert one.sparse.indptr.tolist() == other.sparse.indptr.tolist()
    if one.colbert is not None and other.colbert is not None:
        np.testing.assert_allclose(one.colbert.vectors, other.colbert.vectors, atol=1e-6)
        assert one.colbert.offsets.tolist() == other.colbert.offsets.tolist()


drawn_texts = st.lists(st.lists(st.sampled_from((*WORDS, " ", "")), max_size=50).map(" ".join), max_size=40)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=drawn_texts, window=st.integers(1, 400), part=st.integers(1, 100), copies=st.integers(1, 3))
def test_a_stream_is_what_one_call_gives(
    tiny: Any, texts: list[str], window: int, part: int, copies: int
) -> None:
    texts = texts * copies
    with pytest.MonkeyPatch.context() as patched:
        small(patched, window, part)
        found = list(encode_stream(tiny, iter(texts)))
    assert sum(map(len, found)) == len(texts)
    if texts:
        assert_same(Representations.concatenate(found), encode(tiny, texts))
    assert lively() == []


def test_outputs_length_and_type_are_passed_on(tiny: Any) -> None:
    texts = ["tea " * 50, "hot water"]
    (found,) = encode_stream(tiny, texts, "query", ["dense"], max_length=8)
    assert_same(found, encode(tiny, texts, "query", ["dense"], max_length=8))
    assert found.truncated.tolist() == [True, False]
    with pytest.raises(UnsupportedError, match="max_length is 1"):
        encode_stream(tiny, texts, max_length=1)


def test_only_two_windows_are_read_ahead(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    read = []

    def texts() -> Iterator[str]:
        for number in range(10_000):
            read.append(number)
            yield "hot tea"  # 4 estimated tokens: 10 to a window

    with_one = encode_stream(tiny, texts())
    assert len(next(with_one)) == 10
    assert len(read) <= 10 * 4
    with_one.close()
    assert lively() == []


def test_a_stream_that_is_left_leaves_no_thread(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    for _encoded in encode_stream(tiny, ["hot tea"] * 100):
        assert lively()
        break
    assert lively() == []


def test_what_a_text_raises_ends_the_stream(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)

    def texts() -> Iterator[str]:
        yield from ["hot tea"] * 50
        raise OSError("line 51 cannot be read")

    with pytest.raises(OSError, match="line 51"):
        list(encode_stream(tiny, texts()))
    assert lively() == []


def test_a_text_that_is_too_long_is_named_by_its_place(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    texts = ["hot tea"] * 57 + ["tea " * 100] + ["hot tea"] * 9
    with pytest.raises(TextTooLongError, match="text 57 has more than 32 tokens"):
        list(encode_stream(tiny, texts, truncate=False, known=lambda text: None))
    known = encode(tiny, ["hot tea"])
    with pytest.raises(TextTooLongError, match="text 57 has more than 32 tokens"):
        list(encode_stream(tiny, texts, truncate=False, known={"hot tea": known}.get))
    assert lively() == []


def test_what_is_known_is_not_encoded_again(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    texts = [f"{WORDS[n % 5]} {WORDS[n % 3]}" for n in range(60)]
    asked: list[int] = []

    class Counting(type(tiny)):  # type: ignore[misc]
        def encode_tokens(self, batch: Any, *rest: Any) -> Representations:
            asked.append(len(batch))
            found: Representations = super().encode_tokens(batch, *rest)
            return found

    known = {text: encode(tiny, [text]) for text in texts[:2]}
    found = Representations.concatenate(list(encode_stream(Counting(), texts, known=known.get)))
    assert_same(found, encode(tiny, texts))
    assert sum(asked) == sum(text not in known for text in texts)


def test_each_text_is_told_once_with_what_it_became(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    texts = [" ".join(WORDS[: n * 5 % 8]) for n in range(50)]
    told: dict[int, int] = {}

    def watch(places: Int64, part: Representations) -> None:
        assert not set(told) & set(places.tolist())
        told.update(zip(places.tolist(), part.tokens.tolist(), strict=True))

    list(encode_stream(tiny, texts, watch=watch))
    assert [told[place] for place in range(50)] == encode(tiny, texts).tokens.tolist()

    def refuse(_places: Int64, _part: Representations) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        list(encode_stream(tiny, texts, watch=refuse))
    assert lively() == []


def test_the_next_is_in_work_while_the_caller_has_one() -> None:
    """Without that, each of the two waits could not end."""
    begun = [threading.Event() for _ in range(5)]

    def work(number: int) -> int:
        begun[number].set()
        return number

    for number in ahead(work, range(5), 1):
        assert begun[min(number + 1, 4)].wait(10)


def test_leaving_calls_off_what_is_in_work() -> None:
    left, called_off = threading.Event(), []

    def work(number: int) -> int:
        if number > 0:
            called_off.append(left.wait(60))
        return number

    results = ahead(work, range(9), 2, left.set)
    assert next(results) == 0
    results.close()
    assert left.is_set()
    assert all(called_off)


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 120), st.booleans())
def test_slices_hold_each_text_once_and_about_as_many_tokens(
    lengths: list[int], tokens: int, by_length: bool
) -> None:
    counted = np.array(lengths, np.int64)
    slices = plan_slices(counted, Slicing(1000, tokens, by_length))
    order = np.concatenate([np.zeros(0, np.int64), *slices])
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert (np.diff(counted[order] if by_length else order) >= 0).all()
    assert all(int(counted[rows].sum()) < tokens + 2 * 50 for rows in slices)


class PackingEncoder(TinyEncoder):
    """One that says it does not pad; `asked` has the lengths of each call's texts."""

    pads = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[int]] = []

    def encode_tokens(
        self, batch: TokenBatch, outputs: Sequence[Output] = OUTPUTS, adapters: Any = None
    ) -> Representations:
        self.asked.append(batch.lengths.tolist())
        return super().encode_tokens(batch, outputs, adapters)


def test_texts_stay_in_their_order_where_passes_do_not_pad(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(stream, "SLICES_AT_ONCE", 1)
    encoder = PackingEncoder()
    lengths = [9, 1, 5, 2, 7, 3] * 4
    texts = ["tea " * length for length in lengths]
    found = list(encode_stream(encoder, texts))
    assert [length for part in encoder.asked for length in part] == [length + 2 for length in lengths]
    assert_same(Representations.concatenate(found), encode(TinyEncoder(), texts))


def test_a_slice_is_given_when_it_is_there_where_passes_do_not_pad(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)  # a window of 24 estimated tokens, in slices of 12
    texts = ["tea " * length for length in (3, 1, 4, 1, 5, 2) * 4]
    alone = list(encode_stream(PackingEncoder(), texts))
    assert max(map(len, alone)) < len(texts) / 4
    known = encode(TinyEncoder(), texts[:2])
    kept = {text: known.take(np.array([row])) for row, text in enumerate(texts[:2])}
    beside_known = list(encode_stream(PackingEncoder(), texts, known=kept.get))
    assert len(beside_known) < len(alone)  # a window whose texts are partly known is given whole
    for found in (alone, beside_known):
        assert_same(Representations.concatenate(found), encode(TinyEncoder(), texts))


class LargePasses(PackingEncoder):
    pass_tokens = 1000


def test_an_encoder_of_large_passes_is_given_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    encoder = LargePasses()
    list(encode_stream(encoder, ["tea " * 5] * 60))
    assert list(map(len, encoder.asked)) == [60]
