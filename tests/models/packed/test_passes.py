"""Packed passes against padded ones, and what they promise: order, one launch ahead, no walk over texts."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tercet.models.batching import PaddedOutputs, pack
from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import EncoderMemoryError
from tercet.models.packed import attention, passes
from tercet.models.packed.bodies import AFTER_PADDING, FROM_ZERO
from tercet.models.packed.build import compiled, packed_passes
from tercet.models.packed.model import PackedModel
from tercet.models.packed.passes import PackedPasses
from tercet.models.packed.recorded import Recordings
from tercet.models.packed.transfers import Transfers
from tercet.models.representations import OUTPUTS, Representations, TokenBatch, offsets_of
from tercet.models.tokenizer import Tokenizer

LENGTHS = (5, 17, 3, 30, 2, 41, 9, 64)
CPU = torch.device("cpu")
LINEAR_GELU = torch.ops.tercet.linear_gelu.default
ModelOf = Callable[..., Any]


@pytest.fixture(scope="module")
def tokenizer(tokenizer_json: bytes) -> Callable[..., Tokenizer]:
    return lambda **settings: Tokenizer(tokenizer_json, EncodingSettings(max_length=64, **settings))


def texts_of(lengths: Sequence[int], seed: int = 1) -> TokenBatch:
    """Random words between CLS and SEP; some words come twice."""
    random = np.random.default_rng(seed)
    ids = [np.concatenate([[2], random.integers(5, 60, length - 2), [3]]) for length in lengths]
    return TokenBatch(
        np.concatenate(ids).astype(np.int32), offsets_of(np.array(lengths)), np.zeros(len(lengths), np.bool_)
    )


@torch.inference_mode()
def padded(model: Any, tokenizer: Tokenizer, batch: TokenBatch) -> Representations:
    """One padded pass under a mask."""
    ids, mask = batch.padded(model.body.config.pad_token_id)
    found = model(torch.from_numpy(ids), torch.from_numpy(mask))
    return pack(batch, PaddedOutputs(*(side.numpy() for side in found)), tokenizer)


def assert_equal(one: Representations, other: Representations, tolerance: float = 1e-5) -> None:
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_allclose(one.dense, other.dense, atol=tolerance)
    np.testing.assert_array_equal(one.colbert.offsets, other.colbert.offsets)
    np.testing.assert_allclose(one.colbert.vectors, other.colbert.vectors, atol=tolerance)
    np.testing.assert_array_equal(one.sparse.indptr, other.sparse.indptr)
    np.testing.assert_array_equal(one.sparse.token_ids, other.sparse.token_ids)
    np.testing.assert_allclose(one.sparse.weights, other.sparse.weights, atol=tolerance)


def exact_and_shared(model: Any, tokenizer: Tokenizer, budget: int) -> tuple[PackedPasses, PackedPasses]:
    """Passes of a CPU, and such as a GPU has: of shared shapes."""
    exact = packed_passes(model, tokenizer, budget)
    assert exact is not None
    return exact, PackedPasses(exact._model, tokenizer, Transfers(CPU), budget, shared_shapes=True)


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FROM_ZERO | AFTER_PADDING))
def test_every_family_equals_its_padded_pass(model_of: ModelOf, tokenizer: Any, family: str) -> None:
    model, batch = model_of(family), texts_of(LENGTHS)
    expected = padded(model, tokenizer(), batch)
    for budget in (1000, 40):
        for each in exact_and_shared(model, tokenizer(), budget):
            assert_equal(each.encode(batch, OUTPUTS), expected)
    assert_equal(padded(model, tokenizer(), batch), expected, 0)  # its padded pass is as it was


@pytest.mark.parametrize("settings", [{"pooling": "mean"}, {"pooling": "last"}, {"mcls_every": 8}])
def test_every_pooling(model_of: ModelOf, tokenizer: Any, settings: Any) -> None:
    model, words, batch = model_of("bert", **settings), tokenizer(**settings), texts_of(LENGTHS)
    expected = padded(model, words, batch)
    for each in exact_and_shared(model, words, 64):
        assert_equal(each.encode(batch, OUTPUTS), expected)


def test_words_of_an_instruction_weigh_nothing(model_of: ModelOf, tokenizer: Any) -> None:
    words = tokenizer(query_instruction="heat ")
    batch = words.tokenize(["wing heat", "wing", "air"], "query")
    model = model_of("bert")
    for each in exact_and_shared(model, words, 100):
        assert_equal(each.encode(batch, OUTPUTS), padded(model, words, batch))


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_what_is_asked_for(model_of: ModelOf, tokenizer: Any, output: Any) -> None:
    found = packed_passes(model_of("bert"), tokenizer(), 50).encode(texts_of(LENGTHS), [output])
    assert [name for name in OUTPUTS if getattr(found, name) is not None] == [output]


def test_half_precision_leaves_as_float16_and_arrives_as_float32(model_of: ModelOf, tokenizer: Any) -> None:
    model, batch = model_of("bert"), texts_of(LENGTHS)
    expected = padded(model, tokenizer(), batch)
    model.body.to(torch.bfloat16)
    exact, _ = exact_and_shared(model, tokenizer(), 100)
    exact._model._vectors = torch.float16
    found = exact.encode(batch, OUTPUTS)
    assert found.colbert is not None
    assert found.colbert.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.colbert.vectors, found.colbert.vectors.astype(np.float16))
    np.testing.assert_allclose(found.dense, expected.dense, atol=0.05)


def test_a_pass_is_launched_before_the_last_one_is_waited_for(
    model_of: ModelOf, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    launch, add = PackedPasses._launch, passes._Gathered.add
    monkeypatch.setattr(
        PackedPasses, "_launch", lambda *given: (happened.append("launch"), launch(*given))[1]
    )
    monkeypatch.setattr(passes._Gathered, "add", lambda *given: (happened.append("wait"), add(*given))[1])
    exact, _ = exact_and_shared(model_of("bert"), tokenizer(), 70)
    exact.encode(texts_of([60, 60, 60]), OUTPUTS)
    assert happened == ["launch", "launch", "wait", "launch", "wait", "wait"]


def test_a_pass_that_does_not_fit_is_encoded_in_halves(
    model_of: ModelOf, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model, batch = model_of("bert"), texts_of([4] * 5 + [6] * 2)
    exact, _ = exact_and_shared(model, tokenizer(), 1000)
    sizes = []

    def bounded(token_ids: Any, *given: Any) -> Any:
        sizes.append(len(token_ids))
        if len(token_ids) > 8:
            raise torch.OutOfMemoryError("no room")
        return exact._model(token_ids, *given)

    with caplog.at_level(logging.WARNING, "tercet"):
        found = PackedPasses(bounded, tokenizer(), Transfers(CPU), 1000).encode(batch, OUTPUTS)
    assert sizes == [32, 12, 4, 8, 20, 8, 12, 6, 6]
    assert "a batch of 7 texts of at most 6 tokens does not fit into memory" in caplog.text
    assert_equal(found, padded(model, tokenizer(), batch))
    with pytest.raises(EncoderMemoryError, match="a text of 9 tokens does not fit"):
        PackedPasses(bounded, tokenizer(), Transfers(CPU), 1000).encode(texts_of([9]), OUTPUTS)


def test_other_errors_are_not_taken_for_lack_of_memory(tokenizer: Any) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("device-side assert triggered")

    with pytest.raises(RuntimeError, match="device-side assert"):
        PackedPasses(broken, tokenizer(), Transfers(CPU), 100).encode(texts_of([4, 5]), OUTPUTS)


def test_recorded_passes(model_of: ModelOf, tokenizer: Any, host_recorder: Any) -> None:
    model, record = model_of("xlm-roberta"), host_recorder()
    exact, _ = exact_and_shared(model, tokenizer(), 100)
    shared = PackedPasses(
        exact._model,
        tokenizer(),
        Transfers(CPU),
        100,
        recordings=Recordings(record, 8),
        shared_shapes=True,
    )
    for seed in range(3):
        batch = texts_of([30, 31, 28, 30, 29, 31], seed)
        assert_equal(shared.encode(batch, OUTPUTS), padded(model, tokenizer(), batch))
    assert record.recorded == 1  # three texts of 96 places each time


def with_states(model: Any, states: Any) -> PackedModel:
    """The same model whose body is something else."""
    return PackedModel(states, model.heads, model._positions, model.special, model._vectors)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "fused"), [("bert", 3), ("xlm-roberta", 3), ("modernbert", 0)])
def test_a_body_compiles_as_a_whole_and_not_for_each_shape(
    model_of: ModelOf, tokenizer: Any, family: str, fused: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of(family, pooling="mean")
    exact, _ = exact_and_shared(model, tokenizer(), 1000)
    graphs = 0

    def counted(graph: Any, inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        assert len(graph.graph.find_nodes(op="call_function", target=LINEAR_GELU)) == fused
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    fast = PackedPasses(
        with_states(exact._model, compiled(exact._model.states, compiler=counted)),
        tokenizer(),
        Transfers(CPU),
        1000,
        shared_shapes=True,
    )
    torch._dynamo.reset()
    for lengths in (LENGTHS, [12, 20], [5] * 30, [60] * 3, [7, 33] * 4, [64]):
        batch = texts_of(lengths)
        assert_equal(fast.encode(batch, OUTPUTS), padded(model, tokenizer(), batch))
    assert "not compiled" not in caplog.text
    assert graphs <= 2  # not one for each shape


@pytest.mark.slow
def test_what_does_not_compile_runs_as_it_is(
    model_of: ModelOf, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("no compiler on this machine")

    model, batch = model_of("bert"), texts_of(LENGTHS)
    exact, _ = exact_and_shared(model, tokenizer(), 1000)
    model_as_it_is = with_states(exact._model, compiled(exact._model.states, compiler=failing))
    slow = PackedPasses(model_as_it_is, tokenizer(), Transfers(CPU), 1000)
    for _ in range(2):
        assert_equal(slow.encode(batch, OUTPUTS), padded(model, tokenizer(), batch))
    assert caplog.text.count("passes are not compiled") == 1


def steps_of(work: Callable[[], object], but: Callable[..., object]) -> int:
    """Steps of the interpreter that work takes, without those within a function."""
    code, steps = but.__code__, 0

    def count(frame: Any, event: str, _: object) -> Any:
        nonlocal steps
        if frame.f_code is code:
            return None
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # what is called where garbage is collected would count
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return steps


@pytest.mark.parametrize("settings", [{}, {"pooling": "mean"}, {"mcls_every": 8}])
def test_no_step_on_the_host_for_a_text_or_a_token(
    model_of: ModelOf, tokenizer: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    # A CPU has no kernel for attention within texts: its walk over them is left out of the count.
    monkeypatch.setattr(attention, "within_texts", one_step)
    exact, _ = exact_and_shared(model_of("xlm-roberta", **settings), tokenizer(**settings), 100_000)
    few, many = texts_of([12] * 3), texts_of([12] * 90 + [40] * 10)
    exact.encode(many, OUTPUTS)
    counts = [steps_of(lambda batch=batch: exact.encode(batch, OUTPUTS), one_step) for batch in (few, many)]
    assert counts[0] > 1000
    assert counts[0] == counts[1]


def one_step(query: torch.Tensor, *_: object) -> torch.Tensor:
    """Attention that looks at nothing."""
    return query
