"""What changes a fingerprint, and what does not."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import fingerprint, heads_digest, weight_files, weights_digest
from tercet.models.loader import load_encoder
from tercet.models.weights.head_weights import read_heads, write_heads

# Of settings without `lexical` and `lower_capitals`: what was built with them can still be searched.
OLDEST = "a7236e31049c0ac9418d3e41b9b94902e2fd77789d57588ac26c86cf7ace8432"


def fingerprint_of(folder: Path) -> str:
    return load_encoder(str(folder), "torch", device="cpu").info.fingerprint


def test_any_part_changes_it() -> None:
    settings = EncodingSettings()
    base = fingerprint("w", "h", "t", settings)
    others = [
        fingerprint("x", "h", "t", settings),
        fingerprint("w", "x", "t", settings),
        fingerprint("w", "h", "x", settings),
        fingerprint("w", "h", "t", EncodingSettings(pooling="mean")),
        fingerprint("w", "h", "t", EncodingSettings(query_instruction="q: ")),
        fingerprint("w", "h", "t", EncodingSettings(lower_capitals=True)),
        fingerprint("w", "h", "t", settings, "int8 graph"),
    ]
    assert len({base, *others}) == 8
    assert fingerprint("w", "h", "t", EncodingSettings()) == base


def test_what_collections_are_advised_does_not_change_it() -> None:
    """The representations are the same, so that collections of either kind go with the encoder."""
    found = fingerprint("w", "h", "t", EncodingSettings(lexical="idf", matryoshka_dimensions=(8,)))
    assert found == fingerprint("w", "h", "t", EncodingSettings()) == OLDEST


def test_heads_settings_and_tokenizer_of_a_checkpoint(bert: Path, tmp_path: Path) -> None:
    base = fingerprint_of(bert)
    folder = Path(shutil.copytree(bert, tmp_path / "copy"))
    assert fingerprint_of(folder) == base

    heads = read_heads(folder, 32)
    assert heads.sparse is not None
    write_heads(folder, replace(heads, sparse=replace(heads.sparse, bias=heads.sparse.bias + 1)))
    with_heads = fingerprint_of(folder)
    (folder / "tercet.json").write_text(json.dumps({"pooling": "cls"}))
    with_settings = fingerprint_of(folder)
    (folder / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes() + b"\n")
    with_tokenizer = fingerprint_of(folder)
    assert len({base, with_heads, with_settings, with_tokenizer}) == 4


def test_engines_share_it_in_float32_only(bert: Path, bert_exported: Path) -> None:
    base = fingerprint_of(bert)
    assert load_encoder(str(bert_exported), precision="float32").info.fingerprint == base
    assert load_encoder(str(bert_exported), precision="int8").info.fingerprint != base


def test_heads_digest_depends_on_values_and_shapes_only() -> None:
    one = {"a": np.zeros((2, 3), np.float32), "b": np.ones(1, np.float32)}
    assert heads_digest(one) == heads_digest(dict(reversed(one.items())))
    assert heads_digest(one) == heads_digest({**one, "a": np.asfortranarray(one["a"])})
    assert heads_digest(one) != heads_digest({**one, "a": np.zeros((3, 2), np.float32)})


def test_shards_in_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.safetensors", "a.safetensors"):
        (tmp_path / name).write_bytes(name.encode())
    index = {"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert [path.name for path in weight_files(tmp_path)] == ["a.safetensors", "b.safetensors"]
    before = weights_digest(tmp_path)
    (tmp_path / "a.safetensors").write_bytes(b"changed")
    assert weights_digest(tmp_path) != before


def test_no_weights(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        weights_digest(tmp_path)


@pytest.mark.parametrize("index", [{}, {"weight_map": ["a"]}, {"weight_map": {"x": 3}}])
def test_an_index_that_names_no_shards(tmp_path: Path, index: object) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"index\.json: weight_map must name the file of each tensor"):
        weight_files(tmp_path)
