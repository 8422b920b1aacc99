"""Writes a trained checkpoint in the layout that engines load and `tercet export` takes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from torch import nn

from tercet.models.checkpoint import SETTINGS_FILE, TOKENIZER_CONFIG, EncodingSettings, read_json
from tercet.models.encoder_model import EncoderModel, without_loading_report
from tercet.models.tokenizer import TOKENIZER_FILES
from tercet.models.weights.head_weights import write_heads

COPIED_FILES = (*TOKENIZER_FILES, TOKENIZER_CONFIG, "special_tokens_map.json")
READABLE = 0o644


def write_checkpoint(
    folder: Path, base: Path, model: EncoderModel, encoding: EncodingSettings, *, with_heads: bool
) -> None:
    """Writes body, heads, tokenizer and `tercet.json`; without heads after a stage that trains none."""
    write_body(folder, base, model.body)
    if with_heads:
        weights = model.heads.weights()
        write_heads(folder, weights)
        encoding = replace(encoding, colbert_dimension=weights.colbert_dimension)
    settings = {name: value for name, value in encoding.to_json().items() if value is not None}
    (folder / SETTINGS_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    lift_tokenizer_limit(folder / TOKENIZER_CONFIG, encoding.max_length)
    make_readable(folder)


def lift_tokenizer_limit(path: Path, max_length: int) -> None:
    """Lets other libraries read as many tokens, whose tokenizers cut texts at a limit in their configuration.

    path: of that configuration, which need not exist.
    """
    values = read_json(path) if path.is_file() else {}
    limit = values.get("model_max_length")
    if isinstance(limit, int) and limit < max_length:
        text = json.dumps({**values, "model_max_length": max_length}, indent=2, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


def write_body(folder: Path, base: Path, model: nn.Module) -> None:
    """Writes a transformers model and the tokenizer of its base, as they lie on the hub."""
    folder.mkdir(parents=True, exist_ok=True)
    with without_loading_report():
        model.save_pretrained(folder)  # type: ignore[operator]  # every transformers model has it
    for name in COPIED_FILES:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
    make_readable(folder)


def make_readable(folder: Path) -> None:
    """Lets all users read the files of a folder; some libraries make files that only their owner may."""
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(READABLE)
