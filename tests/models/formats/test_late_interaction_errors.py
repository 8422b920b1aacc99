"""Folders of late-interaction encoders that cannot be used are named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tercet.models.checkpoint import read_settings
from tercet.models.errors import CheckpointError
from tercet.models.loader import load_encoder
from tests.models.formats.test_late_interaction import FIXED, change
from tests.tiny.late_folders import (
    TANH,
    Layer,
    write_multi_vector,
    write_pooled,
    write_pylate,
    write_stanford,
)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "1_Dense" / "model.safetensors").unlink(), r"1_Dense/model\.safetensors is missing"),
        (lambda f: (f / "1_Dense" / "config.json").unlink(), r"1_Dense/config\.json is missing"),
        (lambda f: shutil.rmtree(f / "1_Dense"), r"1_Dense/config\.json is missing"),
        (
            lambda f: (f / "1_Dense" / "model.safetensors").write_bytes(b"no weights"),
            r"1_Dense/model\.safetensors cannot be read",
        ),
        (
            lambda f: change(f, "1_Dense/config.json", activation_function="mine.Softplus"),
            r"1_Dense/config\.json: activation_function 'mine\.Softplus' is not read here",
        ),
        (
            lambda f: change(f, "1_Dense/config.json", activation_function="torch.nn.Softplus"),
            r"activation_function 'torch\.nn\.Softplus' is not read here",
        ),
        (
            lambda f: change(f, "1_Dense/config.json", out_features=12),
            r"linear\.weight has shape \[16, 32\]; .*1_Dense/config\.json says \[12, 32\]",
        ),
        (lambda f: change(f, "1_Dense/config.json", bias=True), r"model\.safetensors holds .*asks for"),
        (
            lambda f: change(f, "1_Dense/config.json", module_input_name="sentence_embedding"),
            r"1_Dense/config\.json: module_input_name is 'sentence_embedding'",
        ),
        (
            lambda f: change(f, "config_sentence_transformers.json", query_prefix="[NOT THERE]"),
            r"marker '\[NOT THERE\]' of a query is not one token of tokenizer\.json",
        ),
        (
            lambda f: change(f, "config_sentence_transformers.json", document_prefix="two tokens"),
            "marker 'two tokens' of a document is not one token",
        ),
        (
            lambda f: change(f, "config_sentence_transformers.json", query_length=32),
            "queries of 32 tokens are longer than max_length, 24",
        ),
        (
            lambda f: change(f, "config_sentence_transformers.json", query_length="12"),
            r"config_sentence_transformers\.json: late_interaction\.query_length is '12'",
        ),
        (
            lambda f: change(f, "config_sentence_transformers.json", skiplist_words=", ."),
            r"config_sentence_transformers\.json: late_interaction\.skiplist is ', \.'",
        ),
        (
            lambda f: (f / "tercet.json").write_text('{"late_interaction": {"mark": "[Q]"}}'),
            r"late_interaction has unknown keys \['mark'\]",
        ),
        (
            lambda f: (f / "modules.json").write_text(
                (f / "modules.json").read_text().replace("pylate.models.Dense.Dense", "pylate.models.New.New")
            ),
            r"modules\.json: pylate\.models\.New\.New is not read here",
        ),
    ],
)
def test_a_bad_folder_is_one_error_that_names_the_file(tmp_path: Path, damage: Any, message: str) -> None:
    folder = write_pylate(tmp_path / "late", model_type="ColBERT")
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        load_encoder(str(folder), "torch", device="cpu")


def test_layers_that_do_not_follow_one_another(tmp_path: Path) -> None:
    folder = write_pylate(tmp_path / "late", (Layer(24), Layer(16, 32)))
    with pytest.raises(CheckpointError, match=r"2_Dense: weight has shape \[16, 32\]; .* needs \[16, 24\]"):
        load_encoder(str(folder), "torch", device="cpu")


def test_other_bad_folders(tmp_path: Path) -> None:
    folder = write_multi_vector(tmp_path / "kept", FIXED, document_length=24)
    change(folder, "2_MultiVectorMask/config.json", keep_only_token_ids=[7])
    with pytest.raises(CheckpointError, match=r"2_MultiVectorMask/config\.json: keep_only_token_ids"):
        read_settings(folder)
    folder = write_multi_vector(tmp_path / "other", {"strategy": "most", "length": 8})
    with pytest.raises(CheckpointError, match=r"sentence_bert_config\.json: query_expansion"):
        read_settings(folder)
    change(folder, "2_MultiVectorMask/config.json", keep_only_token_ids=None, skiplist_tasks=["other"])
    change(folder, "sentence_bert_config.json", query_expansion=FIXED, document_length=24)
    with pytest.raises(
        CheckpointError, match=r"2_MultiVectorMask/config\.json: .*skiplist_types is \['other'\]"
    ):
        read_settings(folder)
    folder = write_multi_vector(tmp_path / "token", {**FIXED, "token": "[NONE]"}, document_length=24)
    with pytest.raises(CheckpointError, match=r"none of the tokens \['\[NONE\]'\]"):
        load_encoder(str(folder), "torch", device="cpu")
    folder = write_multi_vector(tmp_path / "open", FIXED, document_length=24)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:-1]))
    with pytest.raises(CheckpointError, match=r"modules\.json: .* and then a Normalize"):
        read_settings(folder)
    folder = write_stanford(tmp_path / "bare")
    weights = load_file(folder / "model.safetensors")
    del weights["linear.weight"]
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"the weight files lack linear\.weight"):
        load_encoder(str(folder), "torch", device="cpu")


def test_adapters_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="adapters need peft: install tercet[train]")
    from tercet.models.adapters.base import adapter_base

    with pytest.raises(CheckpointError, match="an encoder of ColBERT's kind, for which adapters"):
        adapter_base(write_pylate(tmp_path / "late"))
    with pytest.raises(CheckpointError, match="has layers of Dense modules, which are not trained here"):
        adapter_base(write_pooled(tmp_path / "pooled", (Layer(16, activation=TANH),)))
