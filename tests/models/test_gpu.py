"""Both engines on a device: what a CPU gives in float32, within what their precision leaves."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
DEVICES = ["cpu", pytest.param("cuda", marks=ON_GPU)]
CASES = [(engine, device) for engine in ("torch", "onnx") for device in ("cpu", "cuda")]
TEXTS = [
    " ".join(["wing", "air", "heat", "hello world", "별 밤"][: 1 + row % 5] * (1 + row % 9))
    for row in range(300)
]
NEAR = {"float32": 1e-3, "bfloat16": 0.06}


@pytest.fixture(scope="module")
def expected(bert: Path) -> Representations:
    return encode(load_encoder(str(bert), "torch", device="cpu"), TEXTS)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(case, id="-".join(case), marks=ON_GPU if case[1] == "cuda" else []) for case in CASES
    ],
)
def encoder(request: pytest.FixtureRequest, bert: Path, bert_exported: Path) -> Encoder:
    engine, device = request.param
    if engine == "torch":
        return load_encoder(str(bert), engine, device=device)
    if device == "cuda":
        import onnxruntime

        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            pytest.skip("onnxruntime for GPUs is not installed")
    return load_encoder(str(bert_exported), engine, device=device, precision="float32")


def assert_near(found: Representations, expected: Representations, precision: str) -> None:
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.dense, expected.dense, atol=NEAR[precision])
    np.testing.assert_array_equal(found.colbert.offsets, expected.colbert.offsets)
    cosines = (found.colbert.vectors * expected.colbert.vectors).sum(1)
    assert cosines.min() > 1 - NEAR[precision]


def test_what_a_cpu_gives(encoder: Encoder, expected: Representations) -> None:
    precision = encoder.info.precision
    for _ in range(3):  # the first makes what later ones share
        assert_near(encode(encoder, TEXTS), expected, precision)
    alone = Representations.concatenate([encode(encoder, [text]) for text in TEXTS[:20]])
    assert_near(alone, expected.take(np.arange(20)), precision)


def test_threads_share_a_device(encoder: Encoder, expected: Representations) -> None:
    failures: list[Exception] = []

    def work(first: int) -> None:
        rows = np.arange(first, 300, 3)
        try:
            for _ in range(3):
                found = encode(encoder, [TEXTS[row] for row in rows])
                assert_near(found, expected.take(rows), encoder.info.precision)
        except Exception as error:  # noqa: BLE001 - any failure of the thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("device", DEVICES)
def test_a_long_text_and_many_short_ones(bert: Path, device: str) -> None:
    encoder = load_encoder(str(bert), "torch", device=device)
    found = encode(encoder, ["wing " * 400, *["air"] * 3000, ""])
    assert found.tokens.tolist() == [encoder.info.max_length, *[3] * 3000, 2]
    np.testing.assert_allclose(found.dense[1:3001], found.dense[1:2].repeat(3000, 0), atol=0.01)
