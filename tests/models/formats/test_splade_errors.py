"""Folders and settings of sparse encoders that cannot be used are named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.export_onnx import export, export_adapter
from tercet.models.loader import load_encoder
from tests.models.formats.test_splade import sparse
from tests.tiny.sparse_folders import SPLADE_POOLING, TABLE, TRANSFORMER, write_json, write_language_model

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"splade": 7}, "splade is 7; it must be an object"),
        ({"splade": {"pool": "max"}}, r"splade has unknown keys \['pool'\]"),
        ({"splade": {"pooling": "mean"}}, "splade.pooling is 'mean'"),
        ({"splade": {"max_terms": 0}}, "splade.max_terms is 0"),
        ({"splade": {"max_terms": True}}, "splade.max_terms is True"),
        ({"splade": {"queries": "table"}, "lexical": "idf"}, 'take "plain"'),
    ],
)
def test_settings_out_of_range(values: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        EncodingSettings.from_json(values)


Change = Callable[[Path], object]


QUERIES = "query_0_SparseStaticEmbedding"


def _json(name: str, content: Any) -> Change:
    return lambda folder: write_json(folder / name, content)


def _table(weights: Any) -> Change:
    return lambda folder: save_file({"weight": weights}, folder / QUERIES / "model.safetensors")


def _router(query: list[str], document: list[str]) -> Change:
    types = {"q": TABLE, "": TRANSFORMER, "p": SPLADE_POOLING}
    return _json("router_config.json", {"types": types, "structure": {"query": query, "document": document}})


def _only_body(folder: Path) -> None:
    from transformers import BertModel

    BertModel.from_pretrained(folder).save_pretrained(folder)


def _of_another_tokenizer(folder: Path) -> None:
    path = folder / QUERIES / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"wing"', '"wine"'), encoding="utf-8")


BAD_FOLDERS: list[tuple[Change, str]] = [
    (_only_body, r"the weight files lack \d+ tensors, such as cls\.predictions"),
    (_table(np.ones(70, np.float32)), r"weight has shape \(70,\); the model needs \(80,\)"),
    (_table(np.ones((71, 2), np.float32)), r"weight has shape \(71, 2\)"),
    (_table(np.full(71, np.nan, np.float32)), "one that is no number"),
    (
        lambda folder: save_file({"idf": np.ones(71, np.float32)}, folder / QUERIES / "model.safetensors"),
        "lacks 'weight'",
    ),
    (lambda folder: (folder / QUERIES / "model.safetensors").write_bytes(b"x"), "cannot be read"),
    (_of_another_tokenizer, "has another vocabulary than"),
    (_json(f"{QUERIES}/config.json", {"path": "table.json"}), r"table\.json is missing"),
    (_json("document_1_SpladePooling/config.json", {"pooling_strategy": "mean"}), "splade.pooling is 'mean'"),
    (_json("config_sentence_transformers.json", {"max_active_dims": -1}), "splade.max_terms is -1"),
    (_router(["", "p"], ["", "p"]), "Transformer and SpladePooling is not read here"),
    (_router(["q"], ["p"]), "SpladePooling is not read here"),
    (_router(["q"], ["", "p"]), "transformer_task is None, but SpladePooling needs"),
    (_json("router_config.json", {"types": {}}), "must have the types of a router's modules"),
    (_json("router_config.json", {"types": {}, "structure": {"a": []}}), "must have query and document"),
    (_json("router_config.json", {"types": {}, "structure": {"query": 1}}), "must have query and document"),
    (_router([["q"]], ["", "p"]), "None is not read here"),  # type: ignore[list-item]
    (_json("idf.json", {"wing": 1}), ""),  # not needed, and so not read
    (
        lambda folder: save_file(
            {"sparse.weight": np.ones((1, 32), np.float32), "sparse.bias": np.ones(1, np.float32)},
            folder / "heads.safetensors",
        ),
        "splade in its settings and a linear head",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD_FOLDERS)
def test_what_is_wrong_with_a_folder_is_named(
    folders: dict[str, Path], tmp_path: Path, change: Change, message: str
) -> None:
    folder = Path(shutil.copytree(folders["free"], tmp_path / "changed"))
    change(folder)
    if not message:
        load_encoder(str(folder), "torch", device="cpu")
        return
    with pytest.raises(CheckpointError, match=message):
        load_encoder(str(folder), "torch", device="cpu")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"wing": 2, "swan": 1}, "is of another vocabulary: it has token 'swan'"),
        ({"wing": "heavy"}, "the weight of 'wing' is 'heavy'; it must be a number"),
        ({"wing": [1]}, r"the weight of 'wing' is \[1\]"),
        ({"wing": 1e99}, "a weight beyond 10000"),
        ({}, ""),
        ([1, 2], "a JSON object is expected"),
    ],
)
def test_what_is_wrong_with_weights_by_token(tmp_path: Path, content: Any, message: str) -> None:
    folder = write_language_model(tmp_path / "plain")
    write_json(folder / "tercet.json", {"splade": {"queries": "table"}})
    write_json(folder / "idf.json", content)
    if not message:
        assert len(sparse(load_encoder(str(folder), "torch", device="cpu"), ["wing"], "query").weights) == 0
        return
    with pytest.raises(CheckpointError, match=message):
        load_encoder(str(folder), "torch", device="cpu")


def test_an_export_of_other_settings_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    exported = tmp_path / "exported"
    export(folders["splade"], exported, int8=True)
    with pytest.raises(CheckpointError, match=r"holds only an int8 graph.*use the onnx engine"):
        load_encoder(str(exported), "torch", device="cpu")
    settings = json.loads((exported / "tercet.json").read_text())
    settings["splade"]["pooling"] = "sum"
    write_json(exported / "tercet.json", settings)
    with pytest.raises(CheckpointError, match="exported with splade"):
        load_encoder(str(exported), device="cpu")
    with pytest.raises(UnsupportedError, match="adapters need linear heads"):
        export_adapter(folders["splade"], tmp_path, int8=False)
