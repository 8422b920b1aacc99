"""What every engine promises, on BERT and XLM-RoBERTa alike: torch, onnxruntime in float32 and int8, and
kernels of our own.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tercet.models.encoder import Encoder, encode
from tercet.models.errors import TextTooLongError, UnsupportedError
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS, Output, Representations

TEXTS = [
    "hello world",
    "",
    "wing",
    "the heat of the air, and a wave!",
    "밤하늘의 별 東京",
    "\0",
    "a\ud800b",
    "🙂🙃",
    "word " * 100,
]
FAMILIES = ("bert", "xlmr", "mcls")
ENGINES = ("torch", "float32", "int8", "native")


@dataclass(frozen=True)
class Case:
    """One engine and the float32 reference of the same checkpoint."""

    encoder: Encoder
    reference: Encoder
    precision: str


def one_case(family: str, engine: str) -> object:
    """Each family's graph is exported first, which takes seconds: in the quick tests two of them are."""
    marks = [pytest.mark.slow] if family == "mcls" and engine != "torch" else []
    return pytest.param(f"{family}-{engine}", marks=marks)


@pytest.fixture(
    scope="module", params=[one_case(family, engine) for family in FAMILIES for engine in ENGINES]
)
def case(request: pytest.FixtureRequest) -> Case:
    family, engine = request.param.split("-")
    golden: Path = request.getfixturevalue("golden")
    source = {
        "bert": lambda: request.getfixturevalue("bert"),
        "xlmr": lambda: golden / "checkpoint",
        "mcls": lambda: request.getfixturevalue("bert_mcls"),
    }[family]()
    reference = load_encoder(str(source), "torch", device="cpu")
    if engine == "torch":
        return Case(reference, reference, "torch")
    exported = request.getfixturevalue(f"{family}_exported")
    if engine == "native":
        return Case(load_encoder(str(exported), "native", device="cpu"), reference, "int8")
    return Case(load_encoder(str(exported), "onnxruntime", precision=engine, device="cpu"), reference, engine)


def assert_close(one: Representations, other: Representations, tolerance: float) -> None:
    """Same tokens, and each output within the tolerance; with int8 a weight near 0 may vanish."""
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_array_equal(one.truncated, other.truncated)
    np.testing.assert_allclose(one.dense, other.dense, atol=tolerance)
    np.testing.assert_array_equal(one.colbert.offsets, other.colbert.offsets)
    np.testing.assert_allclose(one.colbert.vectors, other.colbert.vectors, atol=tolerance)
    for row in range(len(one)):
        left = dict(zip(*(array.tolist() for array in one.sparse.row(row)), strict=True))
        right = dict(zip(*(array.tolist() for array in other.sparse.row(row)), strict=True))
        for token in left.keys() | right.keys():
            assert abs(left.get(token, 0.0) - right.get(token, 0.0)) <= tolerance


@pytest.mark.slow
def test_a_text_encodes_alike_alone_and_in_a_batch(case: Case) -> None:
    together = encode(case.encoder, TEXTS)
    alone = Representations.concatenate([encode(case.encoder, [text]) for text in TEXTS])
    assert_close(together, alone, 1e-5)


@pytest.mark.slow
def test_engines_agree(case: Case) -> None:
    # Random weights magnify rounding; a trained model differs less (see the report of an export).
    tolerance = 0.25 if case.precision == "int8" else 2e-5
    assert_close(encode(case.encoder, TEXTS), encode(case.reference, TEXTS), tolerance)


def test_int8_keeps_directions(case: Case) -> None:
    ours, reference = encode(case.encoder, TEXTS), encode(case.reference, TEXTS)
    assert (ours.dense * reference.dense).sum(1).min() > 0.98


