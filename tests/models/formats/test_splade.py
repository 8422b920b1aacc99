"""SPLADE and inference-free sparse encoders: their folders, their weights by hand, and both engines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, DistilBertConfig, ModernBertConfig, RobertaConfig

from tercet.models.checkpoint import EncodingSettings, read_settings
from tercet.models.encoder import Encoder, encode
from tercet.models.errors import CheckpointError
from tercet.models.export_onnx import export
from tercet.models.formats.sparse_modules import settings_of_sparse_modules
from tercet.models.formats.splade import SpladeSettings
from tercet.models.lexical import splade_rows as rows_module
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32, SparseRows, TokenBatch
from tests.models.conftest import export_both
from tests.models.formats.conftest import POOLED, MadeOnce
from tests.tiny.sparse_folders import (
    PLACES,
    dense_rows,
    query_weights,
    write_inference_free,
    write_json,
    write_language_model,
    write_splade,
)
from tests.tiny.word_pieces import word_piece_json

pytestmark = pytest.mark.slow

TEXTS = ["hello world", "the heat of the air, and a wave!", "", "wing wing", "별 밤", "word " * 60]


@dataclass(frozen=True)
class Case:
    """An encoder of a folder, and how far it may be from the formula."""

    encoder: Encoder
    source: Path
    kind: str
    tolerance: float


@pytest.fixture(
    scope="module", params=[f"{kind}-{engine}" for kind in POOLED for engine in ("torch", "float32", "int8")]
)
def case(request: pytest.FixtureRequest, folders: dict[str, Path], made_once: MadeOnce) -> Case:
    kind, engine = request.param.split("-")
    source = folders[kind]
    if engine == "torch":
        return Case(load_encoder(str(source), "torch", device="cpu"), source, kind, 1e-5)

    exported = made_once(f"exported/{kind}", lambda folder: export_both(source, folder))
    tolerance = 1e-4 if engine == "float32" else 0.8 if kind == "sum" else 0.1
    return Case(load_encoder(str(exported), precision=engine, device="cpu"), source, kind, tolerance)


@torch.no_grad()
def splade_by_hand(
    folder: Path, token_ids: Sequence[Sequence[int]], pooling: str = "max", activation: str = "relu"
) -> Float32:
    """Weights of texts, one after another, by the formula on all logits of transformers' own model."""
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    found = []
    for ids in token_ids:
        weights = torch.log1p(torch.relu(model(torch.tensor([list(ids)])).logits[0]))
        if activation == "log1p_relu":
            weights = torch.log1p(weights)
        found.append((weights.amax(0) if pooling == "max" else weights.sum(0)).numpy())
    return np.stack(found)


def token_rows(batch: TokenBatch) -> list[list[int]]:
    return [row.tolist() for row in np.split(batch.token_ids, batch.offsets[1:-1])]


def by_hand(case: Case, texts: list[str]) -> Float32:
    return splade_by_hand(case.source, token_rows(case.encoder.tokenizer.tokenize(texts)), *POOLED[case.kind])


def sparse(encoder: Encoder, texts: list[str], kind: Any = "document") -> SparseRows:
    found = encode(encoder, texts, kind).sparse
    assert found is not None
    return found


def test_documents_are_weighed_as_the_formula_says(case: Case) -> None:
    assert case.encoder.info.sides == ("sparse",)
    assert case.encoder.info.vocabulary_size == PLACES
    found = dense_rows(sparse(case.encoder, TEXTS))
    expected = by_hand(case, TEXTS)
    np.testing.assert_allclose(found, expected, atol=case.tolerance)
    own = set(case.encoder.tokenizer.tokenize(TEXTS[:1]).token_ids.tolist())
    assert set(np.flatnonzero(found[0])) - own, "a text has terms that it does not say"


def test_a_text_is_weighed_alike_alone_and_in_a_batch(case: Case) -> None:
    for kind in ("query", "document"):
        together = dense_rows(sparse(case.encoder, TEXTS, kind))
        alone = np.concatenate([dense_rows(sparse(case.encoder, [text], kind)) for text in TEXTS])
        np.testing.assert_allclose(together, alone, atol=1e-5 if case.tolerance < 0.01 else case.tolerance)


