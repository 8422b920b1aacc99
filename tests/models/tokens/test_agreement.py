"""Two files of one tokenizer that contradict each other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import CheckpointError
from tercet.models.tokenizer import Tokenizer


def folder_of(folder: Path, content: bytes, **config: Any) -> Path:
    (folder / "tokenizer.json").write_bytes(content)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"do_lower_case": False}, "do_lower_case is false, but tokenizer.json says true"),
        ({"strip_accents": False}, "strip_accents is false, but tokenizer.json says true"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars is false, but tokenizer.json says true"),
    ],
)
def test_a_contradiction_is_named(tokenizer_json: bytes, tmp_path: Path, config: Any, message: str) -> None:
    """The tokenizer reads small letters, and so drops accents. transformers' class goes by the other file."""
    from transformers import AutoTokenizer

    folder = folder_of(tmp_path, tokenizer_json, tokenizer_class="BertTokenizer", **config)
    with pytest.raises(CheckpointError, match=f"{message}.*save_pretrained"):
        Tokenizer.load(folder, EncodingSettings())
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)  # the remedy
    Tokenizer.load(folder, EncodingSettings())


def test_a_space_before_texts(tokenizer_json: bytes, tmp_path: Path) -> None:
    values = json.loads(tokenizer_json)
    values["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    folder = folder_of(tmp_path, json.dumps(values).encode(), add_prefix_space=True)
    with pytest.raises(CheckpointError, match="add_prefix_space is true, but tokenizer"):
        Tokenizer.load(folder, EncodingSettings())


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True},
        {"do_lower_case": True, "strip_accents": True},
        {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"},  # which reads one file alone
    ],
)
def test_what_is_no_contradiction(tokenizer_json: bytes, tmp_path: Path, config: Any) -> None:
    Tokenizer.load(folder_of(tmp_path, tokenizer_json, **config), EncodingSettings())
