"""Batches under a token budget, and packing without padding."""

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tercet.models.batching import Adapters, PaddedOutputs, encode_in_batches, pack, plan_batches, plan_passes
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import EncoderInfo
from tercet.models.representations import Output, TokenBatch
from tercet.models.tokenizer import Tokenizer


def test_longest_first_within_the_budget() -> None:
    plan = plan_batches(np.array([3, 10, 4, 9, 2]), 20)
    assert [rows.tolist() for rows in plan] == [[1, 3], [2, 0, 4]]


def test_a_text_beyond_the_budget_goes_alone() -> None:
    assert [rows.tolist() for rows in plan_batches(np.array([50, 1, 1]), 20)] == [[0], [1, 2]]


@pytest.mark.parametrize("budget", [1, 7, 64, 100_000])
def test_every_text_once_and_padding_counted(budget: int) -> None:
    lengths = np.random.default_rng(1).integers(1, 60, 200)
    plan = plan_batches(lengths, budget)
    assert sorted(np.concatenate(plan).tolist()) == list(range(200))
    assert all(len(rows) == 1 or len(rows) * lengths[rows].max() <= budget for rows in plan)


def test_passes_of_texts_in_their_order_are_within_the_budget() -> None:
    offsets = np.array([0, 3, 13, 17, 26, 28])
    assert plan_passes(offsets, 14) == [(0, 2), (2, 4), (4, 5)]
    assert plan_passes(offsets, 28) == [(0, 5)]


def test_a_text_beyond_the_budget_is_a_pass_of_its_own() -> None:
    assert plan_passes(np.array([0, 2, 52, 53, 54]), 10) == [(0, 1), (1, 2), (2, 4)]


def two_texts() -> tuple[TokenBatch, PaddedOutputs]:
    batch = TokenBatch(np.array([2, 8, 9, 3, 2, 3], np.int32), np.array([0, 4, 6]), np.array([False, False]))
    colbert = np.arange(2 * 4 * 2, dtype=np.float32).reshape(2, 4, 2)
    sparse = np.array([[9, 0.5, 0.25, 9], [9, 9, 9, 9]], np.float32)
    return batch, PaddedOutputs(np.eye(2, dtype=np.float32), sparse, colbert)


def test_packing_drops_padding_and_the_first_token(tokenizer_json: bytes) -> None:
    batch, padded = two_texts()
    found = pack(batch, padded, Tokenizer(tokenizer_json, EncodingSettings()))
    assert found.tokens.tolist() == [4, 2]
    assert found.sparse.indptr.tolist() == [0, 2, 2]
    assert found.sparse.token_ids.tolist() == [8, 9]
    assert found.colbert.offsets.tolist() == [0, 3, 4]
    # Text 0 keeps positions 1, 2, 3; text 1 keeps position 1, its last special token.
    np.testing.assert_array_equal(found.colbert.vectors[:, 0], [2, 4, 6, 10])


def test_what_comes_without_padding_is_packed_alike(tokenizer_json: bytes) -> None:
    batch, padded = two_texts()
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings())
    there = np.array([[True] * 4, [True] * 2 + [False] * 2])
    assert padded.sparse is not None
    assert padded.colbert is not None
    packed = PaddedOutputs(padded.dense, padded.sparse[there], padded.colbert[there])
    expected, found = (pack(batch, outputs, tokenizer) for outputs in (padded, packed))
    np.testing.assert_array_equal(found.sparse.weights, expected.sparse.weights)
    np.testing.assert_array_equal(found.colbert.vectors, expected.colbert.vectors)
    assert found.colbert.offsets.tolist() == expected.colbert.offsets.tolist()


def test_the_words_of_an_instruction_weigh_nothing(tokenizer_json: bytes) -> None:
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings(query_instruction="heat "))
    batch = tokenizer.tokenize(["wing heat", "wing"], "query")
    weights = np.array([[9, 0.5, 0.25, 0.75, 9], [9, 0.5, 0.25, 9, 9]], np.float32)
    found = pack(batch, PaddedOutputs(None, weights, np.ones((2, 5, 1), np.float32)), tokenizer)
    heat, wing = tokenizer.tokenize_whole(["heat", "wing"]).token_ids.tolist()
    assert [dict(zip(*map(np.ndarray.tolist, found.sparse.row(row)), strict=True)) for row in range(2)] == [
        {heat: 0.75, wing: 0.25},  # where the text has the word as well, that one weighs
        {wing: 0.25},
    ]
    assert found.colbert.offsets.tolist() == [0, 4, 7]  # they keep their vectors


def test_packing_drops_the_inserted_cls(tokenizer_json: bytes) -> None:
    # Positions 0 and 4 are CLS; 8 would be, but holds the last special token.
    ids = np.array([2, 8, 8, 8, 2, 9, 9, 9, 3], np.int32)
    batch = TokenBatch(ids, np.array([0, 9]), np.array([False]))
    padded = PaddedOutputs(None, None, np.arange(9, dtype=np.float32).reshape(1, 9, 1))
    found = pack(batch, padded, Tokenizer(tokenizer_json, EncodingSettings(mcls_every=4)))
    assert found.colbert.vectors[:, 0].tolist() == [1, 2, 3, 5, 6, 7, 8]