def test_logits_are_made_for_some_tokens_at_a_time(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their number, which is bounded; a text longer than that is joined from its parts."""
    whole = dense_rows(sparse(case.encoder, TEXTS))
    monkeypatch.setattr(rows_module, "CHUNK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_TOKENS", 5)
    sizes = []
    original = rows_module._rows
    monkeypatch.setattr(
        rows_module, "_rows", lambda joined, settings: sizes.append(len(joined)) or original(joined, settings)
    )
    parts = dense_rows(sparse(case.encoder, TEXTS))
    assert max(sizes) <= 2, "no more texts than five tokens allow"
    np.testing.assert_allclose(parts, whole, atol=1e-5 if case.tolerance < 0.01 else case.tolerance)


def test_queries_of_a_table_need_no_pass(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.kind != "free":
        found = dense_rows(sparse(case.encoder, TEXTS, "query"))
        np.testing.assert_array_equal(found, dense_rows(sparse(case.encoder, TEXTS)))
        return
    monkeypatch.setattr(case.encoder, "_forward", lambda *_: pytest.fail("the model was asked"))
    table = np.append(query_weights(), np.zeros(PLACES - len(query_weights()), np.float32))
    expected = np.zeros((len(TEXTS), PLACES), np.float32)
    for row, ids in enumerate(token_rows(case.encoder.tokenizer.tokenize(TEXTS, "query"))):
        expected[row, ids[1:-1]] = table[ids[1:-1]]
    np.testing.assert_array_equal(dense_rows(sparse(case.encoder, TEXTS, "query")), expected)


def test_queries_and_documents_in_one_batch(case: Case) -> None:
    tokenizer = case.encoder.tokenizer
    kinds = ("query", "document", "query", "document")
    batch = TokenBatch.concatenate(
        [tokenizer.tokenize([text], kind) for text, kind in zip(TEXTS, kinds, strict=False)]  # type: ignore[arg-type]
    )
    found = case.encoder.encode_tokens(batch).sparse
    assert found is not None
    alone = [dense_rows(sparse(case.encoder, [text], kind)) for text, kind in zip(TEXTS, kinds, strict=False)]
    tolerance = 1e-5 if case.tolerance < 0.01 else case.tolerance
    np.testing.assert_allclose(dense_rows(found), np.concatenate(alone), atol=tolerance)


def test_engines_share_a_fingerprint_and_no_texts_are_none(case: Case) -> None:
    reference = load_encoder(str(case.source), "torch", device="cpu")
    if case.encoder.info.precision == "float32":
        assert case.encoder.info.fingerprint == reference.info.fingerprint
    assert len(sparse(case.encoder, [])) == 0


def test_only_the_largest_weights_are_kept(tmp_path: Path) -> None:
    full = load_encoder(str(write_splade(tmp_path / "full")), "torch", device="cpu")
    capped = load_encoder(str(write_splade(tmp_path / "capped", most=3)), "torch", device="cpu")
    assert capped.info.fingerprint != full.info.fingerprint
    every, some = dense_rows(sparse(full, TEXTS)), dense_rows(sparse(capped, TEXTS))
    for whole, kept in zip(every, some, strict=True):
        largest = np.argsort(-whole, kind="stable")[:3]
        np.testing.assert_allclose(kept[largest], whole[largest], atol=1e-6)
        assert np.count_nonzero(kept) == 3


def test_a_plain_language_model_says_so_in_its_settings(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = write_language_model(tmp_path / "plain")
    write_json(folder / "tercet.json", {"splade": {"pooling": "sum", "activation": "log1p_relu"}})
    found, expected = (
        dense_rows(sparse(load_encoder(str(place), "torch", device="cpu"), TEXTS))
        for place in (folder, folders["sum"])
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("family", ["distilbert", "roberta", "modernbert"])
def test_heads_of_other_families(tmp_path: Path, family: str) -> None:
    """Each has its head in another place, and DistilBERT, of OpenSearch's models, its own names."""
    torch.manual_seed(2)
    of_all = {
        "vocab_size": PLACES,
        "max_position_embeddings": 48,
        "initializer_range": 0.15,
        "pad_token_id": 0,
    }
    of_most = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    config = {
        "distilbert": lambda: DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, **of_all),
        "roberta": lambda: RobertaConfig(**of_all, **of_most),
        "modernbert": lambda: ModernBertConfig(**of_all, **of_most, **special),
    }[family]()
    folder = tmp_path / family
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes(word_piece_json())
    write_json(folder / "tercet.json", {"splade": {}, "max_length": 32})
    encoder = load_encoder(str(folder), "torch", device="cpu")
    expected = splade_by_hand(folder, token_rows(encoder.tokenizer.tokenize(TEXTS)))
    np.testing.assert_allclose(dense_rows(sparse(encoder, TEXTS)), expected, atol=1e-5)