def test_shapes_types_and_unit_length(case: Case) -> None:
    found = encode(case.encoder, TEXTS)
    info = case.encoder.info
    assert found.dense.shape == (len(TEXTS), info.dense_dimension)
    assert found.colbert.vectors.shape == (found.colbert.offsets[-1], info.colbert_dimension)
    assert {found.dense.dtype, found.colbert.vectors.dtype, found.sparse.weights.dtype} == {
        np.dtype(np.float32)
    }
    np.testing.assert_allclose(np.linalg.norm(found.dense, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found.colbert.vectors, axis=1), 1, atol=1e-5)
    assert found.sparse.token_ids.dtype == np.int32
    assert (found.sparse.weights > 0).all()
    assert not set(found.sparse.token_ids.tolist()) & case.encoder.tokenizer.special_ids
    for row in range(len(TEXTS)):
        assert (np.diff(found.sparse.row(row)[0]) > 0).all()


def test_an_empty_text_has_its_special_tokens_only(case: Case) -> None:
    found = encode(case.encoder, [""])
    assert found.tokens.tolist() == [2]
    assert len(found.sparse.token_ids) == 0
    assert len(found.colbert.vectors) == 1  # the last special token


def test_no_texts(case: Case) -> None:
    found = encode(case.encoder, [])
    assert len(found) == 0
    assert found.dense.shape == (0, case.encoder.info.dense_dimension)
    assert found.colbert.vectors.shape == (0, case.encoder.info.colbert_dimension)


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_what_is_asked_for(case: Case, output: Output) -> None:
    found = encode(case.encoder, TEXTS, outputs=[output])
    everything = encode(case.encoder, TEXTS)
    assert [name for name in OUTPUTS if getattr(found, name) is not None] == [output]
    # The outputs not asked for are filled in, so that all three can be compared.
    filled = replace(everything, **{output: getattr(found, output)})
    assert_close(filled, everything, 1e-6)


def test_truncation_is_reported_and_keeps_the_last_special_token(case: Case) -> None:
    limit = case.encoder.info.max_length
    tokens = case.encoder.tokenizer.tokenize(["word " * 100, "wing"])
    found = case.encoder.encode_tokens(tokens)
    assert found.truncated.tolist() == [True, False]
    assert found.tokens[0] == limit
    assert tokens.token_ids[limit - 1] in case.encoder.tokenizer.special_ids
    with pytest.raises(TextTooLongError, match=f"text 1 has more than {limit} tokens"):
        encode(case.encoder, ["wing", "word " * 100], truncate=False)


def test_a_shorter_limit(case: Case) -> None:
    found = encode(case.encoder, ["hello hello hello hello hello"], max_length=5)
    assert found.tokens.tolist() == [5]
    assert found.truncated.tolist() == [True]
    with pytest.raises(UnsupportedError, match="max_length is 100000"):
        encode(case.encoder, ["hello"], max_length=100_000)


@pytest.mark.slow
def test_a_text_of_a_hundred_thousand_characters(case: Case) -> None:
    found = encode(case.encoder, ["word" * 25_000, "별" * 100_000, "word " * 20_000])
    assert found.tokens.max() == case.encoder.info.max_length
    assert np.isfinite(found.dense).all()


def test_dimensions_cut_before_normalizing(case: Case) -> None:
    found = encode(case.encoder, ["hello world"])
    cut = found.with_dimensions(8)
    expected = found.dense[:, :8] / np.linalg.norm(found.dense[:, :8])
    np.testing.assert_allclose(cut.dense, expected, atol=1e-6)


@pytest.mark.slow
def test_threads_share_an_encoder(case: Case) -> None:
    expected = encode(case.encoder, TEXTS)
    failures: list[Exception] = []

    def work(length: int) -> None:
        try:
            for _ in range(5):
                encode(case.encoder, TEXTS[:3], max_length=length)
                assert_close(encode(case.encoder, TEXTS), expected, 1e-5)
        except Exception as error:  # noqa: BLE001 - any failure of the thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(length,)) for length in (4, 8, 12, 16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