def test_packing_drops_no_token_of_a_text(tokenizer_json: bytes) -> None:
    """Where a tokenizer puts a special token after texts alone."""
    values = json.loads(tokenizer_json)
    template = values["post_processor"]
    template["single"] = [
        part for part in template["single"] if part.get("SpecialToken", {}).get("id") != "[CLS]"
    ]
    tokenizer = Tokenizer(json.dumps(values).encode(), EncodingSettings())
    batch = tokenizer.tokenize(["wing", "wing air"])
    assert batch.lengths.tolist() == [2, 3]
    found = pack(batch, PaddedOutputs(None, None, np.ones((2, 3, 1), np.float32)), tokenizer)
    assert found.colbert.offsets.tolist() == [0, 2, 5]


def test_batches_in_parallel_keep_the_input_order(tokenizer_json: bytes) -> None:
    lengths = np.random.default_rng(4).integers(3, 12, 60)
    rows = [np.full(length, 5 + i % 4, np.int32) for i, length in enumerate(lengths)]
    batch = TokenBatch(
        np.concatenate(rows), np.concatenate([[0], np.cumsum(lengths)]), np.zeros(60, np.bool_)
    )
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings())
    info = EncoderInfo("", "", "", "", 1, 1, 9, 16, "cls")

    def forward(ids: np.ndarray, mask: np.ndarray, outputs: Sequence[Output], _: Adapters) -> PaddedOutputs:
        return PaddedOutputs((ids * mask).sum(1, keepdims=True).astype(np.float32), None, None)

    for pool in (None, ThreadPoolExecutor(4)):
        found = encode_in_batches(batch, ["dense"], 24, tokenizer, info, forward, pool)
        assert found.dense[:, 0].tolist() == [row.sum() for row in rows]
        assert found.tokens.tolist() == lengths.tolist()


@pytest.mark.parametrize(("pads", "expected"), [(True, [[7, 6], [5]]), (False, [[5, 7], [6]])])
def test_texts_stay_in_their_order_without_padding(
    tokenizer_json: bytes, pads: bool, expected: list[list[int]]
) -> None:
    batch = TokenBatch(np.array([5, 7, 7, 6, 6], np.int32), np.array([0, 1, 3, 5]), np.zeros(3, np.bool_))
    info = EncoderInfo("", "", "", "", 1, 1, 9, 16, "cls")
    passes = []

    def forward(ids: np.ndarray, mask: np.ndarray, outputs: Sequence[Output], _: Adapters) -> PaddedOutputs:
        passes.append(ids[:, 0].tolist())
        return PaddedOutputs(ids[:, :1].astype(np.float32), None, None)

    tokenizer = Tokenizer(tokenizer_json, EncodingSettings())
    found = encode_in_batches(batch, ["dense"], 4, tokenizer, info, forward, pads=pads)
    assert passes == expected
    assert found.dense[:, 0].tolist() == [5, 7, 6]


def test_one_batch_stays_on_its_thread_and_several_use_the_pool(tokenizer_json: bytes) -> None:
    batch = TokenBatch(np.array([5, 6, 7], np.int32), np.arange(4), np.zeros(3, np.bool_))
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings())
    info = EncoderInfo("", "", "", "", 1, 1, 9, 16, "cls")
    names: set[str] = set()

    def forward(ids: np.ndarray, mask: np.ndarray, outputs: Sequence[Output], _: Adapters) -> PaddedOutputs:
        names.add(threading.current_thread().name)
        return PaddedOutputs(ids.astype(np.float32), None, None)

    with ThreadPoolExecutor(1, "shared") as pool:
        for budget, expected in ((3, threading.current_thread().name), (1, "shared_0")):
            names.clear()
            encode_in_batches(batch, ["dense"], budget, tokenizer, info, forward, pool)
            assert names == {expected}


def test_a_failing_batch_fails_the_call(tokenizer_json: bytes) -> None:
    def forward(ids: np.ndarray, mask: np.ndarray, outputs: Sequence[Output], _: Adapters) -> PaddedOutputs:
        raise ValueError("not of this shape")

    batch = TokenBatch(np.array([5, 5], np.int32), np.array([0, 1, 2]), np.zeros(2, np.bool_))
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings())
    info = EncoderInfo("", "", "", "", 1, 1, 9, 16, "cls")
    for pool in (None, ThreadPoolExecutor(2)):
        with pytest.raises(ValueError, match="not of this shape"):
            encode_in_batches(batch, ["dense"], 1, tokenizer, info, forward, pool)


@pytest.mark.parametrize("mixes", [True, False])
def test_texts_of_several_adapters(tokenizer_json: bytes, mixes: bool) -> None:
    adapters = ["law", None, "law", "ko", None, "ko"]
    batch = TokenBatch(np.arange(5, 11, dtype=np.int32), np.arange(7), np.zeros(6, np.bool_))
    info = EncoderInfo("", "", "", "", 1, 1, 9, 16, "cls")
    passes = []

    def forward(ids: np.ndarray, mask: np.ndarray, outputs: Sequence[Output], of: Adapters) -> PaddedOutputs:
        passes.append(list(of))
        assert [adapters[row] for row in ids[:, 0] - 5] == list(of)
        return PaddedOutputs(ids.astype(np.float32), None, None)

    found = encode_in_batches(
        batch,
        ["dense"],
        100,
        Tokenizer(tokenizer_json, EncodingSettings()),
        info,
        forward,
        adapters=adapters,
        mixes_adapters=mixes,
    )
    assert found.dense[:, 0].tolist() == [5, 6, 7, 8, 9, 10]
    assert passes == ([adapters] if mixes else [["law"] * 2, [None] * 2, ["ko"] * 2])
