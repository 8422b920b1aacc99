"""Several CLS in the texts of a checkpoint that was not trained with them, and the names of such changes."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError, ModelError, UnsupportedError
from tercet.models.export_onnx import export
from tercet.models.loader import load_encoder, load_tokenizer
from tercet.models.variants import Variant
from tests.models.conftest import write_bert

EVERY = 8
TEXTS = ["hello world", "wing, air. heat! " * 6]


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        (Variant("a/b@c"), "a/b@c"),
        (Variant("a/b@c", "d/e"), "a/b@c with heads of d/e"),
        (Variant("a/b", None, 128), "a/b with a CLS every 128 tokens"),
        (Variant("/a b", "/d e", 128), "/a b with heads of /d e with a CLS every 128 tokens"),
    ],
)
def test_names(variant: Variant, name: str) -> None:
    assert variant.name == name
    assert Variant.of(name) == variant


def test_it_encodes_as_a_checkpoint_that_says_so(tmp_path: Path) -> None:
    cls = write_bert(tmp_path / "cls", pooling="cls")
    said = load_encoder(
        str(write_bert(tmp_path / "mcls", pooling="cls", mcls_every=EVERY)), "torch", device="cpu"
    )
    asked = load_encoder(str(cls), "torch", mcls_every=EVERY)
    plain = load_encoder(str(cls), "torch", device="cpu")
    assert asked.info.fingerprint == said.info.fingerprint != plain.info.fingerprint
    wanted, found, single = encode(said, TEXTS), encode(asked, TEXTS), encode(plain, TEXTS)
    assert wanted.dense is not None
    assert found.dense is not None
    assert single.dense is not None
    np.testing.assert_array_equal(found.dense, wanted.dense)
    np.testing.assert_allclose(found.dense[0], single.dense[0], atol=1e-6)  # a short text has one CLS anyway
    assert np.abs(found.dense[1] - single.dense[1]).max() > 1e-3


def test_what_is_recorded_opens_it_again(bert: Path) -> None:
    asked = load_encoder(str(bert), "torch", mcls_every=EVERY, device="cpu")
    assert asked.info.checkpoint == f"{bert} with a CLS every 8 tokens"
    assert load_encoder(asked.info.checkpoint, "torch", device="cpu").info == asked.info


def test_the_flag_comes_before_the_checkpoint_s_own(bert_mcls: Path) -> None:
    other = load_encoder(str(bert_mcls), "torch", mcls_every=16, device="cpu")
    assert other.tokenizer.settings.mcls_every == 16
    assert load_tokenizer(bert_mcls, 16).settings.mcls_every == 16
    assert load_tokenizer(bert_mcls).settings.mcls_every == EVERY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "int8"), [("onnxruntime", False), ("onnxruntime", True), ("native", True)]
)
def test_an_export_has_it_for_every_engine(bert: Path, tmp_path: Path, engine: str, *, int8: bool) -> None:
    export(bert, tmp_path / "exported", int8=int8, mcls_every=EVERY)
    settings = json.loads((tmp_path / "exported" / "tercet.json").read_text())
    assert settings["mcls_every"] == EVERY
    reference = load_encoder(str(bert), "torch", mcls_every=EVERY, device="cpu")
    found = load_encoder(str(tmp_path / "exported"), engine, device="cpu")  # type: ignore[arg-type]
    asked = load_encoder(str(tmp_path / "exported"), engine, mcls_every=EVERY, device="cpu")  # type: ignore[arg-type]
    assert asked.info.fingerprint == found.info.fingerprint
    if not int8:
        assert found.info.fingerprint == reference.info.fingerprint
    wanted, dense = encode(reference, TEXTS).dense, encode(found, TEXTS).dense
    assert wanted is not None
    assert dense is not None
    np.testing.assert_allclose((wanted * dense).sum(1), 1, atol=0.05 if int8 else 1e-5)


@pytest.mark.parametrize("engine", ["onnx", "native", "onnxruntime"])
def test_a_graph_without_it_says_how_to_get_it(bert_exported: Path, engine: str) -> None:
    with pytest.raises(CheckpointError, match=r"no graph exported with a CLS every 8 tokens.*--mcls-every 8"):
        load_encoder(str(bert_exported), engine, mcls_every=EVERY, device="cpu")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_checkpoint_without_graphs_is_exported_with_it_at_its_first_start(
    bert: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "exports"
    several = load_encoder(str(bert), mcls_every=EVERY, export_cache=cache, device="cpu")
    single = load_encoder(str(bert), export_cache=cache, device="cpu")
    assert several.info.engine == single.info.engine == "onnxruntime"
    assert several.info.fingerprint != single.info.fingerprint
    assert several.tokenizer.settings.mcls_every == EVERY


@pytest.mark.parametrize("every", [0, 1, 3])
def test_too_few_tokens_are_refused(bert: Path, every: int) -> None:
    with pytest.raises(ModelError, match=f"mcls_every is {every}; it must be a whole number of at least 4"):
        load_encoder(str(bert), "torch", mcls_every=every, device="cpu")


def test_a_checkpoint_without_a_dense_side_refuses_it(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "bare", pooling="none")
    with pytest.raises(UnsupportedError, match="bare has no dense side"):
        load_encoder(str(folder), "torch", mcls_every=EVERY, device="cpu")


def test_the_log_tells_where_no_cls_was_trained(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_bert(tmp_path / "mean", pooling="mean")
    with caplog.at_level(logging.WARNING, "tercet"):
        load_encoder(str(folder), "torch", mcls_every=EVERY, device="cpu")
    assert "has pooling 'mean': nothing trained its CLS" in caplog.text