def test_a_dense_side_beside_it(tmp_path: Path) -> None:
    folder = write_language_model(tmp_path / "both")
    write_json(folder / "tercet.json", {"splade": {}, "pooling": "mean"})
    torch_encoder = load_encoder(str(folder), "torch", device="cpu")
    assert torch_encoder.info.sides == ("dense", "sparse")
    export(folder, tmp_path / "exported", int8=False)
    one, other = (
        encode(encoder, TEXTS)
        for encoder in (torch_encoder, load_encoder(str(tmp_path / "exported"), device="cpu"))
    )
    np.testing.assert_allclose(one.dense, other.dense, atol=1e-5)
    assert one.sparse is not None
    assert other.sparse is not None
    np.testing.assert_allclose(dense_rows(one.sparse), dense_rows(other.sparse), atol=1e-4)
    alone = encode(torch_encoder, TEXTS, outputs=["dense"])
    np.testing.assert_allclose(alone.dense, one.dense, atol=1e-6)


def test_a_transformer_in_a_folder_of_its_own(folders: dict[str, Path], tmp_path: Path) -> None:
    """As sentence-transformers saves a router; the published ones have it at the top."""
    folder = write_inference_free(tmp_path / "saved", transformer="document_0_Transformer")
    for kind in ("query", "document"):
        found, expected = (
            dense_rows(sparse(load_encoder(str(place), "torch", device="cpu"), TEXTS, kind))
            for place in (folder, folders["free"])
        )
        np.testing.assert_array_equal(found, expected)


def test_weights_by_token_instead_of_a_table(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["free"], tmp_path / "idf"))
    (folder / "query_0_SparseStaticEmbedding/model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"idf\.json is missing, and so is model\.safetensors"):
        load_encoder(str(folder), "torch", device="cpu")
    write_json(folder / "idf.json", {"wing": 2.5, "##a": 1.25})
    encoder = load_encoder(str(folder), "torch", device="cpu")
    (ids, weights), (none, _) = (sparse(encoder, ["wing xa", "air"], "query").row(row) for row in (0, 1))
    assert dict(zip(encoder.tokenizer.token_strings(ids), weights.tolist(), strict=True)) == {
        "wing": 2.5,
        "##a": 1.25,
    }
    assert len(none) == 0


def test_settings_of_a_folder(folders: dict[str, Path]) -> None:
    assert settings_of_sparse_modules(folders["free"]) == {
        "pooling": "none",
        "splade": {"pooling": "max", "activation": "log1p_relu", "max_terms": None, "queries": "table"},
    }
    assert read_settings(folders["sum"]).splade == SpladeSettings("sum", "log1p_relu")
    settings = read_settings(folders["sum"])
    assert EncodingSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_a_transformer_has_special_tokens(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["splade"], tmp_path / "bare"))
    write_json(folder / "tercet.json", {"special_tokens": False})
    with pytest.raises(CheckpointError, match="only static embeddings do without any"):
        load_encoder(str(folder), "torch", device="cpu")


def test_settings_that_are_not_there_change_no_fingerprint() -> None:
    assert not {"splade", "special_tokens"} & set(EncodingSettings().of_representations)
    assert "splade" in EncodingSettings(splade=SpladeSettings()).of_representations
