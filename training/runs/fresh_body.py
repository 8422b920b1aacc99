"""A body of random weights over the vocabulary of another checkpoint, for pre-training from scratch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from tercet.models.checkpoint import SETTINGS_FILE, TOKENIZER_CONFIG, EncodingSettings
from tercet.models.encoder_model import without_loading_report
from tercet.models.tokenizer import TOKENIZER_FILES, Tokenizer
from tercet.training.settings.base import ArchitectureSettings

COPIED = (*TOKENIZER_FILES, TOKENIZER_CONFIG)


def write_fresh_base(settings: ArchitectureSettings, source: Path, folder: Path, seed: int) -> None:
    """Writes a checkpoint folder without heads: a BERT of the given size and the tokenizer of `source`.

    Raises CheckpointError where the source has no tokenizer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    encoding = EncodingSettings(pooling=settings.pooling, max_length=settings.positions)
    tokenizer = Tokenizer.load(folder, encoding)
    config = BertConfig(
        vocab_size=tokenizer.vocabulary_size,
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.attention_heads,
        intermediate_size=settings.intermediate,
        max_position_embeddings=settings.positions,
        pad_token_id=tokenizer.pad_id,
    )
    with torch.random.fork_rng(devices=[]), without_loading_report():
        # The CPU's generator alone: on GPUs each process has seeded its own, and goes on from there.
        torch.default_generator.manual_seed(seed)
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    values = {"pooling": encoding.pooling, "max_length": encoding.max_length}
    (folder / SETTINGS_FILE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
